// SPDX-License-Identifier: Apache-2.0
#include "server/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "server/errors.h"
#include "toto/tools/data.hpp"

namespace toto::server {
namespace {

template <typename T>
void keep_columns(std::vector<T>& rows, std::size_t width, std::size_t first) {
  if (rows.empty()) return;
  std::size_t to = 0;
  for (std::size_t row = 0; row < rows.size(); row += width) {
    for (std::size_t t = first; t < width; ++t) rows[to++] = rows[row + t];
  }
  rows.resize(to);
}

}  // namespace

std::optional<double> timeout_of(const HttpRequest& request) {
  const std::string_view text = request.header("x-request-timeout-ms");
  if (text.empty()) return std::nullopt;
  std::uint64_t milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (error != std::errc() || end != text.data() + text.size() || milliseconds == 0 ||
      milliseconds > 86'400'000) {
    throw invalid_request("expected whole milliseconds, 1 to 86400000", "X-Request-Timeout-Ms");
  }
  return static_cast<double>(milliseconds) / 1000;
}

void append_row(SeriesInput& input, std::vector<float> row, const std::vector<bool>& missing) {
  std::size_t first = 0;
  while (first < row.size() && missing[first]) ++first;
  float last = first < row.size() ? row[first] : 0.0F;
  for (std::size_t t = 0; t < row.size(); ++t) {
    if (missing[t]) {
      row[t] = last;
    } else {
      last = row[t];
    }
    input.mask.push_back(missing[t] ? 0 : 1);
  }
  input.values.insert(input.values.end(), row.begin(), row.end());
}

void keep_context(SeriesInput& input, std::size_t context) {
  if (input.steps <= context) return;
  const std::size_t drop = input.steps - context;
  keep_columns(input.values, input.steps, drop);
  keep_columns(input.mask, input.steps, drop);
  const std::size_t wide = input.steps + input.options.horizon;
  keep_columns(input.ahead, wide, drop);
  keep_columns(input.ahead_mask, wide, drop);
  if (input.axis) input.axis->skip(drop);
  input.left_out += drop;
  input.steps = context;
}

void prepare(const SeriesInput& input, std::size_t lead, PreparedSeries& out) {
  out.values = input.values;
  out.mask = input.mask;
  if (input.known > 0) {
    data::ShiftedCovariates shifted = data::shift_covariates(
        input.ahead, input.ahead_mask, input.known, input.steps, input.options.horizon, lead);
    out.values.insert(out.values.end(), shifted.context.begin(), shifted.context.end());
    out.mask.insert(out.mask.end(), shifted.mask.begin(), shifted.mask.end());
    out.future = std::move(shifted.future);
  }
  out.view.id = input.id;
  out.view.variates = input.targets + input.past + input.known;
  out.view.steps = input.steps;
  out.view.values = out.values;
  const bool complete = std::ranges::find(out.mask, 0) == out.mask.end();
  if (!complete) out.view.mask = out.mask;
  out.view.groups = input.groups;
  out.view.exogenous = input.known;
  out.view.future_exogenous = out.future;
}

void require_answer(const ForecastCall& call) {
  double found = 0;
  for (const SeriesInput& input : call.inputs) {
    const ForecastOptions& options = input.options;
    const std::size_t samples = options.keep_samples ? options.num_samples : 0;
    found += static_cast<double>(input.targets + input.past) *
             static_cast<double>(options.horizon) *
             static_cast<double>(1 + options.levels.size() + samples);
  }
  if (found <= kMaxAnswer) return;
  throw Error(ExitStatus::usage, "answer_too_large",
              fmt::format("expected an answer of at most {:.0f} numbers, found {:.0f} (variates "
                          "times horizon times the mean, the levels and the samples)",
                          kMaxAnswer, found),
              {}, "send fewer series at a time, or ask for fewer samples or levels");
}

void require_limit(std::size_t found, std::size_t limit, std::string_view what,
                   std::string_view flag, std::string_view where) {
  if (found <= limit) return;
  throw Error(ExitStatus::usage, "limit_exceeded",
              fmt::format("expected at most {} {} ({}), found {}, {} more", limit, what, flag,
                          found, found - limit),
              where, "ask for less, or start the server with a higher limit");
}

}  // namespace toto::server
