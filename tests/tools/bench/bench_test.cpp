// SPDX-License-Identifier: Apache-2.0
// What a benchmark reports, never how fast anything is.
#include "toto/tools/bench.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "support/paths.h"

namespace toto {
namespace {

TEST(Workloads, HaveNamesOrShapes) {
  const Workload b = parse_workload("b");
  EXPECT_EQ(b.variates, 7U);
  EXPECT_EQ(b.context, 4096U);
  EXPECT_EQ(b.horizon, 336U);
  const Workload shape = parse_workload("50x1x512x7x4096");
  EXPECT_EQ(shape.series, 50U);
  EXPECT_EQ(shape.samples, 4096U);
  EXPECT_EQ(parse_workload("1x2x64x8").samples, 256U);
}

TEST(Workloads, ThatAreNoneAreRefused) {
  for (const char* text : {"", "d", "1x2x3", "1x2x3x4x5x6", "0x1x1x1", "1x1x1x", "ax1x1x1"}) {
    try {
      parse_workload(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "invalid_workload") << text;
      EXPECT_EQ(error.status(), ExitStatus::usage);
    }
  }
}

/// Modes draw the same trajectories, so they err alike; what is drawn differs from seed to seed.
TEST(Bench, ATableOfSymbolsAndModes) {
  std::vector<std::vector<float>> values(2);
  std::vector<Series> series(2);
  const std::string ids[] = {"AA", "B|B"};
  for (std::size_t i = 0; i < 2; ++i) {
    for (int t = 0; t < 120; ++t) {
      values[i].push_back(static_cast<float>(50 + 10 * std::sin(0.3 * t + static_cast<double>(i))));
    }
    series[i].id = ids[i];
    series[i].steps = values[i].size();
    series[i].values = values[i];
  }
  const std::string labels[] = {"eager float32", "default float32"};
  SymbolOptions options;
  options.context = 64;
  options.horizon = 8;
  options.windows = 2;
  options.samples = 16;
  options.seeds = 3;
  options.runs = 2;
  std::vector<std::size_t> loaded;
  const auto load = [&](std::size_t i) {
    loaded.push_back(i);
    LoadOptions how;
    how.mode = i == 0 ? Mode::eager : Mode::planned;
    how.threads = 1;
    return Model::load(ModelQuery{}, how);
  };
  const std::vector<SymbolRow> rows = run_symbols(series, labels, load, options);
  EXPECT_EQ(loaded, (std::vector<std::size_t>{0, 1}));
  ASSERT_EQ(rows.size(), 4U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].symbol, ids[i / 2]);
    EXPECT_EQ(rows[i].subject, labels[i % 2]);
    EXPECT_EQ(rows[i].windows, 2U);
    EXPECT_GT(rows[i].mae_sigma, 0);
    EXPECT_GT(rows[i].seconds, 0);
    EXPECT_GT(rows[i].build_seconds, 0);
    EXPECT_GT(rows[i].plan_bytes, 0U);
    EXPECT_DOUBLE_EQ(rows[i].speed_up, rows[i - i % 2].seconds / rows[i].seconds);
  }
  EXPECT_NEAR(rows[0].mae, rows[1].mae, 1e-3 * rows[0].mae);
  EXPECT_EQ(rows[0].speed_up, 1);
  EXPECT_NE(symbols_markdown(rows).find("| B\\|B |"), std::string::npos);
  const auto json = nlohmann::json::parse(symbols_json(rows, "m"));
  EXPECT_EQ(json["rows"].size(), 4U);
  EXPECT_TRUE(json["rows"][0]["peak_rss_bytes"].is_null());
  EXPECT_TRUE(json["rows"][0]["peak_device_bytes"].is_null());

  series[0].steps = 15;
  series[0].values = std::span(values[0]).first(15);
  EXPECT_THROW((void)run_symbols(series, labels, load, options), Error);
}

TEST(Bench, ReportsEverySubjectOfEveryWorkload) {
  LoadOptions eager, planned;
  eager.mode = Mode::eager;
  eager.threads = planned.threads = 1;
  // Of Toto 1.0: what is run again for every trajectory is counted below.
  const ModelQuery query{.model = test::source_path("models/toto-nano")};
  const BenchSubject subjects[] = {{"eager", Model::load(query, eager)},
                                   {"planned", Model::load(query, planned)}};
  const Workload workloads[] = {parse_workload("1x1x64x8"), parse_workload("3x2x100x40x16")};
  BenchOptions options;
  options.runs = 4;
  options.warmup = parse_warmup("100x40x2x3");
  std::size_t told = 0;
  options.progress = [&](std::string_view) { ++told; };
  options.peak_memory = [](const Workload&, const BenchSubject&) {
    return PeakMemory{std::uint64_t{7} << 20, {}};
  };
  const BenchReport report = run_bench(workloads, subjects, options);

  EXPECT_GE(told, 4U);
  EXPECT_FALSE(report.model.empty());
  EXPECT_EQ(report.machine.threads, 1);
  EXPECT_GT(report.machine.float32_per_second, 1e9);
  EXPECT_GT(report.machine.read_bytes_per_second, 1e8);
  EXPECT_GT(report.machine.usual_read_bytes_per_second, 1e8);
  EXPECT_LE(report.machine.usual_read_bytes_per_second, report.machine.read_bytes_per_second);
  EXPECT_GE(report.machine.jitter, 1);
  EXPECT_FALSE(report.machine.device);
  ASSERT_EQ(report.rows.size(), 4U);
  std::set<std::pair<std::string, std::string>> names;
  for (const BenchRow& row : report.rows) {
    names.emplace(row.workload, row.subject);
    EXPECT_EQ(row.runs, 4U);
    EXPECT_GT(row.fastest, 0);
    EXPECT_LE(row.fastest, row.median);
    EXPECT_LE(row.median, row.p95);
    EXPECT_LE(row.p95, row.p99);
    EXPECT_GT(row.operations, 0);
    EXPECT_GT(row.weight_bytes, 0);
    EXPECT_GT(row.percent_of_compute, 0);
    EXPECT_EQ(row.peak_rss, std::uint64_t{7} << 20);
    EXPECT_FALSE(row.peak_device_memory);
    EXPECT_EQ(row.counters.forecasts, 6U);  // warm-up twice, then the runs
    EXPECT_NEAR(row.series_per_second * row.median, row.workload[0] - '0', 1e-9);
  }
  EXPECT_EQ(names.size(), 4U);
  for (std::size_t i = 0; i < 4; i += 2) {
    EXPECT_EQ(report.rows[i].distance, 0);
    EXPECT_EQ(report.rows[i].speed_up, 1);
    EXPECT_EQ(report.rows[i + 1].speed_up, report.rows[i].median / report.rows[i + 1].median);
    EXPECT_LT(report.rows[i + 1].distance, 1e-4);
    EXPECT_GT(report.rows[i].build_seconds, 0);
  }
  EXPECT_GT(report.rows[3].distance, 0);  // by rounding, in trajectories of two patches
  // eager runs the context once for every trajectory that is drawn, a plan once.
  EXPECT_GT(report.rows[2].operations, 2 * report.rows[3].operations);
  EXPECT_EQ(report.rows[3].counters.plan_builds, 1U);  // by the shape to warm up for
}

TEST(Bench, OnADeviceReportsSharesOfWhatItCanDo) {
  if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
  LoadOptions graph, eager;
  graph.backend = eager.backend = "cuda";
  eager.mode = Mode::eager;
  graph.threads = eager.threads = 1;
  const BenchSubject subjects[] = {{"graph", Model::load(ModelQuery{}, graph)},
                                   {"eager", Model::load(ModelQuery{}, eager)}};
  const Workload workloads[] = {parse_workload("3x1x64x8")};
  BenchOptions options;
  options.runs = 4;
  const BenchReport report = run_bench(workloads, subjects, options);
  ASSERT_TRUE(report.machine.device);
  EXPECT_GT(report.machine.device->float32_product_per_second, 0);
  EXPECT_GT(report.machine.device->copy_bytes_per_second, 0);
  ASSERT_EQ(report.rows.size(), 2U);
  for (const BenchRow& row : report.rows) {
    EXPECT_TRUE(row.on_device);
    EXPECT_GT(row.peak_device_memory.value_or(0), row.counters.working_bytes);
    EXPECT_GT(row.percent_of_compute, 0);
    EXPECT_GT(row.percent_of_memory, 0);
    EXPECT_LT(row.percent_of_compute, 100);
    EXPECT_LT(row.percent_of_memory, 100);
    EXPECT_EQ(row.per_forecast.graph_fallbacks, 0);
    EXPECT_EQ(row.per_forecast.graph_captures, 0);  // before the timed ones
  }
  const BenchRow& recorded = report.rows[0];
  EXPECT_GT(recorded.device_median, 0);
  EXPECT_LE(recorded.device_median, recorded.median);
  EXPECT_EQ(recorded.per_forecast.graph_replays, 1);
  EXPECT_GT(recorded.per_forecast.graph_launches, 1);
  EXPECT_EQ(recorded.per_forecast.host_reads, 0);
  EXPECT_EQ(report.rows[1].device_median, 0);
  EXPECT_EQ(report.rows[1].per_forecast.graph_launches, 0);
}

}  // namespace
}  // namespace toto
