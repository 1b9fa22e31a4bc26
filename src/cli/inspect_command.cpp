// SPDX-License-Identifier: Apache-2.0
// toto inspect: what the reader understands of files, before anything is forecast.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/inspect_views.h"
#include "cli/reader_options.h"

namespace toto::cli {
namespace {

struct InspectRequest {
  std::vector<std::string> inputs;
  data::CsvOptions table;
  std::size_t series = 20;  // shown
  bool json = false;
};

ExitStatus run_inspect(const InspectRequest& request) {
  std::vector<Inspected> all;
  ExitStatus status = ExitStatus::ok;
  for (const std::string& path : data::csv_files(request.inputs)) {
    Inspected one;
    try {
      one.data = data::read_csv(path, request.table);
      for (const data::SeriesError& failed : one.data.errors) {
        status = failed.error.status();
      }
    } catch (const Error& error) {
      one.error = error;
      status = error.status();
    }
    one.path = path;
    all.push_back(std::move(one));
  }
  if (request.json) {
    print(inspected_as_json(all));
    return status;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) print("\n");
    print(inspected_as_text(all[i], request.series));
  }
  for (const Inspected& one : all) {
    if (one.error) report(*one.error);
    for (const data::SeriesError& failed : one.data.errors) report(failed.error);
  }
  return status;
}

}  // namespace

void add_inspect(const Command& app, Session& session) {
  const auto request = std::make_shared<InspectRequest>();
  const Command command =
      add_command(app, session, "inspect", "Shows how files of series are understood.",
                  "  toto inspect sales.csv\n"
                  "  toto inspect exports/ --json\n"
                  "  toto inspect prices.csv --date-format dmy --duplicates last\n"
                  "  curl -s \"$PROMETHEUS/api/v1/query_range?...\" | toto inspect -\n");
  command.add_option("INPUT", request->inputs, "Files and folders of tables; - is standard input")
      .required()
      .type_name("FILE|DIR");
  constexpr const char* group = "The table";
  add_reader_options(command, request->table, group);
  command.add_option("--values", request->table.values, "Columns to forecast")
      .comma_separated()
      .type_name("COLUMN,...")
      .group(group);
  add_whole(command, "--context", request->table.context, 1, 1'000'000'000, "invalid_context",
            "Steps that the model is to see, at most (default 4096)")
      .group(group);
  add_whole(command, "--series", request->series, 0, 1'000'000'000, "invalid_count",
            "Series that are listed of each file (default 20)")
      .group("Results");
  command.add_flag("--json", request->json, "Write one JSON document to standard output")
      .group("Results");
  command.callback(
      [request, &session] { session.run = [request] { return run_inspect(*request); }; });
}

}  // namespace toto::cli
