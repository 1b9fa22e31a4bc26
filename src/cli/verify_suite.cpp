// SPDX-License-Identifier: Apache-2.0
#include "cli/verify_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "cli/allocations.h"
#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/help_groups.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/result_paths.h"
#include "cli/second_process.h"
#include "core/file_set.h"
#include "toto/tools/data.hpp"

namespace toto::cli {
namespace {

Suite parse_suite(const std::string& text) {
  return parse_choice<Suite>(
      text, "--suite", {{"quick", Suite::quick}, {"full", Suite::full}, {"soak", Suite::soak}});
}

/// Files of the same columns give series of the same ids: those get the file's stem in front, as
/// bars have it anyway.
void tell_apart(std::vector<data::TimeSeries>& all, const std::vector<std::string>& stems) {
  std::map<std::string, std::size_t> count;
  for (const data::TimeSeries& series : all) ++count[series.id];
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (count[all[i].id] > 1) all[i].id = stems[i] + "/" + all[i].id;
  }
  count.clear();
  for (const data::TimeSeries& series : all) {
    if (++count[series.id] == 1) continue;
    throw Error(ExitStatus::bad_data, "duplicate_id", "two series have this id",
                fmt::format("series '{}'", series.id),
                "ids address the random numbers: give files names of their own");
  }
}

/// All series of all files. One that cannot be forecast is an error: verification leaves nothing
/// out.
std::vector<data::TimeSeries> read_all(const std::vector<std::string>& files, std::size_t patch) {
  std::vector<data::TimeSeries> all;
  std::vector<std::string> stems;  // of each series
  for (const std::string& path : files) {
    data::CsvOptions options;
    options.context = 1 << 20;  // the past is what forecasts are held against
    options.min_observations = patch;
    data::Dataset set = data::read_csv(path, options);
    for (const std::string& warning : set.warnings) warn(warning);
    if (!set.errors.empty()) throw Error(set.errors.front().error);
    for (data::TimeSeries& series : set.series) {
      all.push_back(std::move(series));
      stems.push_back(std::filesystem::path(path).stem().string());
    }
  }
  cli::tell_apart(all, stems);
  return all;
}

/// The command line of this process, with every argument as it is; the program's own path aside.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> all;
  for (std::string one; std::getline(file, one, '\0');) all.push_back(one);
  if (!all.empty()) all.erase(all.begin());
  return all;
}

std::string quoted(const std::string& argument) {
  if (!argument.empty() &&
      argument.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                                 "TUVWXYZ0123456789-_=./,:+@") == std::string::npos) {
    return argument;
  }
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// What one types to get the same report again: flags that say where it goes left out.
std::string command_of(const std::vector<std::string>& arguments) {
  std::string text = "toto";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& one = arguments[i];
    if (one == "--report" || one == "--only" || one == "--record") {
      ++i;
      continue;
    }
    if (one == "--json" || one.starts_with("--report=") || one.starts_with("--only=") ||
        one.starts_with("--record=")) {
      continue;
    }
    text += ' ';
    text += quoted(one);
  }
  return text;
}

using Writer = std::string (*)(const VerifyReport&);

Writer writer_for(const std::string& path) {
  if (path.ends_with(".json")) return verify_json;
  if (path.ends_with(".md")) return verify_markdown;
  if (path.ends_with(".html")) return verify_html;
  throw Error(ExitStatus::usage, "unknown_suffix",
              fmt::format("expected a name that ends in .md, .html or .json, found '{}'", path),
              "--report");
}

/// A report must not take the place of another one, nor of what is compared with. The record may:
/// it is for the next comparison.
void check_paths(const SuiteRequest& request) {
  std::vector<NamedPath> results = {{"--record", request.record}};
  for (const std::string& path : request.reports) results.push_back({"--report", path});
  require_distinct(results);
  require_inputs_kept(request.data, results);
  results.front() = {"--against", request.against};
  require_distinct(results);
}

std::string_view conclusion(const VerifyReport& report) {
  switch (report.status()) {
    case ExitStatus::ok:
      return "every check ran and held";
    case ExitStatus::attention:
      return "PARTIAL: the checks that were asked for held, the others were not run. This approves "
             "nothing (exit status 1)";
    default:
      return report.partial ? "PARTIAL, and a check that was asked for does not hold: DO NOT DEPLOY"
                            : "DO NOT DEPLOY";
  }
}

std::string short_text(const VerifyReport& report) {
  std::string text;
  std::size_t held = 0, warned = 0;
  for (const Check& c : report.checks) {
    held += c.verdict == Verdict::holds ? 1 : 0;
    warned += c.verdict == Verdict::warning ? 1 : 0;
    if (c.verdict == Verdict::holds) continue;
    text += fmt::format("{:13} {}: {}: {:.3g} {}, bound {:.3g} ({})\n", word(c.verdict), c.group,
                        c.name, c.value, c.unit, c.bound, c.why);
  }
  return text + fmt::format(
                    "{}, suite {}: {} checks, {} hold, {} warn, {} fail or could not run; "
                    "{:.0f} s\n{}\n",
                    report.model, word(report.suite), report.checks.size(), held, warned,
                    report.checks.size() - held - warned, report.seconds, conclusion(report));
}

std::vector<Mode> parse_modes(const std::vector<std::string>& words) {
  std::vector<Mode> modes;
  for (const std::string& word : words) {
    if (word == "all") {
      return {Mode::eager, Mode::planned, Mode::reduce_overhead, Mode::max_autotune};
    }
    modes.push_back(parse_choice<Mode>(word, "--modes",
                                       {{"all", Mode::eager},
                                        {"eager", Mode::eager},
                                        {"default", Mode::planned},
                                        {"reduce-overhead", Mode::reduce_overhead},
                                        {"max-autotune", Mode::max_autotune}}));
  }
  return modes;
}

VerifyOptions options_of(const SuiteRequest& request, const Settings& settings,
                         const Session& session) {
  VerifyOptions o;
  if (request.suite) o.suite = parse_suite(*request.suite);
  o.modes = parse_modes(request.modes);
  o.query = request.query;
  o.query.model = settings.model.value;
  o.load = load_options(settings, session);
  o.load.else_cpu = false;  // what is verified stays where it is
  o.settings = describe(settings);
  o.unknown_variables = unknown_variables();
  o.forecaster.memory_limit = settings.memory_limit.value;
  o.forecaster.max_plans = settings.max_plans.value;
  o.forecaster.plan_cache_dir = settings.plan_cache_dir.value;
  o.forecaster.plan_cache = settings.plan_cache.value;
  o.seed = settings.seed.value;
  o.golden = request.golden;
  o.record = request.record;
  o.against = request.against;
  o.only = request.only;
  o.soak_seconds = static_cast<double>(request.soak_seconds);
  o.allocations = allocations;
  return o;
}

/// The user's series, for as long as a run looks at them.
struct OwnData {
  std::vector<data::TimeSeries> tables;
  std::vector<Series> series;

  OwnData(const SuiteRequest& request, VerifyOptions& options)
      : tables(read_all(data::csv_files(request.data),
                        static_cast<std::size_t>(inspect_model(options.query).patch_size))) {
    series.reserve(tables.size());
    for (const data::TimeSeries& one : tables) series.push_back(one.view());
    options.data = series;
    options.data_name = fmt::format("{}", fmt::join(request.data, ", "));
  }
};

}  // namespace

void add_suite_options(const Command& command, SuiteRequest& request) {
  constexpr const char* group = "The suite";
  command.add_option("--suite", request.suite, "quick (default), full or soak")
      .type_name("WORD")
      .group(kFirstFlags);
  command
      .add_option("--data", request.data,
                  "CSV files, or folders of them, as for toto forecast: your own series (default: "
                  "series made by a formula)")
      .type_name("FILE...")
      .group(kFirstFlags);
  command
      .add_option("--report", request.reports,
                  "Write the report here, Markdown, HTML or JSON by the suffix; may be repeated")
      .type_name("FILE")
      .one_value()
      .group(kFirstFlags);
  command
      .add_option("--record", request.record,
                  "Leave the forecasts' parameters here, for a later --against")
      .type_name("FILE")
      .group(group);
  command
      .add_option("--against", request.against,
                  "Compare with what another build or machine recorded")
      .type_name("FILE")
      .group(group);
  command
      .add_option("--modes", request.modes,
                  "Modes to judge, the one in force among them, or all (default: the one in force; "
                  "eager is always run, since others are compared with it)")
      .comma_separated()
      .type_name("LIST")
      .group(kFirstFlags);
  command
      .add_option("--only", request.only,
                  "Run the checks whose name contains this, to look into one: a partial verdict, "
                  "status 1 where they hold")
      .type_name("TEXT")
      .group(group);
  add_whole(command, "--soak-seconds", request.soak_seconds, 1, 10'000'000, "invalid_setting",
            "How long the suite soak goes on forecasting (default 600)")
      .group(group);
  add_model_option(command, request.settings);
  add_seed_option(command, request.settings, group);
  add_model_options(command, request.query);
  command.add_flag("--second-process", request.second_process, "").group("");
}

bool wants_suite(const SuiteRequest& request) {
  return request.suite || request.second_process || request.golden.empty() ||
         !request.data.empty() || !request.reports.empty() || !request.record.empty() ||
         !request.against.empty() || !request.only.empty() || !request.modes.empty();
}

ExitStatus run_verify_suite(const SuiteRequest& request, const Session& session) {
  if (request.second_process) end_with_parent();
  const Interrupt interrupt;
  // Opened first, so that a path that cannot be written costs no time.
  FileSet files;
  std::vector<std::pair<Writer, AtomicFile*>> reports;
  if (!request.second_process) {
    check_paths(request);
    for (const std::string& path : request.reports) {
      reports.emplace_back(writer_for(path), &files.add(path));
    }
  }
  const Settings settings = resolve_settings(request.settings);
  VerifyOptions options = options_of(request, settings, session);
  const OwnData data(request, options);
  const std::vector<std::string> arguments = own_arguments();
  options.command = command_of(arguments);
  if (request.second_process) {
    print(verify_bits(options));
    return ExitStatus::ok;
  }
  options.second_process = [arguments] {
    std::vector<std::string> more = arguments;
    more.emplace_back("--second-process");
    return run_second_process(more);
  };
  ProgressBar bar("verifying", session.quiet);
  options.progress = [&](std::size_t done, std::size_t total, std::string_view) {
    bar.update(done, total);
    return !interrupt.requested();
  };
  const VerifyReport report = verify_suite(options);
  bar.finish();
  for (const auto& [write, file] : reports) file->write(write(report));
  files.commit();
  print(request.json ? verify_json(report) : short_text(report));
  return report.status();
}

ExitStatus run_drift(const SuiteRequest& request, const Session& session) {
  const Settings settings = resolve_settings(request.settings);
  VerifyOptions options = options_of(request, settings, session);
  const OwnData data(request, options);
  options.command = command_of(own_arguments());
  const VerifyReport report = verify_drift(options);
  const ExitStatus status = drift_status(report);
  if (request.json) {
    print(drift_json(report));
    return status;
  }
  for (const Check& c : report.checks) {
    if (c.verdict == Verdict::holds) continue;
    print(fmt::format("{:13} {}: {:.3g} {}, bound {:.3g} ({})\n", word(c.verdict), c.name, c.value,
                      c.unit, c.bound, c.why));
  }
  print(status == ExitStatus::ok ? "no drift: forecasts are those that were recorded\n"
        : status == ExitStatus::attention
            ? "DRIFT: forecasts are no longer those that were recorded\n"
            : "NOT COMPARED: not everything could be compared\n");
  return status;
}

}  // namespace toto::cli
