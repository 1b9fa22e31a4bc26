// SPDX-License-Identifier: Apache-2.0
#include "capi/settings.h"

#include <algorithm>
#include <string>

namespace toto::capi {

Settings settings_of(const SettingsFlags& flags, const EnvironmentLookup& environment) {
  try {
    return resolve_settings(flags, environment);
  } catch (const Error& error) {
    if (!error.where().starts_with("--")) throw;
    std::string field = error.where().substr(2);
    std::replace(field.begin(), field.end(), '-', '_');
    throw Error(error.status(), error.code(), error.message(), "options." + field, error.remedy());
  }
}

}  // namespace toto::capi
