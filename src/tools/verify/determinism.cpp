// SPDX-License-Identifier: Apache-2.0
// The same bits again: in another batch, order or chunk, without parameters, on other threads.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/cpu_info.h"
#include "tools/verify/groups.h"
#include "tools/verify/request.h"
#include "tools/verify/without_parameters.h"

namespace toto::verify {
namespace {

/// How many bytes of two forecasts differ.
std::size_t different_bytes(const Forecast& a, const Forecast& b) {
  const std::string left = bytes_of(a);
  const std::string right = bytes_of(b);
  std::size_t count =
      left.size() > right.size() ? left.size() - right.size() : right.size() - left.size();
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    count += left[i] == right[i] ? 0 : 1;
  }
  return count;
}

/// One check over all series; the first that differs is named.
Check same(std::string name, std::string measure, const std::vector<Forecast>& found,
           const std::vector<Forecast>& expected) {
  std::size_t total = found.size() == expected.size() && !found.empty() ? 0 : 1;
  std::string where;
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const std::size_t count = different_bytes(found[i], expected[i]);
    if (count > 0 && where.empty()) where = fmt::format("first in series '{}'", found[i].id);
    total += count;
  }
  return measured(std::move(name), std::move(measure), static_cast<double>(total), 0, "bytes",
                  where.empty()
                      ? fmt::format("{} series, parameters, statistics and {} trajectories",
                                    found.size(), kRequestSamples)
                      : where);
}

/// Forecasts under a limit of memory; nothing where the limit is less than the smallest piece
/// needs.
std::optional<std::vector<Forecast>> limited(const Model& model, std::span<const Series> series,
                                             const ForecastOptions& how, std::uint64_t limit,
                                             std::uint64_t& splits) {
  ForecasterOptions options;
  options.memory_limit = std::max<std::uint64_t>(limit, 1);
  Forecaster forecaster(model, options);
  try {
    std::vector<Forecast> found = forecaster.forecast(series, how);
    splits = forecaster.counters().splits;
    return found;
  } catch (const Error& error) {
    if (error.code() != "out_of_memory" && error.code() != "memory_limit") throw;
    return std::nullopt;
  }
}

/// With memory for a part of what was taken: the smallest part that the smallest piece fits into,
/// which of one series may be most of it. With all memory where the limit in force splits. A model
/// that forecasts in one pass has one piece of one series: that one is asked for twice.
Check chunks(const Forecaster& in_force, const Request& r, const std::vector<Forecast>& all) {
  const Counters before = in_force.counters();
  std::optional<std::vector<Forecast>> found;
  std::uint64_t splits = 0;
  std::vector<Series> series(r.series.begin(), r.series.end());
  std::vector<Forecast> expected = all;
  const std::string again = fmt::format("{} again", all.front().id);  // ids address the draws
  if (series.size() == 1 && before.splits == 0) {
    series.push_back(series.front());
    series.back().id = again;
    expected.push_back(
        Forecaster(in_force.model()).forecast({&series.back(), 1}, r.options).front());
  }
  if (before.splits != 0) {
    found = Forecaster(in_force.model()).forecast(r.series, r.options);
    splits = before.splits;
  }
  const std::uint64_t most = series.size() > r.series.size() ? 16 : 8;
  for (std::uint64_t eighths = 2; eighths < most && splits == 0; ++eighths) {
    const std::uint64_t limit = before.working_bytes * eighths / 8;
    if (auto part = limited(in_force.model(), series, r.options, limit, splits)) {
      found = std::move(part);
    }
  }
  if (before.working_bytes == 0) {  // a network that needs none has nothing to split
    found = limited(in_force.model(), series, r.options, 1, splits);
  } else if (splits == 0) {
    Check c = same("chunks", "bytes that differ when a limit of memory splits the work", {}, all);
    c.value = std::nan("");
    c.verdict = Verdict::could_not_run;
    c.why = "nothing was split";
    return c;
  }
  Check c = same("chunks", "bytes that differ when a limit of memory splits the work",
                 found.value_or(std::vector<Forecast>()), expected);
  c.why += fmt::format("; split {} times", splits);
  return c;
}

/// Numbers of threads that are not the one in force.
std::vector<int> other_threads(const SuiteState& state) {
  const int asked = state.options.load.threads;
  const int mine = asked == 0 ? available_cores() : asked;
  std::vector<int> counts;
  for (const int threads : {1, 3, 2}) {
    if (threads != mine && counts.size() < (state.quick() ? 1U : 2U)) counts.push_back(threads);
  }
  return counts;
}

}  // namespace

std::vector<Check> same_bits_again(SuiteState& state, const Variant& variant) {
  const Model& model = state.model(variant);
  const Request r = request_for(state, patch_of(model));
  Forecaster free = state.forecaster(variant);
  std::vector<Forecast> all(r.series.size());
  free.forecast(r.series, r.options, all);
  std::vector<Check> checks;
  checks.push_back(chunks(free, r, all));
  state.bits[variant.label()] = digests_of(free, r, all);
  checks.push_back(same("the same call again", "bytes that differ in a second call",
                        free.forecast(r.series, r.options), all));

  std::vector<Forecast> alone;
  alone.reserve(r.series.size());
  for (const Series& s : r.series) {
    alone.push_back(std::move(free.forecast({&s, 1}, r.options).front()));
  }
  checks.push_back(
      same("alone or in a batch", "bytes that differ when a series is forecast alone", alone, all));

  const std::vector<Series> reversed(r.series.rbegin(), r.series.rend());
  std::vector<Forecast> turned = free.forecast(reversed, r.options);
  std::reverse(turned.begin(), turned.end());
  checks.push_back(same("order", "bytes that differ in reversed order", turned, all));
  for (Check& c : without_parameters(free, r.series, r.options, all, "without parameters")) {
    checks.push_back(std::move(c));
  }
  for (Check& c : check_draws(free, r, all)) checks.push_back(std::move(c));
  return checks;
}

std::vector<Check> same_bits_by_threads(SuiteState& state, const Variant& variant) {
  const Request r = request_for(state, patch_of(state.model(variant)));
  const std::vector<Forecast> all = state.forecaster(variant).forecast(r.series, r.options);
  std::vector<Check> checks;
  for (const int threads : other_threads(state)) {
    const Model other = state.harness.load(variant, threads);
    checks.push_back(same(fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"),
                          "bytes that differ from those of the threads in force",
                          state.forecaster(other, variant).forecast(r.series, r.options), all));
  }
  return checks;
}

}  // namespace toto::verify
