// SPDX-License-Identifier: Apache-2.0
// toto bench: how fast forecasts are here, and how close to what the machine can do.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/arguments.h"
#include "cli/command.h"
#include "core/input_file.h"
#include "core/json.h"
#include "toto/bench.hpp"
#include "toto/settings.hpp"

namespace toto::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kSyntheticSeed = 8;
constexpr std::size_t kMaxReport = std::size_t{64} << 20;

struct BenchRequest {
  std::vector<std::string> workloads = {"a"};
  std::vector<std::string> modes = {"reduce-overhead"};
  std::vector<std::string> types = {"float32"};
  ModelQuery query;
  SettingsFlags settings;
  int threads = 0;
  std::size_t runs = 30;
  double seconds = 60;
  bool keep_samples = false;
  std::string warmup;
  bool json = false;
  std::string compare;
};

ordered_json to_json(const BenchReport& report) {
  const MachineRates& m = report.machine;
  ordered_json rows = ordered_json::array();
  for (const BenchRow& r : report.rows) {
    rows.push_back({{"workload", r.workload},
                    {"subject", r.subject},
                    {"runs", r.runs},
                    {"median_ms", r.median * 1e3},
                    {"p95_ms", r.p95 * 1e3},
                    {"p99_ms", r.p99 * 1e3},
                    {"fastest_ms", r.fastest * 1e3},
                    {"device_median_ms", r.device_median * 1e3},
                    {"device_p99_ms", r.device_p99 * 1e3},
                    {"coefficient_of_variation", r.variation},
                    {"series_per_second", r.series_per_second},
                    {"operations", r.operations},
                    {"weight_bytes", r.weight_bytes},
                    {"percent_of_compute", r.percent_of_compute},
                    {"percent_of_memory", r.percent_of_memory},
                    {"peak_rss_mib", static_cast<double>(r.peak_rss) / (1 << 20)},
                    {"counters", ordered_json::parse(to_json(r.counters))}});
  }
  return {{"model", report.model},
          {"machine",
           {{"processor", m.processor},
            {"isa", m.isa},
            {"threads", m.threads},
            {"float32_gflops", m.float32_per_second / 1e9},
            {"bfloat16_gflops", m.bfloat16_per_second / 1e9},
            {"read_gb_per_second", m.read_bytes_per_second / 1e9},
            {"usual_read_gb_per_second", m.usual_read_bytes_per_second / 1e9},
            {"jitter", m.jitter}}},
          {"rows", rows}};
}

/// The median of the same row in an earlier report; 0 where there is none.
double earlier(const nlohmann::json& report, const BenchRow& row) {
  for (const auto& r : report.value("rows", nlohmann::json::array())) {
    if (r.value("workload", "") == row.workload && r.value("subject", "") == row.subject) {
      return r.value("median_ms", 0.0) / 1e3;
    }
  }
  return 0;
}

std::string to_text(const BenchReport& report, const nlohmann::json* before) {
  const MachineRates& m = report.machine;
  std::string text = fmt::format(
      "{}, {}, {} threads: {:.0f} GFLOP/s float32, {:.0f} bfloat16, {:.1f} GB/s read at "
      "best and {:.1f} usually, p99/p50 of an empty loop {:.2f}\nmodel {}\n\n",
      m.processor, m.isa, m.threads, m.float32_per_second / 1e9, m.bfloat16_per_second / 1e9,
      m.read_bytes_per_second / 1e9, m.usual_read_bytes_per_second / 1e9, m.jitter, report.model);
  text += fmt::format("{:22} {:26} {:>5} {:>11} {:>9} {:>9} {:>6} {:>10} {:>9} {:>8} {:>8}{}\n",
                      "workload", "as", "runs", "median ms", "p95", "p99", "spread", "series/s",
                      "% compute", "% memory", "RSS MiB", before != nullptr ? "   before" : "");
  for (const BenchRow& r : report.rows) {
    text += fmt::format(
        "{:22} {:26} {:>5} {:>11.2f} {:>9.2f} {:>9.2f} {:>5.1f}% {:>10.1f} {:>8.1f}% {:>7.1f}% "
        "{:>8.0f}",
        r.workload, r.subject, r.runs, r.median * 1e3, r.p95 * 1e3, r.p99 * 1e3, 100 * r.variation,
        r.series_per_second, r.percent_of_compute, r.percent_of_memory,
        static_cast<double>(r.peak_rss) / (1 << 20));
    if (before != nullptr) {
      const double was = earlier(*before, r);
      text += was > 0 ? fmt::format("   {:.2f} x", was / r.median) : "         -";
    }
    if (r.device_median > 0) {
      text += fmt::format("\n{:22} {:26} {:>5} {:>11.3f} {:>9} {:>9.3f}", "", "  on the device", "",
                          r.device_median * 1e3, "", r.device_p99 * 1e3);
    }
    text += "\n";
  }
  return text;
}

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
      options.threads = request.threads;
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
  }
  const std::vector<BenchSubject> subjects = load_subjects(request, session);
  BenchOptions options;
  options.runs = request.runs;
  options.max_seconds = request.seconds;
  if (!request.warmup.empty()) options.warmup = parse_warmup(request.warmup);
  options.progress = [&](std::string_view what) { note(session, what); };
  const BenchReport report = run_bench(workloads, subjects, options);
  print(request.json ? to_json(report).dump(2) + "\n"
                     : to_text(report, before ? &*before : nullptr));
  return ExitStatus::ok;
}

}  // namespace

void add_bench(CLI::App& app, Session& session) {
  const auto request = std::make_shared<BenchRequest>();
  CLI::App* const command = add_command(
      app, session, "bench",
      "Measures forecasts and what this machine can do at best. Without --model it runs the "
      "published "
      "architecture with synthetic weights.",
      "  toto bench\n"
      "  toto bench a b c --mode eager,default,reduce-overhead --dtype float32,bfloat16\n"
      "  toto bench 50x1x512x7x4096 --json > now.json\n"
      "  toto bench a --compare before.json\n");
  command->add_option("workloads", request->workloads,
                      "a, b, c (docs/benchmarks.md) or SERIESxVARIATESxCONTEXTxHORIZON[xSAMPLES]");
  command->add_option("--device", request->settings.device,
                      "cpu (default), cuda or auto (TOTO_COMPILE_BACKEND)");
  command->add_option("--mode", request->modes, "Modes, separated by commas")->delimiter(',');
  command->add_option("--dtype,--precision", request->types, "float32, bfloat16, float64")
      ->delimiter(',');
  command->add_option("-m,--model", request->query.model,
                      "A checkpoint instead of synthetic weights");
  add_whole(*command, "--threads", request->threads, 1, 1024, "invalid_threads",
            "Threads (default: one for each core)")
      ->envname("TOTO_NUM_THREADS");
  command->add_option("--runs", request->runs, "Timed forecasts of each kind")
      ->check(CLI::Range(1, 100000));
  command->add_option("--seconds", request->seconds,
                      "At most so long for each kind, after three runs");
  command->add_flag("--keep-samples", request->keep_samples,
                    "Draw every trajectory, also where exact statistics need none");
  command->add_option("--warmup", request->warmup,
                      "Build plans for these shapes first: CONTEXTxHORIZON[xVARIATES[xBATCH]],...");
  command->add_flag("--json", request->json, "Print JSON");
  command->add_option("--compare", request->compare,
                      "A JSON report of an earlier run: shows how many times faster this one is");
  add_model_options(*command, request->query);
  command->callback([request, &session] {
    session.run = [request, &session] { return run(*request, session); };
  });
}

}  // namespace toto::cli
