// SPDX-License-Identifier: Apache-2.0
#include "capi/settings.h"

#include <algorithm>
#include <string>

namespace toto::capi {
namespace {

/// "--plan-cache" is options.plan_cache, and "--device cpu" the device cpu.
template <typename Call>
void with_fields(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    if (!error.where().starts_with("--")) throw;
    std::string field = error.where().substr(2);
    std::replace(field.begin(), field.end(), '-', '_');
    std::string remedy = error.remedy();
    if (const auto at = remedy.find("--device"); at != std::string::npos) {
      remedy.replace(at, 8, "the device");
    }
    throw Error(error.status(), error.code(), error.message(), "options." + field, remedy);
  }
}

}  // namespace

Settings settings_of(const SettingsFlags& flags, const Variables& variables) {
  Settings settings;
  with_fields([&] { settings = resolve_settings(flags, variables); });
  return settings;
}

void apply(const Settings& settings, LoadOptions& options) {
  with_fields([&] { settings.apply(options); });
}

}  // namespace toto::capi
