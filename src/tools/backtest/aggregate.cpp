// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/aggregate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "core/json.h"
#include "core/student_t.h"
#include "statistics/mixture.h"
#include "toto/error.hpp"

namespace toto::backtest {
namespace {

constexpr std::string_view kWords =
    "mean, median, p10, p90, quantile_Q, trimmed_mean_F, lower_trimmed_mean_F, "
    "upper_trimmed_mean_F, mean_minus_std_K, mean_plus_std_K, mean_quantile_mix_Q_W, "
    "quantile_plus_std_Q_K";

[[noreturn]] void refuse(std::string_view text, std::string_view code, std::string_view why) {
  throw Error(ExitStatus::usage, code, fmt::format("{} {}", quote(text), why), "--aggregate",
              fmt::format("there are {}", kWords));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Aggregate parse() {
    using Kind = Aggregate::Kind;
    if (text_ == "mean") return {Kind::mean, 0, 0};
    if (text_ == "median") return {Kind::quantile, 0.5, 0};
    if (text_ == "p10") return {Kind::quantile, 0.1, 0};
    if (text_ == "p90") return {Kind::quantile, 0.9, 0};
    // The longer words first, where one begins like another.
    if (const auto n = numbers("quantile_plus_std_", 2)) {
      return {Kind::quantile_std, share((*n)[0]), (*n)[1]};
    }
    if (const auto n = numbers("mean_quantile_mix_", 2)) {
      if ((*n)[1] < 0 || (*n)[1] > 1)
        refuse(text_, "invalid_aggregate", "has a weight beyond 0 to 1");
      return {Kind::mean_quantile, share((*n)[0]), (*n)[1]};
    }
    if (const auto n = numbers("quantile_", 1)) return {Kind::quantile, share((*n)[0]), 0};
    if (const auto n = numbers("trimmed_mean_", 1)) {
      const double left_out = share((*n)[0]);
      if (left_out >= 0.5) refuse(text_, "invalid_aggregate", "leaves nothing over");
      return {Kind::trimmed, left_out, left_out};
    }
    if (const auto n = numbers("lower_trimmed_mean_", 1)) {
      return {Kind::trimmed, 0, trimmed_share((*n)[0])};
    }
    if (const auto n = numbers("upper_trimmed_mean_", 1)) {
      return {Kind::trimmed, trimmed_share((*n)[0]), 0};
    }
    if (const auto n = numbers("mean_minus_std_", 1)) return {Kind::mean_std, -(*n)[0], 0};
    if (const auto n = numbers("mean_plus_std_", 1)) return {Kind::mean_std, (*n)[0], 0};
    refuse(text_, "unknown_aggregate", "is no aggregate");
  }

 private:
  [[nodiscard]] std::optional<std::vector<double>> numbers(std::string_view word,
                                                           std::size_t count) const {
    if (!text_.starts_with(word)) return std::nullopt;
    std::vector<double> found;
    std::string_view rest = text_.substr(word.size());
    while (found.size() < count) {
      const std::string_view one = rest.substr(0, rest.find('_'));
      double value = 0;
      const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), value);
      if (error != std::errc() || end != one.data() + one.size() || !std::isfinite(value)) {
        return std::nullopt;
      }
      found.push_back(value);
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
    if (!rest.empty()) return std::nullopt;
    return found;
  }

  [[nodiscard]] double share(double value) const {
    if (value > 1) value /= 100;
    if (value < 0 || value > 1) refuse(text_, "invalid_aggregate", "has a share beyond 0 to 1");
    return value;
  }

  [[nodiscard]] double trimmed_share(double value) const {
    value = share(value);
    if (value >= 1) refuse(text_, "invalid_aggregate", "leaves nothing over");
    return value;
  }

  std::string_view text_;
};

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double x : values) sum += x;
  return sum / static_cast<double>(values.size());
}

double std_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

double trimmed(std::span<const double> sorted, double below, double above) {
  const auto total = static_cast<double>(sorted.size());
  if (below > 0 && above > 0) {
    const auto each = static_cast<std::size_t>(total * below);
    if (each * 2 >= sorted.size()) return mean_of(sorted);
    return mean_of(sorted.subspan(each, sorted.size() - 2 * each));
  }
  if (above > 0) {
    const auto kept = static_cast<std::size_t>(total * (1 - above));
    return mean_of(sorted.first(std::max<std::size_t>(kept, 1)));
  }
  const auto dropped = static_cast<std::size_t>(total * below);
  return mean_of(sorted.subspan(std::min(dropped, sorted.size() - 1)));
}

double spread_of(const Mixture& mixture) {
  const double std = mixture.standard_deviation();
  return std::isnan(std) ? spread_of_band(mixture.quantile(kBandLow), mixture.quantile(kBandHigh))
                         : std;
}

/// sum p E[X; X <= x] over the components, probabilities normalised.
double partial_mean(const ExactStep& step, double x) {
  double sum = 0;
  double weights = 0;
  for (std::size_t k = 0; k < step.df.size(); ++k) {
    const double p = step.probability[k];
    if (!(p > 0)) continue;
    weights += p;
    if (x == -INFINITY) continue;
    if (x == INFINITY) {
      sum += p * step.loc[k];
      continue;
    }
    const double df = step.df[k];
    const double z = (x - step.loc[k]) / step.scale[k];
    // The integral of t f(t) up to z is -(df + z^2) / (df - 1) f(z).
    const double tail = (1 + z * z / df) / (1 - 1 / df) * student_t_pdf(z, df);
    sum += p * (step.loc[k] * student_t_cdf(z, df) - step.scale[k] * tail);
  }
  return sum / weights;
}

}  // namespace

std::string_view aggregate_words() { return kWords; }

Aggregate parse_aggregate(std::string_view text) { return Parser(text).parse(); }

std::vector<Aggregate> parse_aggregates(std::string_view text) {
  std::vector<Aggregate> all;
  while (true) {
    const std::size_t comma = text.find(',');
    all.push_back(parse_aggregate(text.substr(0, comma)));
    if (comma == std::string_view::npos) return all;
    text.remove_prefix(comma + 1);
  }
}

double spread_of_band(double low, double high) {
  constexpr double kNormal = 2.5631031310892007;  // between the normal's quantiles 0.1 and 0.9
  return (high - low) / kNormal;
}

double quantile_of(std::span<const double> sorted, double level) {
  const double rank = level * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(rank);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  const double share = rank - static_cast<double>(low);
  // As NumPy does, from the nearer end.
  const double difference = sorted[high] - sorted[low];
  return share < 0.5 ? sorted[low] + difference * share : sorted[high] - difference * (1 - share);
}

double aggregate(const Aggregate& what, std::span<const double> sorted) {
  using Kind = Aggregate::Kind;
  switch (what.kind) {
    case Kind::mean:
      return mean_of(sorted);
    case Kind::quantile:
      return quantile_of(sorted, what.first);
    case Kind::trimmed:
      return trimmed(sorted, what.first, what.second);
    case Kind::mean_std:
      return mean_of(sorted) + what.first * std_of(sorted);
    case Kind::mean_quantile:
      return what.second * mean_of(sorted) + (1 - what.second) * quantile_of(sorted, what.first);
    case Kind::quantile_std:
      return quantile_of(sorted, what.first) + what.second * std_of(sorted);
  }
  return NAN;
}

double aggregate(const Aggregate& what, const ExactStep& step) {
  using Kind = Aggregate::Kind;
  Mixture mixture(step.df.size());
  mixture.assign(step.df, step.loc, step.scale, step.probability);
  switch (what.kind) {
    case Kind::mean:
      return mixture.mean();
    case Kind::quantile:
      return mixture.quantile(what.first);
    case Kind::trimmed: {
      if (what.first == 0 && what.second == 0) return mixture.mean();
      const double low = what.first > 0 ? mixture.quantile(what.first) : -INFINITY;
      const double high = what.second > 0 ? mixture.quantile(1 - what.second) : INFINITY;
      return (partial_mean(step, high) - partial_mean(step, low)) / (1 - what.first - what.second);
    }
    case Kind::mean_std:
      return mixture.mean() + what.first * spread_of(mixture);
    case Kind::mean_quantile:
      return what.second * mixture.mean() + (1 - what.second) * mixture.quantile(what.first);
    case Kind::quantile_std:
      return mixture.quantile(what.first) + what.second * spread_of(mixture);
  }
  return NAN;
}

}  // namespace toto::backtest
