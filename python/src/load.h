// SPDX-License-Identifier: Apache-2.0
// From what a program asked for, and the environment, to a loaded model.
#pragma once

#include "model.h"

namespace toto::python {

/// Flags, then TOTO_* variables, then what is built in. Where an argument is wrong the error names
/// it, not a flag of the command line.
Settings settings_of(const SettingsFlags& flags);
ModelQuery query_of(const Recipe& recipe, const Settings& settings);
LoadOptions load_options_of(const Settings& settings);
Model load_model(const Recipe& recipe, const Settings& settings);
ForecasterOptions forecaster_options_of(const Settings& settings);

}  // namespace toto::python
