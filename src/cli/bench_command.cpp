// SPDX-License-Identifier: Apache-2.0
// toto bench: how fast forecasts are here, and how close to what the machine can do.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/json_text.h"
#include "core/input_file.h"
#include "core/json.h"
#include "tools/bench/report.h"
#include "toto/settings.hpp"
#include "toto/tools/bench.hpp"

namespace toto::cli {
namespace {

constexpr std::uint64_t kSyntheticSeed = 8;
constexpr std::size_t kMaxReport = std::size_t{64} << 20;

struct BenchRequest {
  std::vector<std::string> workloads = {"a"};
  std::vector<std::string> modes = {"reduce-overhead"};
  std::vector<std::string> types = {"float32"};
  ModelQuery query;
  SettingsFlags settings;
  std::size_t runs = 30;
  double seconds = 60;
  bool keep_samples = false;
  std::string warmup;
  bool json = false;
  std::string compare;
};

template <typename T>
std::vector<T> parse_all(const std::vector<std::string>& words, T (*parse)(const SettingsFlags&),
                         std::optional<std::string> SettingsFlags::*flag) {
  std::vector<T> values;
  for (const std::string& word : words) {
    SettingsFlags flags;
    flags.*flag = word;
    values.push_back(parse(flags));
  }
  return values;
}

std::vector<BenchSubject> load_subjects(const BenchRequest& request, const Session& session) {
  const auto modes = parse_all<Mode>(
      request.modes, [](const SettingsFlags& f) { return resolve_settings(f).mode.value; },
      &SettingsFlags::mode);
  const auto types = parse_all<Precision>(
      request.types, [](const SettingsFlags& f) { return resolve_settings(f).precision.value; },
      &SettingsFlags::precision);
  Settings settings = resolve_settings(request.settings);
  for (const Precision type : types) {
    settings.precision.value = type;
    only_on_cpu(settings);
  }
  settings.precision.value = Precision::float32;
  const LoadOptions from_settings = load_options(settings, session);
  std::vector<BenchSubject> subjects;
  for (const Mode mode : modes) {
    for (const Precision type : types) {
      LoadOptions options;
      options.mode = mode;
      options.precision = type;
      options.threads = from_settings.threads;
      options.backend = from_settings.backend;
      if (type == Precision::float64) options.backend = "reference";
      const std::string label = fmt::format("{} {}", word(mode), word(type));
      note(session, "loading for " + label);
      subjects.push_back(
          {label, request.query.model.empty()
                      ? Model::synthesise("toto-open-base-1.0", kSyntheticSeed, options)
                      : Model::load(request.query, options)});
    }
  }
  return subjects;
}

/// What `toto bench --json` prints, as far as it is read.
void check_report(const nlohmann::json& report, const std::string& path) {
  const auto is_row = [](const nlohmann::json& row) {
    const auto has = [&](const char* key, auto is) {
      return row.contains(key) && (row[key].*is)();
    };
    return row.is_object() && has("workload", &nlohmann::json::is_string) &&
           has("subject", &nlohmann::json::is_string) &&
           has("median_ms", &nlohmann::json::is_number);
  };
  const bool fits = report.is_object() && report.contains("rows") && report["rows"].is_array() &&
                    std::ranges::all_of(report["rows"], is_row);
  if (fits) return;
  throw Error(ExitStatus::bad_data, "invalid_report", "expected rows of workload and median_ms",
              path, "write it with toto bench --json");
}

ExitStatus run(const BenchRequest& request, const Session& session) {
  std::vector<Workload> workloads;
  for (const std::string& text : request.workloads) {
    workloads.push_back(parse_workload(text));
    workloads.back().keep_samples = request.keep_samples;
  }
  std::optional<nlohmann::json> before;
  if (!request.compare.empty()) {
    before = parse_json(read_text_file(request.compare, kMaxReport, ExitStatus::bad_data),
                        ExitStatus::bad_data, request.compare);
    check_report(*before, request.compare);
  }
  const std::vector<BenchSubject> subjects = load_subjects(request, session);
  BenchOptions options;
  options.runs = request.runs;
  options.max_seconds = request.seconds;
  if (!request.warmup.empty()) options.warmup = parse_warmup(request.warmup);
  options.progress = [&](std::string_view what) { note(session, what); };
  const BenchReport report = run_bench(workloads, subjects, options);
  print(request.json ? json_text(bench_json(report))
                     : bench_text(report, before ? &*before : nullptr));
  return ExitStatus::ok;
}

}  // namespace

void add_bench(const Command& app, Session& session) {
  const auto request = std::make_shared<BenchRequest>();
  const Command command = add_command(
      app, session, "bench",
      "Measures forecasts and what this machine can do at best. Without --model it runs the "
      "published architecture with synthetic weights. With a device, % compute is a share of the "
      "measured rate of the library's own product on a large matrix there (cuBLAS reaches more) "
      "and % memory of the measured rate of copies within it, both of the time on the device.",
      "  toto bench\n"
      "  toto bench a b c --mode eager,default,reduce-overhead --dtype float32,bfloat16\n"
      "  toto bench a b c --device cuda --dtype float32,tf32,bfloat16\n"
      "  toto bench 50x1x512x7x4096 --json > now.json\n"
      "  toto bench a --compare before.json\n");
  command.add_option("workloads", request->workloads,
                     "a, b, c (docs/benchmarks.md) or SERIESxVARIATESxCONTEXTxHORIZON[xSAMPLES]");
  command.add_option("--device", request->settings.device,
                     "cpu (default), cuda or auto (TOTO_COMPILE_BACKEND)");
  command.add_option("--mode", request->modes, "Modes, separated by commas").comma_separated();
  command.add_option("--dtype,--precision", request->types, "float32, tf32, bfloat16, float64")
      .comma_separated();
  command.add_option("-m,--model", request->query.model,
                     "A checkpoint instead of synthetic weights");
  command
      .add_option("--threads", request->settings.threads,
                  "Threads (default: TOTO_NUM_THREADS, then one for each core)")
      .type_name("N");
  add_whole(command, "--runs", request->runs, 1, 100'000, "invalid_runs",
            "Timed forecasts of each kind (default 30)");
  add_number(command, "--seconds", request->seconds, 0, 1e9, "invalid_seconds",
             "At most so long for each kind, after three runs (default 60)");
  command.add_flag("--keep-samples", request->keep_samples,
                   "Draw every trajectory, also where exact statistics need none");
  command.add_option("--warmup", request->warmup,
                     "Build plans for these shapes first: CONTEXTxHORIZON[xVARIATES[xBATCH]],...");
  command.add_flag("--json", request->json, "Print JSON");
  command.add_option("--compare", request->compare,
                     "A JSON report of an earlier run: shows how many times faster this one is");
  add_model_options(command, request->query);
  command.callback([request, &session] {
    session.run = [request, &session] { return run(*request, session); };
  });
}

}  // namespace toto::cli
