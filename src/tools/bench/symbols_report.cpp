// SPDX-License-Identifier: Apache-2.0
// The table of symbols and modes, for people, for a page and for a program.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/printable.h"
#include "tools/bench/cells.h"
#include "toto/tools/bench.hpp"

namespace toto {
namespace {

constexpr std::array<std::string_view, 11> kColumns = {
    "symbol",   "as",      "ms",       "sigma ms %", "speed-up",  "MAE",
    "+- sigma", "build s", "plan MiB", "RSS MiB",    "device MiB"};
using Cells = std::array<std::string, kColumns.size()>;

Cells cells_of(const SymbolRow& r) {
  return {to_utf8(printable(r.symbol)),
          r.subject,
          fmt::format("{:.3g}", 1e3 * r.seconds),
          fmt::format("{:.1f}", 100 * r.variation),
          fmt::format("{:.2f}", r.speed_up),
          fmt::format("{:.5g}", r.mae),
          fmt::format("{:.2g}", r.mae_sigma),
          fmt::format("{:.2f}", r.build_seconds),
          mebibytes(r.plan_bytes),
          mebibytes(r.peak_rss),
          r.peak_device_memory ? mebibytes(*r.peak_device_memory) : "-"};
}

}  // namespace

std::string symbols_text(std::span<const SymbolRow> rows) {
  std::vector<Cells> table(1);
  std::ranges::copy(kColumns, table.front().begin());
  for (const SymbolRow& row : rows) table.push_back(cells_of(row));
  std::string text;
  for (const Cells& line : table) {
    std::string out;
    for (std::size_t c = 0; c < line.size(); ++c) {
      std::size_t width = 0;
      for (const Cells& other : table) width = std::max(width, other[c].size());
      // Names begin where the column does; numbers end where it ends.
      out +=
          c < 2 ? fmt::format("{:<{}}  ", line[c], width) : fmt::format("{:>{}}  ", line[c], width);
    }
    text += out.substr(0, out.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string symbols_markdown(std::span<const SymbolRow> rows) {
  std::string text = markdown_head(kColumns);
  for (const SymbolRow& row : rows) text += markdown_row(cells_of(row));
  return text;
}

std::string symbols_json(std::span<const SymbolRow> rows, std::string_view model) {
  using nlohmann::ordered_json;
  ordered_json all = ordered_json::array();
  for (const SymbolRow& r : rows) {
    all.push_back({{"symbol", r.symbol},
                   {"subject", r.subject},
                   {"windows", r.windows},
                   {"median_ms", 1e3 * r.seconds},
                   {"coefficient_of_variation", r.variation},
                   {"speed_up", r.speed_up},
                   {"mae", r.mae},
                   {"mae_sigma", r.mae_sigma},
                   {"build_seconds", r.build_seconds},
                   {"plan_bytes", r.plan_bytes},
                   {"peak_rss_bytes", r.peak_rss == 0 ? ordered_json() : ordered_json(r.peak_rss)},
                   {"peak_device_bytes",
                    r.peak_device_memory ? ordered_json(*r.peak_device_memory) : ordered_json()}});
  }
  const ordered_json out = {{"format", "toto-bench-symbols 1"}, {"model", model}, {"rows", all}};
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace toto
