// SPDX-License-Identifier: Apache-2.0
// toto verify: a suite of checks (cli/verify_suite.h), or golden cases alone: this build against
// outputs of the official implementation.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_text.h"
#include "cli/verify_suite.h"
#include "toto/tools/verify.hpp"

namespace toto::cli {
namespace {

using nlohmann::ordered_json;

// JSON has no infinity; an error is infinite where a value is not finite or a shape differs.
ordered_json number(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

ordered_json to_json(const GoldenReport& report) {
  ordered_json cases = ordered_json::array();
  for (const GoldenCase& one : report.cases) {
    ordered_json checks = ordered_json::array();
    for (const TensorCheck& check : one.checks) {
      checks.push_back({{"tensor", check.tensor},
                        {"execution", check.execution},
                        {"measure", check.measure},
                        {"error", number(check.error)},
                        {"bound", check.bound},
                        {"place", check.place},
                        {"expected", number(check.expected)},
                        {"found", number(check.found)},
                        {"holds", check.holds()}});
    }
    cases.push_back({{"folder", one.folder},
                     {"model", one.model},
                     {"full_size", one.full_size},
                     {"seconds", one.seconds},
                     {"holds", one.holds()},
                     {"checks", checks}});
  }
  return {{"backend", report.backend},
          {"precision", report.precision},
          {"holds", report.holds()},
          {"cases", cases}};
}

std::string to_text(const GoldenCase& one) {
  std::string text = fmt::format("{}: {}, {:.1f} s\n", one.folder, one.model, one.seconds);
  text += fmt::format("  {:28} {:8} {:>9} {:>9}  {}\n", "tensor", "as", "error", "bound", "at");
  for (const TensorCheck& check : one.checks) {
    text += fmt::format("  {:28} {:8} {:9.2e} {:9.0e}  {}{}\n", check.tensor, check.execution,
                        check.error, check.bound, check.place,
                        check.holds() ? ""
                                      : fmt::format("  EXCEEDED: expected {}, found {} ({})",
                                                    check.expected, check.found, check.measure));
  }
  return text;
}

ExitStatus run_golden(const SuiteRequest& options, const Session& session) {
  const Interrupt interrupt;
  LoadOptions load = load_options(resolve_settings(options.settings), session);
  load.else_cpu = false;  // what is verified stays where it is
  GoldenReport report;
  for (const std::string& folder : options.golden) {  // one by one, to show them as they are done
    GoldenReport part = verify_golden(std::span(&folder, 1), load);
    if (interrupt.requested()) throw Error(ExitStatus::interrupted, "interrupted", "stopped");
    if (!options.json && !session.quiet) print(to_text(part.cases.front()));
    report.backend = part.backend;
    report.precision = part.precision;
    report.cases.push_back(std::move(part.cases.front()));
  }
  std::size_t checks = 0;
  std::size_t exceeded = 0;
  for (const GoldenCase& one : report.cases) {
    checks += one.checks.size();
    for (const TensorCheck& check : one.checks) exceeded += check.holds() ? 0 : 1;
  }
  print(options.json
            ? json_text(to_json(report))
            : fmt::format("{} backend, {}: {} cases, {} comparisons, {} beyond their bound\n",
                          report.backend, report.precision, report.cases.size(), checks, exceeded));
  return report.holds() ? ExitStatus::ok : ExitStatus::verification_failed;
}

}  // namespace

void add_verify(const Command& app, Session& session) {
  const auto options = std::make_shared<SuiteRequest>();
  const Command command = add_command(
      app, session, "verify",
      "Says whether this build, on this machine, with this model and these series, may be "
      "deployed. Exit status 0 if every check ran and held, 3 otherwise (docs/production.md). With "
      "--golden alone it only compares this build with golden cases: folders of inputs and outputs "
      "that were exported from the official implementation (docs/verification.md).",
      "  toto verify --data bars/ --report verify.html\n"
      "  toto verify --suite full --model Datadog/Toto-Open-Base-1.0 --data bars/ --report v.md\n"
      "  toto verify --data bars/ --record before.json\n"
      "  toto verify --data bars/ --against before.json\n"
      "  toto verify --golden tests/data/golden/*-tiny-*\n"
      "  toto verify --golden golden/* --precision float64 --json\n");
  command.add_option("--golden", options->golden, "Folders of golden cases").type_name("DIR...");
  add_suite_options(command, *options);
  add_settings_options(command, options->settings);
  command.add_flag("--json", options->json, "Print JSON");
  command.callback([options, &session] {
    session.run = [options, &session] {
      return wants_suite(*options) ? run_verify_suite(*options, session)
                                   : run_golden(*options, session);
    };
  });
}

}  // namespace toto::cli
