// SPDX-License-Identifier: Apache-2.0
// The words of options.
#pragma once

#include "toto/settings.hpp"

namespace toto::capi {

/// resolve_settings(), whose errors name the field of the options instead of a flag.
Settings settings_of(const SettingsFlags& flags, const Variables& variables = process_variables());
/// Settings::apply() likewise.
void apply(const Settings& settings, LoadOptions& options);

}  // namespace toto::capi
