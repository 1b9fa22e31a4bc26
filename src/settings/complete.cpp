// SPDX-License-Identifier: Apache-2.0
#include "settings/complete.h"

#include "settings/resolver.h"

namespace toto {

ForecasterOptions complete(const ForecasterOptions& options) {
  ForecasterOptions all = options;
  const SettingsFlags flags;
  const Variables variables =
      options.environment == Environment::obeyed ? process_variables() : Variables{};
  const Resolver from(flags, variables);
  if (all.max_plans == 0) all.max_plans = from.max_plans().value;
  if (!all.seed) all.seed = from.seed().value;
  if (all.plan_cache_dir.empty()) {
    if (const auto named = from.named_plan_cache_dir()) all.plan_cache_dir = named->value;
  }
  if (!all.log) all.log = log_to_stderr(from.log().value);
  all.environment = Environment::ignored;
  return all;
}

}  // namespace toto
