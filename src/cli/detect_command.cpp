// SPDX-License-Identifier: Apache-2.0
// toto detect: which observations were not to be expected.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "cli/arguments.h"
#include "cli/detect_request.h"
#include "cli/forecast_options.h"
#include "cli/help_groups.h"
#include "cli/interrupt.h"
#include "cli/process.h"
#include "cli/progress.h"
#include "cli/reader_options.h"
#include "cli/result_paths.h"
#include "core/file_set.h"

namespace toto::cli {
namespace {

void check(const DetectRequest& request) {
  if (!request.plot.empty() && !request.plot.ends_with(".svg") &&
      !request.plot.ends_with(".html")) {
    throw Error(ExitStatus::usage, "unknown_suffix",
                fmt::format("expected a name that ends in .svg or .html, found '{}'", request.plot),
                "--plot");
  }
  const std::vector<NamedPath> results = {
      {"--output", request.output}, {"--plot", request.plot}, {"--json", request.json ? "-" : ""}};
  require_distinct(results);
  require_inputs_kept(request.inputs, results);
  if (request.follow && (!request.output.empty() || !request.plot.empty() || request.last > 0)) {
    throw Error(ExitStatus::usage, "conflicting_flags",
                "rows that are followed are written to standard output, one by one", "--follow");
  }
  if (request.inputs == std::vector<std::string>{"-"} && isatty(STDIN_FILENO) != 0) {
    throw Error(ExitStatus::usage, "missing_argument", "expected a file or data on standard input",
                "toto detect", "see toto detect --help");
  }
}

data::Dataset read_inputs(const DetectRequest& request) {
  data::Dataset all;
  std::vector<std::string> files;
  for (const std::string& input : data::csv_files(request.inputs)) {
    data::Dataset one = data::read_csv(input, request.csv);
    files.insert(files.end(), one.series.size(), one.reading.file);
    std::ranges::move(one.series, std::back_inserter(all.series));
    std::ranges::move(one.errors, std::back_inserter(all.errors));
    std::ranges::move(one.warnings, std::back_inserter(all.warnings));
  }
  data::tell_apart(all.series, files);
  for (const std::string& warning : all.warnings) warn(warning);
  for (const data::SeriesError& failed : all.errors) report(failed.error);
  return all;
}

ExitStatus show(const DetectRequest& request, const data::Dataset& data,
                std::vector<detect::Scored>& scored, const ModelInfo& info,
                const Session& session) {
  FileSet files;
  if (!request.plot.empty()) {
    const plot::Figure figure = detect::make_figure(data.series, scored, info);
    files.add(request.plot)
        .write(request.plot.ends_with(".svg") ? plot::to_svg(figure) : plot::to_html(figure));
  }
  if (request.last > 0) keep_last(scored, data.series, request.last);
  detect::WriteOptions write = request.write;
  write.synthetic = info.synthetic;
  const auto lines = [&](const data::TextSink& sink) {
    for (const detect::Scored& one : scored) {
      detect::write_lines(sink, one, data.series[one.index].style, write);
    }
  };
  if (!request.output.empty() && request.output != "-") {
    AtomicFile& file = files.add(request.output);
    lines([&file](std::string_view text) { file.write(text); });
  }
  files.commit();
  const bool printed = request.json || request.output == "-";
  if (printed) {
    lines(print);
  } else if (!session.quiet && has_standard_output()) {
    print(detect_table(data.series, scored, request.options.min_history, info));
  }
  if (!data.errors.empty()) return data.errors.front().error.status();
  const bool found =
      std::ranges::any_of(scored, [](const detect::Scored& one) { return one.anomalies > 0; });
  return found ? ExitStatus::attention : ExitStatus::ok;
}

ExitStatus run_detect(DetectRequest& request, const Session& session) {
  const Interrupt interrupt;
  check(request);
  const Settings settings = resolve_settings(request.settings);
  settings.apply(request.query);
  const ModelInfo info = inspect_model(request.query);
  for (const std::string& warning : info.warnings) warn(warning);
  request.csv.context = std::size_t{1} << 40;  // all of it
  const data::Dataset data = request.follow ? data::Dataset() : read_inputs(request);
  if (data.series.empty() && !data.errors.empty()) return data.errors.front().error.status();

  Forecaster forecaster(Model::load(request.query, load_options(settings, session)),
                        forecaster_options(settings));
  ProgressBar bar("scoring", session.quiet || request.follow);
  request.options.progress = [&](std::size_t done, std::size_t total) {
    bar.update(done, total);
    return !interrupt.requested();
  };
  if (request.options.min_history == 0) {
    request.options.min_history = 4 * static_cast<std::size_t>(std::max(1, info.patch_size));
  }
  detect::Detector detector(forecaster, request.options);
  if (request.follow) return follow(request, detector, info.synthetic);
  std::vector<detect::Scored> scored = detector.update(data.series);
  return show(request, data, scored, info, session);
}

void add_table_options(const Command& command, DetectRequest& request) {
  constexpr const char* group = "The table";
  add_reader_options(command, request.csv, group);
  command.add_option("--values", request.csv.values, "Columns to look at")
      .comma_separated()
      .type_name("COLUMN,...")
      .group(group);
  command
      .add_flag("--multivariate", request.csv.joint,
                "The value columns are variates of one series and forecast jointly")
      .group(group);
  using enum data::Missing;
  add_choice<data::Missing>(
      command, "--missing", request.csv.missing,
      {{"ffill", ffill}, {"linear", linear}, {"zero", zero}, {"error", error}},
      "What forecasts see in place of a missing value: ffill (default), linear, zero or error; it "
      "is never scored")
      .group(group);
}

void add_score_options(const Command& command, DetectRequest& request) {
  detect::Options& options = request.options;
  constexpr const char* group = "The scores";
  add_whole(command, "--context", options.context, 1, 10'000'000, "invalid_context",
            "Steps that each forecast looks at, at most (default 4096)")
      .group(group);
  add_whole(
      command, "--block", options.block, 1, 100'000, "invalid_block",
      "Steps forecast from one origin, at most a patch (default: a patch); 1 follows a change "
      "of level at once, and costs as many forecasts as there are steps")
      .group(group);
  add_whole(command, "--min-history", options.min_history, 1, 10'000'000, "invalid_context",
            "Steps before the first one that is scored (default: four patches)")
      .group(group);
  add_choice<bool>(command, "--score", request.write.in_bits, {{"p", false}, {"bits", true}},
                   "p (default): the probability of something as extreme; bits: -log2 of it")
      .group(group);
  using enum detect::Side;
  add_choice<detect::Side>(command, "--side", options.side,
                           {{"both", both}, {"above", above}, {"below", below}},
                           "What can be an anomaly: values far above or far below (both, default), "
                           "or only one of them")
      .group(group);
  add_decoding_options(command, options.decoding);
}

}  // namespace

void add_detect(const Command& app, Session& session) {
  const auto request = std::make_shared<DetectRequest>();
  const Command command = add_command(
      app, session, "detect",
      "Finds anomalies. Each observation is scored by its probability under the forecast that was "
      "made before it. Exit status 1: there is an anomaly among what is reported; 0: there is "
      "none.",
      "  toto detect latency.csv --false-alarms 1 --plot anomalies.html\n"
      "  toto detect latency.csv --last 12 --quiet || echo look at it\n"
      "  toto detect metrics/ --json --anomalies --score bits\n"
      "  tail -n +1 -f latency.csv | toto detect --follow --anomalies\n");
  command
      .add_option(
          "INPUT", request->inputs,
          "Files and folders of tables, each row a time step; - is standard input (default)")
      .type_name("FILE");
  constexpr const char* group = "What is an anomaly";
  const Flag threshold =
      add_number(command, "--threshold", request->options.threshold, 1e-12, 0.5,
                 "invalid_threshold", "An observation with p at or below this (default 0.001)");
  threshold.group(group);
  add_number(command, "--false-alarms", request->options.false_alarms, 1e-9, 1e9,
             "invalid_false_alarms",
             "As many a day as should be raised by chance: the threshold by the series' interval")
      .excludes(threshold)
      .group(kFirstFlags);
  add_whole(command, "--hold", request->options.hold, 0, 1'000'000, "invalid_count",
            "Steps after a score in which only higher ones count, so that what goes on is raised "
            "once (default 0)")
      .group(kFirstFlags);
  add_whole(command, "--last", request->last, 1, 1'000'000'000, "invalid_count",
            "Report only the last so many steps of each series (default: all)")
      .group(kFirstFlags);
  command
      .add_flag("--follow", request->follow,
                "Score the rows of standard input as they come; files, if any, are the history")
      .group(group);
  command
      .add_flag("--json", request->json, "A line of JSON for each scored step, to standard output")
      .group("Results");
  command.add_option("--output,-o", request->output, "Write these lines here; - is standard output")
      .type_name("FILE")
      .group("Results");
  command.add_flag("--anomalies", request->write.only_anomalies, "Write lines for anomalies only")
      .group("Results");
  command.add_option("--plot", request->plot, "Draw the series: .svg or .html by the suffix")
      .type_name("FILE")
      .group(kFirstFlags);
  add_score_options(command, *request);
  add_table_options(command, *request);
  add_model_option(command, request->settings);
  add_model_options(command, request->query);
  add_settings_options(command, request->settings);
  command.callback([request, &session] {
    session.run = [request, &session] { return run_detect(*request, session); };
  });
}

}  // namespace toto::cli
