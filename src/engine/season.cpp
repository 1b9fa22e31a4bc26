// SPDX-License-Identifier: Apache-2.0
#include "engine/season.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <map>
#include <numbers>

#include "engine/observed.h"

namespace toto {
namespace {

constexpr std::size_t kLeastPeriods = 3;                       // that a series has of its season
constexpr std::size_t kLeastSteps = 9, kMostSteps = 1U << 16;  // looked at, the last ones
constexpr std::size_t kMostPeaks = 4;                          // of each autocorrelation
constexpr std::size_t kMostParts = 12;                         // a peak may lie at so many periods
constexpr std::size_t kHeldBack = 16;  // steps or more, where there are enough
constexpr double kDecay = 0.8;         // weight of a period relative to that after it
constexpr double kLeastStrength = 0.7;
constexpr double kWorse = 1.25, kSlack = 0.03;  // what a shorter period may leave unexplained
constexpr double kWeightPart = 0.02, kMostWeight = 100;
constexpr double kNothing = 1e-6;  // of the greatest value: what rounding can do

double to_double(std::size_t n) { return static_cast<double>(n); }

/// In place; the size is a power of two.
void fourier(std::vector<std::complex<double>>& x) {
  const std::size_t n = x.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n / 2;
    for (; (j & bit) != 0; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  std::vector<std::complex<double>> turns(n / 2);
  for (std::size_t i = 0; i < n / 2; ++i) {
    turns[i] = std::polar(1.0, -2 * std::numbers::pi * to_double(i) / to_double(n));
  }
  for (std::size_t half = 1; half < n; half *= 2) {
    const std::size_t stride = n / (2 * half);
    for (std::size_t begin = 0; begin < n; begin += 2 * half) {
      for (std::size_t i = 0; i < half; ++i) {
        const std::complex<double> turn = turns[i * stride];
        const std::complex<double> a = x[begin + i], b = x[begin + half + i];
        // By parts: the operator also looks for infinities.
        const std::complex<double> c(b.real() * turn.real() - b.imag() * turn.imag(),
                                     b.real() * turn.imag() + b.imag() * turn.real());
        x[begin + i] = a + c;
        x[begin + half + i] = a - c;
      }
    }
  }
}

void subtract_mean(std::vector<double>& y) {
  double mean = 0;
  for (const double value : y) mean += value;
  mean /= to_double(y.size());
  for (double& value : y) value -= mean;
}

/// Of lags 0 to `lags`, relative to that of lag 0, each per pair of values. Empty: nothing varies.
struct Autocorrelations {
  std::vector<double> one, other;
};

/// Of two series by the same two transforms, as real and imaginary parts.
Autocorrelations autocorrelations(std::vector<double> one, std::vector<double> other,
                                  std::size_t lags) {
  subtract_mean(one);
  subtract_mean(other);
  const std::size_t n = std::bit_ceil(std::max(one.size(), other.size()) + lags + 1);
  std::vector<std::complex<double>> x(n), power(n);
  for (std::size_t t = 0; t < one.size(); ++t) x[t].real(one[t]);
  for (std::size_t t = 0; t < other.size(); ++t) x[t].imag(other[t]);
  fourier(x);
  for (std::size_t k = 0; k < n; ++k) {
    const std::complex<double> mirrored = std::conj(x[(n - k) % n]);
    power[k] = {std::norm(x[k] + mirrored), std::norm(x[k] - mirrored)};
  }
  fourier(power);
  const auto relative = [&](std::size_t size, const auto& part) {
    std::vector<double> found;
    const double whole = part(power[0]);
    if (!(whole > 0)) return found;
    for (std::size_t lag = 0; lag <= lags; ++lag) {
      found.push_back(part(power[lag]) / whole * to_double(size) / to_double(size - lag));
    }
    return found;
  };
  return {relative(one.size(), [](const std::complex<double>& z) { return z.real(); }),
          relative(other.size(), [](const std::complex<double>& z) { return z.imag(); })};
}

/// Less its straight line of least squares.
std::vector<double> without_trend(std::span<const double> y) {
  const double middle = to_double(y.size() - 1) / 2;
  double mean = 0, product = 0, square = 0;
  for (const double value : y) mean += value;
  mean /= to_double(y.size());
  for (std::size_t t = 0; t < y.size(); ++t) {
    const double off = to_double(t) - middle;
    product += off * (y[t] - mean);
    square += off * off;
  }
  std::vector<double> rest(y.begin(), y.end());
  for (std::size_t t = 0; t < y.size(); ++t) {
    rest[t] -= mean + product / square * (to_double(t) - middle);
  }
  return rest;
}

std::vector<double> moves_of(std::span<const double> y) {
  std::vector<double> moves;
  for (std::size_t t = 1; t < y.size(); ++t) moves.push_back(y[t] - y[t - 1]);
  return moves;
}

/// A series about the running mean of one period, which the first and last steps do not have.
class Shape {
 public:
  explicit Shape(std::span<const double> y) : y_(y), sums_(y.size() + 1) {
    double mean = 0;
    for (const double value : y) mean += value;
    mean_ = mean / to_double(y.size());
    for (std::size_t t = 0; t < y.size(); ++t) sums_[t + 1] = sums_[t] + (y[t] - mean_);
  }

  void set_period(std::size_t period) {
    period_ = period;
    first_ = period / 2;
    const bool even = period % 2 == 0;
    const std::size_t count = y_.size() - period + (even ? 0 : 1);
    const double scale = 1 / to_double(period);
    rest_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      double level = (sums_[i + period] - sums_[i]) * scale;
      if (even) level = (level + (sums_[i + 1 + period] - sums_[i + 1]) * scale) / 2;
      rest_[i] = y_[first_ + i] - mean_ - level;
    }
  }

  /// The share of the variance of its last periods that the profile of those before them explains.
  double strength() {
    const std::size_t periods = rest_.size() / period_;
    if (periods < 2) return -1;
    const std::size_t back = std::min((kHeldBack + period_ - 1) / period_, periods / 2) * period_;
    const std::size_t kept = rest_.size() - back;
    make_profile(kept, kept);
    double left = 0, all = 0;
    std::size_t phase = (first_ + kept) % period_;
    for (std::size_t i = kept; i < rest_.size(); ++i) {
      const double off = rest_[i] - profile_[phase];
      left += off * off;
      all += rest_[i] * rest_[i];
      if (++phase == period_) phase = 0;
    }
    return all > 0 ? 1 - left / all : -1;
  }

  /// Of all periods, drawn towards 0 by as much as chance has a part in it.
  std::vector<double> profile() {
    make_profile(rest_.size(), y_.size() - first_);
    double noise = 0, size = 0;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      const double off = rest_[i] - profile_[(first_ + i) % period_];
      noise += off * off;
    }
    noise /= to_double(std::max<std::size_t>(1, rest_.size() - period_));
    for (const double value : profile_) size += value * value;
    size /= to_double(period_);
    const double periods = to_double(rest_.size()) / to_double(period_);
    const double part = size > 0 ? std::max(0.0, 1 - noise / periods / size) : 0.0;
    for (double& value : profile_) value *= part;
    return profile_;
  }

 private:
  /// The weighted mean of the first `count` by phase, about its own mean. Weights fall from period
  /// to period before `end`.
  void make_profile(std::size_t count, std::size_t end) {
    profile_.assign(period_, 0.0);
    weights_.assign(period_, 0.0);
    double weight = 1;
    std::size_t left = period_;  // of the period that has this weight
    left -= end - count;         // less than a period
    std::size_t phase = (first_ + count) % period_;
    for (std::size_t i = count; i-- > 0;) {
      if (left == 0) {
        weight *= kDecay;
        left = period_;
      }
      --left;
      phase = (phase == 0 ? period_ : phase) - 1;
      profile_[phase] += weight * rest_[i];
      weights_[phase] += weight;
    }
    double mean = 0;
    for (std::size_t k = 0; k < period_; ++k) {
      profile_[k] /= weights_[k];
      mean += profile_[k];
    }
    mean /= to_double(period_);
    for (double& value : profile_) value -= mean;
  }

  std::span<const double> y_;
  double mean_ = 0;
  std::vector<double> sums_;
  std::size_t period_ = 1, first_ = 0;
  std::vector<double> rest_, profile_, weights_;
};

/// The highest peaks of an autocorrelation.
void add_peaks(const std::vector<double>& a, std::size_t most, double least,
               std::vector<std::size_t>& periods) {
  std::vector<std::size_t> peaks;
  for (std::size_t lag = 2; !a.empty() && lag <= most; ++lag) {
    if (a[lag] > a[lag - 1] && a[lag] >= a[lag + 1] && a[lag] > least) peaks.push_back(lag);
  }
  std::ranges::stable_sort(peaks, [&](std::size_t p, std::size_t q) { return a[p] > a[q]; });
  peaks.resize(std::min(peaks.size(), kMostPeaks));
  periods.insert(periods.end(), peaks.begin(), peaks.end());
}

/// The shortest of the periods that leave hardly more unexplained than the best.
std::size_t choose(const std::map<std::size_t, double>& strengths) {
  double best = -1;
  for (const auto& [period, strength] : strengths) best = std::max(best, strength);
  for (const auto& [period, strength] : strengths) {
    if (1 - strength <= kWorse * (1 - best) + kSlack) return period;
  }
  return 0;
}

/// Of one variate from its first to its last observation, with straight lines across what is
/// missing. Empty: there is too little, or what is no number.
std::vector<double> whole_row(const Series& s, std::size_t v, bool log, std::size_t& first) {
  const double offset = log && !s.value_offsets.empty() ? s.value_offsets[v] : 0.0;
  const std::size_t row = v * s.steps;
  std::vector<double> y;
  std::size_t seen = 0, last = 0;
  first = 0;
  for (std::size_t t = s.steps - std::min(s.steps, kMostSteps); t < s.steps; ++t) {
    if (!observed(s, row + t)) continue;
    const double value = offset + double{s.values[row + t]};
    if (!std::isfinite(value)) return {};
    const double here = log ? std::log(value) : value;
    if (seen == 0) {
      first = t;
    } else {
      const double before = y.back(), steps = to_double(t - last);
      for (std::size_t i = last + 1; i < t; ++i) {
        y.push_back(before + (here - before) * to_double(i - last) / steps);
      }
    }
    y.push_back(here);
    last = t;
    ++seen;
  }
  if (2 * seen < y.size()) y.clear();
  return y;
}

}  // namespace

double Season::weight() const {
  const double left = std::max(1 - strength, kWeightPart / kMostWeight);
  return std::max(1.0, kWeightPart / left);
}

Season find_season(std::span<const double> y) {
  Season found;
  if (y.size() < kLeastSteps) return found;
  const std::size_t most = y.size() / kLeastPeriods;
  const double least = 2 / std::sqrt(to_double(y.size()));
  std::vector<std::size_t> periods;
  const Autocorrelations found_in = autocorrelations(moves_of(y), without_trend(y), most + 1);
  add_peaks(found_in.one, most, least, periods);
  add_peaks(found_in.other, most, least, periods);
  if (periods.empty()) return found;

  Shape shape(y);
  std::map<std::size_t, double> strengths;
  const auto try_period = [&](std::size_t period) {
    const auto [at, added] = strengths.try_emplace(period, -1.0);
    if (!added) return;
    shape.set_period(period);
    at->second = shape.strength();
  };
  for (const std::size_t period : periods) try_period(period);
  const std::size_t first = choose(strengths);
  for (std::size_t part = 2; part <= kMostParts; ++part) {
    if (first % part == 0 && first / part >= 2) try_period(first / part);
  }
  const std::size_t period = choose(strengths);
  if (!(strengths[period] >= kLeastStrength)) return found;
  shape.set_period(period);
  found.profile = shape.profile();
  double size = 0, greatest = 0;
  for (const double value : found.profile) size = std::max(size, std::abs(value));
  for (const double value : y) greatest = std::max(greatest, std::abs(value));
  if (!(size > kNothing * greatest)) return {};
  found.period = period;
  found.strength = strengths[period];
  return found;
}

bool Seasons::any() const {
  return std::ranges::any_of(of, [](const Season& one) { return one.any(); });
}

double Seasons::at(std::size_t variate, std::size_t t) const {
  const Season& season = of[variate];
  const std::size_t since = t + season.period - first[variate] % season.period;
  return season.profile[since % season.period];
}

void find_seasons(const Series& series, std::size_t targets, bool positive, Seasons& found) {
  const auto find = [&](bool log, Seasons& into) {
    into.log = log;
    into.of.clear();
    into.first.assign(targets, 0);
    double strength = 0;
    for (std::size_t v = 0; v < targets; ++v) {
      into.of.push_back(find_season(whole_row(series, v, log, into.first[v])));
      strength += into.of.back().strength;
    }
    return strength;
  };
  const double plain = find(false, found);
  if (!positive) return;
  Seasons of_log;
  if (find(true, of_log) > plain) found = std::move(of_log);
}

}  // namespace toto
