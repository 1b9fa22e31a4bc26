// SPDX-License-Identifier: Apache-2.0
// The flags of toto::Guards, of `toto forecast` and `toto backtest`.
#include "cli/arguments.h"
#include "cli/forecast_options.h"

namespace toto::cli {

void add_guard_options(const Command& command, Guards& guards) {
  constexpr const char* group = "Bounds";
  constexpr double kMost = 1e30;
  add_number(command, "--clamp", guards.clamp, 0, kMost, "invalid_guard",
             "Keep sampled steps within so many ranges below and above what the context has "
             "(default 4; 0: free)")
      .group(group);
  const Flag least = add_number(command, "--min", guards.min, -kMost, kMost, "invalid_guard",
                                "No value below this, such as 0 for what cannot be negative");
  least.group(group);
  command
      .add_flag_function(
          "--non-negative",
          [&guards](bool on) {
            if (on) guards.min = 0;
          },
          "No value below 0: --min 0")
      .excludes(least)
      .group(group);
  add_number(command, "--max", guards.max, -kMost, kMost, "invalid_guard",
             "No value above this, such as 100 for a percentage")
      .group(group);
  command
      .add_flag("--integer", guards.integer,
                "Round medians, quantiles and samples to whole numbers; not the mean")
      .group(group);
}

}  // namespace toto::cli
