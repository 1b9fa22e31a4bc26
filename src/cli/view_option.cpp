// SPDX-License-Identifier: Apache-2.0
// The flag of toto::Views, of `toto forecast` and `toto backtest`.
#include "cli/arguments.h"
#include "cli/forecast_options.h"

namespace toto::cli {

Flag add_views_option(const Command& command, Views& views) {
  return command
      .add_option_function(
          "--views", [&views](const std::string& text) { views = parse_views(text); },
          "Forecast other looks at each series as well, and average the quantiles: flip (-y), log "
          "(log y, where all values are above 0), season (y less the season that its values "
          "show), context/K (the last 1/K of the context). Each is one more pass of the model")
      .type_name("VIEW,...")
      .group("The forecast");
}

}  // namespace toto::cli
