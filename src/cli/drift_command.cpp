// SPDX-License-Identifier: Apache-2.0
// toto drift: whether forecasts are still those that were recorded, for a job that runs every day.
#include <memory>

#include "cli/command.h"
#include "cli/verify_suite.h"

namespace toto::cli {

void add_drift(const Command& app, Session& session) {
  const auto request = std::make_shared<SuiteRequest>();
  const Command command = add_command(
      app, session, "drift",
      "Forecasts the series of --data and compares with a record that toto verify --record left of "
      "the same series. Exit status 0: the same within 1e-5 of scale; 1: forecasts have drifted; "
      "3: "
      "something could not be compared (another model, other series or values).",
      "  toto verify --data canary/ --record record.json\n"
      "  toto drift --data canary/ --against record.json\n"
      "  toto drift --data canary/ --against record.json --json > today.json\n");
  constexpr const char* group = "The comparison";
  command.add_option("--data", request->data, "CSV files, or folders of them: the recorded series")
      .required()
      .type_name("FILE...")
      .group(group);
  command.add_option("--against", request->against, "The record")
      .required()
      .type_name("FILE")
      .group(group);
  command.add_flag("--json", request->json, "Print JSON").group(group);
  add_model_option(command, request->settings);
  add_model_options(command, request->query);
  add_settings_options(command, request->settings);
  command.callback([request, &session] {
    session.run = [request, &session] { return run_drift(*request, session); };
  });
}

}  // namespace toto::cli
