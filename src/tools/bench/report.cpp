// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/report.h"

#include <fmt/format.h>

#include <vector>

#include "tools/bench/cells.h"

namespace toto {
namespace {

using nlohmann::ordered_json;

/// In percent; 0 where there is nothing to be a share of.
double share(double amount, double seconds, double rate) {
  return seconds > 0 && rate > 0 ? 100 * amount / seconds / rate : 0;
}

ordered_json device_json(const DeviceRates& d) {
  return {{"name", d.name},
          {"driver", d.driver},
          {"architecture", d.architecture},
          {"float32_own_product_gflops", d.float32_product_per_second / 1e9},
          {"tf32_own_product_gflops", d.tf32_product_per_second / 1e9},
          {"bfloat16_own_product_gflops", d.bfloat16_product_per_second / 1e9},
          {"copy_read_plus_written_gb_per_second", d.copy_bytes_per_second / 1e9}};
}

ordered_json row_json(const BenchRow& r) {
  return {
      {"workload", r.workload},
      {"subject", r.subject},
      {"runs", r.runs},
      {"median_ms", r.median * 1e3},
      {"p95_ms", r.p95 * 1e3},
      {"p99_ms", r.p99 * 1e3},
      {"fastest_ms", r.fastest * 1e3},
      {"device_median_ms", r.device_median * 1e3},
      {"device_p99_ms", r.device_p99 * 1e3},
      {"coefficient_of_variation", r.variation},
      {"speed_up", r.speed_up},
      {"distance", r.distance},
      {"build_seconds", r.build_seconds},
      {"series_per_second", r.series_per_second},
      {"operations", r.operations},
      {"weight_bytes", r.weight_bytes},
      {"percent_of_compute", r.percent_of_compute},
      {"percent_of_memory", r.percent_of_memory},
      {"on_device", r.on_device},
      {"per_forecast",
       {{"graph_replays", r.per_forecast.graph_replays},
        {"graph_launches", r.per_forecast.graph_launches},
        {"graph_captures", r.per_forecast.graph_captures},
        {"graph_fallbacks", r.per_forecast.graph_fallbacks},
        {"host_reads", r.per_forecast.host_reads}}},
      {"peak_rss_mib", r.peak_rss == 0 ? ordered_json()
                                       : ordered_json(static_cast<double>(r.peak_rss) / (1 << 20))},
      {"peak_device_mib", r.peak_device_memory
                              ? ordered_json(static_cast<double>(*r.peak_device_memory) / (1 << 20))
                              : ordered_json()},
      {"plan_mib", static_cast<double>(r.counters.working_bytes) / (1 << 20)},
      {"counters", ordered_json::parse(to_json(r.counters))}};
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

std::string scaled(double rate, double unit, int digits) {
  return rate > 0 ? fmt::format("{:.{}f}", rate / unit, digits) : "unmeasured";
}

std::string header(const MachineRates& m) {
  std::string text = fmt::format("{}, {}, {} threads", m.processor, m.isa, m.threads);
  if (m.float32_per_second == 0) {
    if (m.device) {
      text += fmt::format("; {}, {}, driver {}", m.device->name, m.device->architecture,
                          m.device->driver);
    }
    return text + "; what they can do at best was not measured\n";
  }
  text += fmt::format(
      ": {:.0f} GFLOP/s float32, {:.0f} bfloat16, {:.1f} GB/s read at best and {:.1f} usually, "
      "p99/p50 of an empty loop {:.2f}\n",
      m.float32_per_second / 1e9, m.bfloat16_per_second / 1e9, m.read_bytes_per_second / 1e9,
      m.usual_read_bytes_per_second / 1e9, m.jitter);
  if (m.device) {
    const DeviceRates& d = *m.device;
    text += fmt::format(
        "{}, {}, driver {}: own products on large matrices {} TFLOP/s float32, {} tf32, {} "
        "bfloat16 (cuBLAS reaches more), copies {} GB/s read plus written\n",
        d.name, d.architecture, d.driver, scaled(d.float32_product_per_second, 1e12, 1),
        scaled(d.tf32_product_per_second, 1e12, 1), scaled(d.bfloat16_product_per_second, 1e12, 1),
        scaled(d.copy_bytes_per_second, 1e9, 0));
  }
  return text;
}

/// "12.3%"; "-" where it is not known.
std::string percent(double share) { return share > 0 ? fmt::format("{:.1f}%", share) : "-"; }

/// The lines below a row: the time on the device with shares of it, and what a forecast cost.
std::string device_lines(const BenchRow& r) {
  std::string text;
  if (r.device_median > 0) {
    text += fmt::format("\n{:22} {:26} {:>5} {:>11.3f} {:>9} {:>9.3f} {:>6} {:>10} {:>9} {:>8}", "",
                        "  on the device", "", r.device_median * 1e3, "", r.device_p99 * 1e3, "",
                        "", percent(r.percent_of_compute), percent(r.percent_of_memory));
  }
  const DeviceCost& c = r.per_forecast;
  text += fmt::format(
      "\n{:22} {:26} launches {:.4g}, graphs {:.4g}, captures {:.4g}, host reads {:.4g}, "
      "fallbacks {:.4g}",
      "", "  in each forecast", c.graph_launches, c.graph_replays, c.graph_captures, c.host_reads,
      c.graph_fallbacks);
  return text;
}

/// The cells of bench_markdown(), in the order of its columns.
std::vector<std::string> cells_of(const BenchRow& r) {
  const Counters& c = r.counters;
  return {r.workload,
          r.subject,
          fmt::format("{:.3f}", r.build_seconds),
          fmt::format("{:.3f}", r.median * 1e3),
          fmt::format("{:.1f} %", 100 * r.variation),
          fmt::format("{:.2f}", r.speed_up),
          r.distance == 0 ? "0" : fmt::format("{:.1e}", r.distance),
          fmt::format("{}", c.plan_builds),
          fmt::format("{}", c.graph_captures),
          fmt::format("{}", c.graph_replays),
          fmt::format("{}", c.graph_fallbacks),
          mebibytes(c.working_bytes),
          mebibytes(r.peak_rss),
          mebibytes(r.peak_device_memory.value_or(0))};
}

}  // namespace

void set_shares(BenchRow& row, const MachineRates& machine, Precision type) {
  const bool bfloat16 = type == Precision::bfloat16;
  double seconds = row.median;
  double operations = bfloat16 ? machine.bfloat16_per_second : machine.float32_per_second;
  double bytes = machine.read_bytes_per_second;
  if (row.on_device) {
    const DeviceRates d = machine.device.value_or(DeviceRates{});
    operations = bfloat16                  ? d.bfloat16_product_per_second
                 : type == Precision::tf32 ? d.tf32_product_per_second
                                           : d.float32_product_per_second;
    bytes = d.copy_bytes_per_second;
    if (row.device_median > 0) seconds = row.device_median;
  }
  row.percent_of_compute = share(row.operations, seconds, operations);
  row.percent_of_memory = share(row.weight_bytes, seconds, bytes);
}

ordered_json bench_json(const BenchReport& report) {
  const MachineRates& m = report.machine;
  ordered_json rows = ordered_json::array();
  for (const BenchRow& r : report.rows) rows.push_back(row_json(r));
  return {{"model", report.model},
          {"family", report.family},
          {"machine",
           {{"processor", m.processor},
            {"isa", m.isa},
            {"threads", m.threads},
            {"float32_gflops", m.float32_per_second / 1e9},
            {"bfloat16_gflops", m.bfloat16_per_second / 1e9},
            {"read_gb_per_second", m.read_bytes_per_second / 1e9},
            {"usual_read_gb_per_second", m.usual_read_bytes_per_second / 1e9},
            {"jitter", m.jitter},
            {"device", m.device ? device_json(*m.device) : ordered_json()}}},
          {"rows", rows}};
}

std::string bench_markdown(const BenchReport& report) {
  constexpr std::string_view kColumns[] = {
      "workload", "as",     "build s", "median ms", "sigma",    "speed-up", "distance",
      "plans",    "graphs", "replays", "fallbacks", "plan MiB", "RSS MiB",  "device MiB"};
  std::string text = markdown_head(kColumns);
  for (const BenchRow& row : report.rows) text += markdown_row(cells_of(row));
  return text;
}

std::string bench_text(const BenchReport& report, const nlohmann::json* before) {
  std::string text = header(report.machine) + "model " + report.model +
                     (report.family.empty() ? "" : " (" + report.family + ")") + "\n\n";
  text += fmt::format("{:22} {:26} {:>5} {:>11} {:>9} {:>9} {:>6} {:>10} {:>9} {:>8} {:>8}{}\n",
                      "workload", "as", "runs", "median ms", "p95", "p99", "spread", "series/s",
                      "% compute", "% memory", "RSS MiB", before != nullptr ? "   before" : "");
  for (const BenchRow& r : report.rows) {
    const bool below = r.device_median > 0;  // then shares are of the time in the line below
    text += fmt::format(
        "{:22} {:26} {:>5} {:>11.2f} {:>9.2f} {:>9.2f} {:>5.1f}% {:>10.1f} {:>9} {:>8} {:>8.0f}",
        r.workload, r.subject, r.runs, r.median * 1e3, r.p95 * 1e3, r.p99 * 1e3, 100 * r.variation,
        r.series_per_second, below ? "" : percent(r.percent_of_compute),
        below ? "" : percent(r.percent_of_memory), static_cast<double>(r.peak_rss) / (1 << 20));
    if (before != nullptr) {
      const double was = earlier(*before, r);
      text += was > 0 ? fmt::format("   {:.2f} x", was / r.median) : "         -";
    }
    if (r.on_device) text += device_lines(r);
    text += '\n';
  }
  return text;
}

}  // namespace toto
