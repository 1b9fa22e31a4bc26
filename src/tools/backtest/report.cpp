// SPDX-License-Identifier: Apache-2.0
// The page: its data as JSON, and a script that draws it. Nothing is fetched from anywhere.
#include <string>

#include "tools/backtest/describe.h"
#include "tools/backtest/report_data.h"
#include "tools/backtest/report_script.h"
#include "tools/backtest/report_style.h"

namespace toto::backtest {
namespace {

/// JSON inside a script element: no tag may begin in it.
std::string embedded(const nlohmann::ordered_json& value) {
  const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void write_report(const data::TextSink& sink, const Result& result,
                  std::span<const Metrics> metrics, std::span<const Trades> trades,
                  const Options& options, const RunDescription& run) {
  nlohmann::ordered_json data = describe_run(result, options, run);
  data["sources"] = nlohmann::ordered_json::array();
  for (std::size_t s = 0; s < kSources; ++s) {
    data["sources"].push_back(word(static_cast<Source>(s)));
  }
  data["levels"] = levels();
  data["steps"] = report_steps(result.horizon);
  data["groups"] = report_groups(result, metrics);
  data["groups_of"] = count_groups(metrics);
  data["fans"] = report_fans(result);
  data["fans_of"] = count_fans(result);
  for (const char* list : {"symbols", "errors"}) {
    data[std::string(list) + "_of"] = data[list].size();
    while (data[list].size() > kMaxGroups) data[list].erase(data[list].size() - 1);
  }
  data["trades"] = nlohmann::ordered_json::array();
  for (const Trades& t : trades) data["trades"].push_back(to_json(t));
  sink(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Backtest</title>\n<style>\n");
  sink(kReportStyle);
  sink("</style>\n</head>\n<body>\n");
  sink(kReportBody);
  sink("<script type=\"application/json\" id=\"data\">");
  sink(embedded(data));
  sink("</script>\n<script>\n");
  sink(kReportScript);
  sink("</script>\n</body>\n</html>\n");
}

}  // namespace toto::backtest
