// SPDX-License-Identifier: Apache-2.0
// toto bench: how fast forecasts are here, and how close to what the machine can do.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/interrupt.h"
#include "cli/json_text.h"
#include "cli/second_process.h"
#include "core/input_file.h"
#include "core/json.h"
#include "tools/bench/inputs.h"
#include "tools/bench/process.h"
#include "tools/bench/report.h"
#include "toto/settings.hpp"
#include "toto/tools/bench.hpp"
#include "toto/tools/data.hpp"

namespace toto::cli {
namespace {

constexpr std::uint64_t kSyntheticSeed = 8;
constexpr std::size_t kMaxReport = std::size_t{64} << 20;

struct BenchRequest {
  std::vector<std::string> workloads = {"a"};
  std::vector<std::string> modes;      // empty: the one in force
  std::vector<std::string> types;      // empty: the one in force
  std::vector<std::string> kv_caches;  // empty: that of the mode
  Decode decode = Decode::cached;
  std::vector<std::string> data;
  SymbolOptions symbols;
  bool markdown = false;
  bool peak_memory = false;  // hidden: say what one forecast needed
  ModelQuery query;
  SettingsFlags settings;
  std::size_t runs = 30;
  double seconds = 60;
  bool keep_samples = false;
  bool ceilings = true;
  std::string warmup;
  bool json = false;
  std::string compare;
};

/// The setting that each word stands for once the environment has been looked at
/// (TOTO_DISABLE_COMPILE makes every mode eager), without repeats; the one in force for no word.
template <typename T>
std::vector<T> parse_all(const std::vector<std::string>& words,
                         std::optional<std::string> SettingsFlags::*flag,
                         T (*value_of)(const Settings&)) {
  std::vector<T> values;
  const auto add = [&](const SettingsFlags& flags) {
    const T value = value_of(resolve_settings(flags));
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  };
  for (const std::string& word : words) {
    SettingsFlags flags;
    flags.*flag = word;
    add(flags);
  }
  if (words.empty()) add({});
  return values;
}

/// What is measured, before it is loaded.
struct Variant {
  Mode mode;
  Precision type;
  std::optional<ContextCache> kv_cache;  // where it was asked for
  Decode decode;
  LoadOptions load;

  [[nodiscard]] std::string label() const {
    std::string text = fmt::format("{} {}", word(mode), word(type));
    if (kv_cache) text += fmt::format(" {}", word(*kv_cache));
    if (decode == Decode::uncached) text += " uncached";
    return text;
  }
};

/// "all" stands for every word.
std::vector<std::string> expanded(const std::vector<std::string>& words,
                                  const std::vector<std::string>& every) {
  return std::ranges::find(words, "all") != words.end() ? every : words;
}

std::vector<std::optional<ContextCache>> kv_caches_of(const BenchRequest& request) {
  if (request.kv_caches.empty()) return {std::nullopt};
  std::vector<std::optional<ContextCache>> all;
  for (const ContextCache one : parse_all<ContextCache>(
           expanded(request.kv_caches, {"shared", "private"}), &SettingsFlags::kv_cache,
           [](const Settings& s) { return s.kv_cache.value; })) {
    all.emplace_back(one);
  }
  return all;
}

std::vector<Variant> variants_of(const BenchRequest& request, const Session& session) {
  const auto caches = kv_caches_of(request);
  const auto modes = parse_all<Mode>(
      expanded(request.modes, {"eager", "default", "reduce-overhead", "max-autotune"}),
      &SettingsFlags::mode, [](const Settings& s) { return s.mode.value; });
  const auto types = parse_all<Precision>(request.types, &SettingsFlags::precision,
                                          [](const Settings& s) { return s.precision.value; });
  const Settings settings = resolve_settings(request.settings);
  note_about_environment(session);
  if (std::ranges::find(types, Precision::float64) != types.end()) {
    // What no device computes is refused before one is looked for.
    Settings wide = settings;
    wide.precision.value = Precision::float64;
    LoadOptions unused;
    unused.log = [](const LogEvent&) {};
    wide.apply(unused);
  }
  // Each line once, not once for each row.
  const auto told = std::make_shared<std::set<std::string, std::less<>>>();
  std::vector<std::pair<Precision, std::optional<ContextCache>>> pairs;
  for (const Precision type : types) {
    for (const auto& cache : caches) pairs.emplace_back(type, cache);
  }
  std::vector<Variant> variants;
  for (const Mode mode : modes) {
    for (const auto& [type, cache] : pairs) {
      Settings one = settings;
      one.mode.value = mode;
      one.precision.value = type;
      if (cache) one.kv_cache = {*cache, {Source::flag, "--kv-cache"}};
      LoadOptions options;
      options.log = [told, sink = log_sink(settings)](const LogEvent& event) {
        if (told->emplace(event.message).second) sink(event);
      };
      one.apply(options);
      options.else_cpu = false;  // what is measured stays where it is
      variants.push_back({mode, type, cache, request.decode, options});
    }
  }
  return variants;
}

Model load(const BenchRequest& request, const Variant& variant, const Session& session) {
  note(session, "loading for " + variant.label());
  return request.query.model.empty()
             ? Model::synthesise("toto-open-base-1.0", kSyntheticSeed, variant.load)
             : Model::load(request.query, variant.load);
}

/// The memory of a process of its own that loads the model for this variant and forecasts this
/// workload once.
PeakMemory peak_memory_of(const BenchRequest& request, const std::string& workload,
                          bool keep_samples, const Variant& variant, const Session& session) {
  note(session, fmt::format("memory of {}, {}", workload, variant.label()));
  std::vector<std::string> arguments = {"bench",         workload,
                                        "--mode",        std::string(word(variant.mode)),
                                        "--dtype",       std::string(word(variant.type)),
                                        "--peak-memory", "--quiet"};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
  };
  add("--model", request.query.model);
  add("--hub-cache", request.query.hub_cache);
  if (request.query.strict) arguments.emplace_back("--strict");
  add("--device", request.settings.device.value_or(""));
  if (request.settings.threads) add("--threads", *request.settings.threads);
  if (keep_samples) arguments.emplace_back("--keep-samples");
  if (variant.kv_cache) add("--kv-cache", std::string(word(*variant.kv_cache)));
  if (variant.decode == Decode::uncached) arguments.emplace_back("--no-cache");
  std::istringstream said(run_second_process(arguments));
  PeakMemory memory;
  said >> memory.rss >> memory.device;
  return memory;
}

/// That process.
ExitStatus say_peak_memory(const BenchRequest& request, const Workload& workload,
                           const Session& session) {
  Forecaster forecaster(load(request, variants_of(request, session).front(), session));
  const BenchInputs inputs(workload);
  ForecastOptions options;
  options.horizon = workload.horizon;
  options.num_samples = workload.samples;
  options.keep_samples = workload.keep_samples;
  options.decode = request.decode;
  (void)forecaster.forecast(inputs.series, options);
  print(fmt::format("{} {}\n", peak_rss(), forecaster.counters().device_bytes));
  return ExitStatus::ok;
}

ExitStatus run_data(const BenchRequest& request, const Session& session) {
  const Interrupt interrupt;
  const std::vector<Variant> variants = variants_of(request, session);
  std::vector<std::string> labels;
  labels.reserve(variants.size());
  for (const Variant& one : variants) labels.push_back(one.label());
  std::vector<data::TimeSeries> tables;
  for (const std::string& path : data::csv_files(request.data)) {
    data::CsvOptions csv;
    csv.context = request.symbols.context + 2 * request.symbols.windows * request.symbols.horizon;
    data::Dataset set = data::read_csv(path, csv);
    if (!set.errors.empty()) throw Error(set.errors.front().error);
    const std::string stem = std::filesystem::path(path).stem().string();
    const bool alone = set.series.size() == 1;
    tables.reserve(tables.size() + set.series.size());
    for (data::TimeSeries& one : set.series) {
      // Files of the same columns have series of the same ids: the file tells them apart.
      if (one.id != stem) one.id = alone ? stem : stem + "/" + one.id;
      tables.push_back(std::move(one));
    }
  }
  std::vector<Series> series;
  series.reserve(tables.size());
  for (const data::TimeSeries& one : tables) series.push_back(one.view());
  SymbolOptions options = request.symbols;
  options.runs = request.runs;
  options.progress = [&](std::string_view what) {
    note(session, what);
    return !interrupt.requested();
  };
  std::string model;
  std::vector<SymbolRow> rows = run_symbols(
      series, labels,
      [&](std::size_t i) {
        Model loaded = load(request, variants[i], session);
        model = loaded.info().name;
        return loaded;
      },
      options);
  // Equal for all symbols of a mode, but for noise: the shape decides.
  const std::string workload =
      fmt::format("1x1x{}x{}x{}", options.context, options.horizon, options.samples);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const PeakMemory memory = peak_memory_of(request, workload, true, variants[i], session);
    for (std::size_t at = i; at < rows.size(); at += variants.size()) {
      rows[at].peak_rss = memory.rss;
      if (memory.device > 0) rows[at].peak_device_memory = memory.device;
    }
  }
  if (request.json) {
    print(symbols_json(rows, model));
  } else if (request.markdown) {
    print(symbols_markdown(rows));
  } else {
    print(fmt::format("model {}; {} trajectories, horizon {}, context {}, {} seeds\n\n", model,
                      options.samples, options.horizon, options.context, options.seeds) +
          symbols_text(rows));
  }
  return ExitStatus::ok;
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
  if (!request.data.empty()) return run_data(request, session);
  std::vector<Workload> workloads;
  workloads.reserve(request.workloads.size());
  for (const std::string& text : request.workloads) {
    workloads.push_back(parse_workload(text));
    workloads.back().keep_samples = request.keep_samples;
    workloads.back().decode = request.decode;
  }
  if (request.peak_memory) return say_peak_memory(request, workloads.front(), session);
  std::optional<nlohmann::json> before;
  if (!request.compare.empty()) {
    before = parse_json(read_text_file(request.compare, kMaxReport, ExitStatus::bad_data),
                        ExitStatus::bad_data, request.compare);
    check_report(*before, request.compare);
  }
  const std::vector<Variant> variants = variants_of(request, session);
  std::vector<BenchSubject> subjects;
  subjects.reserve(variants.size());
  for (const Variant& one : variants)
    subjects.push_back({one.label(), load(request, one, session)});
  BenchOptions options;
  options.runs = request.runs;
  options.max_seconds = request.seconds;
  options.ceilings = request.ceilings;
  if (!request.warmup.empty()) options.warmup = parse_warmup(request.warmup);
  options.progress = [&](std::string_view what) { note(session, what); };
  options.peak_memory = [&](const Workload& workload, const BenchSubject& subject) {
    const auto same = [&](const Variant& one) { return one.label() == subject.label; };
    return peak_memory_of(request, workload.name, workload.keep_samples,
                          *std::ranges::find_if(variants, same), session);
  };
  const BenchReport report = run_bench(workloads, subjects, options);
  print(request.json       ? json_text(bench_json(report))
        : request.markdown ? bench_markdown(report)
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
      "  toto bench a b c --modes all --dtype float32,bfloat16\n"
      "  toto bench --data bars/ --model Datadog/Toto-Open-Base-1.0 --modes all --markdown\n"
      "  toto bench a b c --device cuda --dtype float32,tf32,bfloat16\n"
      "  toto bench b --modes default,reduce-overhead --kv-cache all --markdown\n"
      "  toto bench 50x1x512x7x4096 --json > now.json\n"
      "  toto bench 1x1x512x96 --no-ceilings --runs 100 --seconds 0.5\n"
      "  toto bench a --compare before.json\n");
  command.add_option("workloads", request->workloads,
                     "a, b, c (docs/benchmarks.md) or SERIESxVARIATESxCONTEXTxHORIZON[xSAMPLES]");
  command.add_option("--device", request->settings.device,
                     "cpu (default), cuda or auto (TOTO_COMPILE_BACKEND)");
  command
      .add_option("--mode,--modes", request->modes,
                  "Modes, separated by commas, or all (default: the one in force)")
      .comma_separated();
  command
      .add_option("--data", request->data,
                  "CSV files, or folders of them: a table of symbol and mode instead, with time, "
                  "speed-up over the first mode, MAE and its sigma over seeds, memory")
      .type_name("FILE...");
  add_whole(command, "--context", request->symbols.context, 1, 1'000'000, "invalid_context",
            "With --data: steps of history (default 512)");
  add_whole(command, "--horizon", request->symbols.horizon, 1, 100'000, "invalid_horizon",
            "With --data: steps to forecast (default 20)");
  add_whole(command, "--samples", request->symbols.samples, 1, 65'536, "invalid_samples",
            "With --data: trajectories (default 256)");
  add_whole(command, "--windows", request->symbols.windows, 1, 100'000, "invalid_windows",
            "With --data: windows that forecasts are held against (default 4)");
  add_whole(command, "--seeds", request->symbols.seeds, 1, 10'000, "invalid_seed",
            "With --data: seeds behind the sigma of the MAE (default 5)");
  command
      .add_option("--kv-cache", request->kv_caches,
                  "Where keys and values of a context are kept: shared, private, separated by "
                  "commas, or all (default: as the mode does, TOTO_KV_CACHE)")
      .comma_separated();
  command.add_flag_function(
      "--cache,!--no-cache",
      [request](bool on) { request->decode = on ? Decode::cached : Decode::uncached; },
      "Keep keys and values from patch to patch (default), or compute every patch from scratch");
  command.add_flag(
      "--markdown", request->markdown,
      "Print a Markdown table: of symbols with --data, else with what each mode builds, "
      "how far its forecasts are from the first one's, and memory");
  command.add_flag("--peak-memory", request->peak_memory, "").group("");
  command
      .add_option("--dtype,--precision", request->types, "float32, tf32, bfloat16, int8, float64")
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
  command.add_flag(
      "--ceilings,!--no-ceilings", request->ceilings,
      "Measure what the machine can do at best (default), before and after the runs; without it a "
      "run is some seconds shorter, and shares of that are not known");
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
