// SPDX-License-Identifier: Apache-2.0
// A benchmark's figures as shares of what the machine can do, and its report for programs and
// people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "toto/tools/bench.hpp"

namespace toto {

/// Sets percent_of_compute and percent_of_memory of a row that has its times and counts.
/// `type`: of its products.
void set_shares(BenchRow& row, const MachineRates& machine, Precision type);

[[nodiscard]] nlohmann::ordered_json bench_json(const BenchReport& report);

/// A table for a page, a row each.
[[nodiscard]] std::string bench_markdown(const BenchReport& report);

/// `before`: an earlier report as JSON, to be compared with; nullptr: none.
[[nodiscard]] std::string bench_text(const BenchReport& report, const nlohmann::json* before);

}  // namespace toto
