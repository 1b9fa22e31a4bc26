// SPDX-License-Identifier: Apache-2.0
// Shares of what a machine can do, and the reports; no device is needed.
#include "tools/bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "toto/tools/bench.hpp"

namespace toto {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

MachineRates machine(bool device) {
  MachineRates m;
  m.processor = std::string("a processor");
  m.isa = std::string("avx2");
  m.threads = 2;
  m.float32_per_second = 100e9;
  m.bfloat16_per_second = 200e9;
  m.read_bytes_per_second = 10e9;
  m.usual_read_bytes_per_second = 8e9;
  if (device)
    m.device = DeviceRates{"a device", "580.1 (CUDA 13.0)", "sm_90", 40e12, 80e12, 400e12, 4e12};
  return m;
}

/// 20e9 operations and 1e9 bytes in half a second, on a device in a tenth of one.
BenchRow row(bool on_device) {
  BenchRow r;
  r.workload = std::string("a");  // g++ 12 warns of assigning a short literal
  r.subject = std::string("reduce-overhead float32");
  r.on_device = on_device;
  r.runs = 3;
  r.median = r.p95 = r.p99 = r.fastest = 0.5;
  r.operations = 20e9;
  r.weight_bytes = 1e9;
  if (on_device) {
    r.device_median = r.device_p99 = 0.1;
    r.per_forecast = {1, 79, 0, 0, 0};
  }
  return r;
}

BenchReport report(bool on_device) {
  BenchReport all{"a model", machine(on_device), {row(on_device)}};
  set_shares(all.rows.front(), all.machine, Precision::float32);
  return all;
}

TEST(Report, AsATableForAPage) {
  BenchReport all = report(false);
  BenchRow& r = all.rows.front();
  r.build_seconds = 0.0123;
  r.variation = 0.021;
  r.speed_up = 2;
  r.distance = 3.2e-7;
  r.counters.plan_builds = 1;
  r.counters.graph_fallbacks = 4;
  r.counters.working_bytes = std::uint64_t{3} << 20;
  r.peak_rss = std::uint64_t{512} << 20;
  EXPECT_THAT(
      bench_markdown(all),
      HasSubstr("| a | reduce-overhead float32 | 0.012 | 500.000 | 2.1 % | 2.00 | 3.2e-07 | 1 "
                "| 0 | 0 | 4 | 3.0 | 512.0 | - |\n"));
  EXPECT_THAT(bench_markdown(all), HasSubstr("| workload | as | build s | median ms |"));
}

TEST(Shares, OnTheProcessorAreOfTheWholeCall) {
  BenchRow r = row(false);
  set_shares(r, machine(true), Precision::float32);
  EXPECT_DOUBLE_EQ(r.percent_of_compute, 40);
  EXPECT_DOUBLE_EQ(r.percent_of_memory, 20);
  set_shares(r, machine(true), Precision::tf32);  // float32 on the processor
  EXPECT_DOUBLE_EQ(r.percent_of_compute, 40);
  set_shares(r, machine(true), Precision::bfloat16);
  EXPECT_DOUBLE_EQ(r.percent_of_compute, 20);
}

TEST(Shares, OnADeviceAreOfItsTimeAndItsRates) {
  BenchRow r = row(true);
  set_shares(r, machine(true), Precision::float32);
  EXPECT_DOUBLE_EQ(r.percent_of_compute, 0.5);  // 200e9 of 40e12
  EXPECT_DOUBLE_EQ(r.percent_of_memory, 0.25);  // 10e9 of 4e12
  set_shares(r, machine(true), Precision::tf32);
  EXPECT_DOUBLE_EQ(r.percent_of_compute, 0.25);
  set_shares(r, machine(true), Precision::bfloat16);
  EXPECT_DOUBLE_EQ(r.percent_of_compute, 0.05);
}

TEST(Shares, OfAForecastThatIsNoGraphAreOfTheWholeCall) {
  BenchRow r = row(true);
  r.device_median = r.device_p99 = 0;
  set_shares(r, machine(true), Precision::float32);
  EXPECT_DOUBLE_EQ(r.percent_of_compute, 0.1);
  EXPECT_DOUBLE_EQ(r.percent_of_memory, 0.05);
}

TEST(Shares, OfWhatWasNotMeasuredAreNotKnown) {
  BenchRow r = row(true);
  set_shares(r, machine(false), Precision::float32);  // never those of the processor
  EXPECT_EQ(r.percent_of_compute, 0);
  EXPECT_EQ(r.percent_of_memory, 0);
  MachineRates short_of_memory = machine(true);
  short_of_memory.device->copy_bytes_per_second = 0;
  set_shares(r, short_of_memory, Precision::float32);
  EXPECT_GT(r.percent_of_compute, 0);
  EXPECT_EQ(r.percent_of_memory, 0);
}

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

TEST(BenchJson, NamesTheDeviceBesideTheProcessor) {
  const json all = json::parse(bench_json(report(true)).dump());
  EXPECT_EQ(keys(all), (std::set<std::string>{"family", "machine", "model", "rows"}));
  EXPECT_EQ(all["machine"]["processor"], "a processor");
  EXPECT_EQ(all["machine"]["float32_gflops"], 100.0);
  EXPECT_EQ(all["machine"]["device"], (json{{"name", "a device"},
                                            {"driver", "580.1 (CUDA 13.0)"},
                                            {"architecture", "sm_90"},
                                            {"float32_own_product_gflops", 40e3},
                                            {"tf32_own_product_gflops", 80e3},
                                            {"bfloat16_own_product_gflops", 400e3},
                                            {"copy_read_plus_written_gb_per_second", 4e3}}));
  const json& r = all["rows"][0];
  EXPECT_EQ(r["on_device"], true);
  EXPECT_DOUBLE_EQ(r["percent_of_compute"].get<double>(), 0.5);
  EXPECT_EQ(r["per_forecast"], (json{{"graph_replays", 1.0},
                                     {"graph_launches", 79.0},
                                     {"graph_captures", 0.0},
                                     {"graph_fallbacks", 0.0},
                                     {"host_reads", 0.0}}));
}

TEST(BenchJson, HasTheSameKeysWithoutADevice) {
  const json with = json::parse(bench_json(report(true)).dump());
  const json without = json::parse(bench_json(report(false)).dump());
  EXPECT_EQ(keys(with["machine"]), keys(without["machine"]));
  EXPECT_EQ(keys(with["rows"][0]), keys(without["rows"][0]));
  EXPECT_TRUE(without["machine"]["device"].is_null());
  EXPECT_EQ(without["rows"][0]["on_device"], false);
}

// Symbols are ids out of files.
TEST(BenchSymbols, AreShownAsText) {
  SymbolRow row;
  row.symbol = "a\x1b[31m\nb|<img src=x>";
  row.subject = "eager float32";
  const std::string text = symbols_text({&row, 1}), page = symbols_markdown({&row, 1});
  for (const std::string& all : {text, page}) {
    EXPECT_THAT(all, Not(HasSubstr("\x1b")));
    EXPECT_THAT(all, HasSubstr(" b"));
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(std::count(page.begin(), page.end(), '\n'), 3);
  EXPECT_THAT(page, HasSubstr("b\\|&lt;img src=x&gt; |"));
}

TEST(BenchText, ShowsSharesBesideTheTimeTheyAreOf) {
  const std::string text = bench_text(report(true), nullptr);
  EXPECT_THAT(
      text,
      HasSubstr(
          "a device, sm_90, driver 580.1 (CUDA 13.0): own products on large matrices "
          "40.0 TFLOP/s float32, 80.0 tf32, 400.0 bfloat16 (cuBLAS reaches more), copies 4000 "
          "GB/s read plus written\n"));
  const std::string device_line = text.substr(text.find("  on the device"));
  EXPECT_THAT(device_line.substr(0, device_line.find('\n')), testing::EndsWith("0.5%     0.2%"));
  EXPECT_THAT(text, HasSubstr("  in each forecast         launches 79, graphs 1, captures 0, host "
                              "reads 0, fallbacks 0\n"));
}

TEST(BenchText, SaysNothingOfADeviceWithoutOne) {
  const std::string text = bench_text(report(false), nullptr);
  EXPECT_THAT(text, HasSubstr("40.0%    20.0%"));
  EXPECT_THAT(text, Not(HasSubstr("device")));
  EXPECT_THAT(text, Not(HasSubstr("in each forecast")));
}

TEST(BenchText, LeavesOutWhatIsNotKnown) {
  BenchReport all = report(true);
  *all.machine.device = DeviceRates{"a device", "", "sm_80", 0, 0, 0, 0};
  set_shares(all.rows.front(), all.machine, Precision::float32);
  const std::string text = bench_text(all, nullptr);
  EXPECT_THAT(text, HasSubstr("unmeasured TFLOP/s float32"));
  EXPECT_THAT(text, HasSubstr(" -        -\n"));
}

TEST(BenchText, ComparesWithAnEarlierReport) {
  const json before = {
      {"rows", {{{"workload", "a"}, {"subject", "reduce-overhead float32"}, {"median_ms", 1000}}}}};
  EXPECT_THAT(bench_text(report(false), &before), HasSubstr("   2.00 x\n"));
}

}  // namespace
}  // namespace toto
