// SPDX-License-Identifier: Apache-2.0
// A mixture's cdf by numerical integration of the density in long double: slow, plain, and nothing
// in common with the formulas of the library.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "statistics/mixture.h"

namespace toto {

struct MixtureParameters {
  std::vector<double> df, loc, scale, probability;

  [[nodiscard]] std::size_t size() const { return df.size(); }
  void assign_to(Mixture& mixture) const { mixture.assign(df, loc, scale, probability); }
};

/// The density at x without its constant.
inline long double student_t_kernel(long double x, long double df) {
  return std::exp(-(df + 1) / 2 * std::log1p(x * x / df));
}

/// Its integral from t >= 0 to infinity by the double exponential rule x = t + exp(pi/2 sinh u) for
/// half-infinite ranges (Takahasi and Mori 1974). The trapezoidal sum over u converges like
/// exp(-c/h): at h = 1/32 it is exact to 17 digits or so.
inline long double student_t_kernel_tail(long double t, long double df) {
  constexpr long double kHalfPi = std::numbers::pi_v<long double> / 2;
  constexpr int kPerUnit = 32;
  constexpr int kReach = 5 * kPerUnit;  // exp(pi/2 sinh(5)) = 10^50
  long double sum = 0;
  for (int i = -kReach; i <= kReach; ++i) {
    const long double u = static_cast<long double>(i) / kPerUnit;
    const long double step = std::exp(kHalfPi * std::sinh(u));
    sum += student_t_kernel(t + step, df) * step * kHalfPi * std::cosh(u);
  }
  return sum / kPerUnit;
}

struct OracleValue {
  long double lower = 0;  // P(X <= x)
  long double upper = 0;  // P(X > x)
  long double pdf = 0;
};

/// The constant of each density comes from integrating it over everything.
class MixtureOracle {
 public:
  explicit MixtureOracle(const MixtureParameters& p) : p_(p) {
    for (std::size_t k = 0; k < p.size(); ++k) {
      if (p.probability[k] == 0) {
        constant_.push_back(0);
        continue;
      }
      total_ += p.probability[k];
      constant_.push_back(1 / (2 * student_t_kernel_tail(0, p.df[k])));
    }
  }

  [[nodiscard]] OracleValue at(long double x) const {
    OracleValue value;
    for (std::size_t k = 0; k < p_.size(); ++k) {
      if (p_.probability[k] == 0) continue;
      const long double weight = p_.probability[k] / total_;
      const long double z = (x - p_.loc[k]) / p_.scale[k];
      const long double tail = constant_[k] * student_t_kernel_tail(std::fabs(z), p_.df[k]);
      value.lower += weight * (z < 0 ? tail : 1 - tail);
      value.upper += weight * (z < 0 ? 1 - tail : tail);
      value.pdf += weight / p_.scale[k] * constant_[k] * student_t_kernel(z, p_.df[k]);
    }
    return value;
  }

 private:
  MixtureParameters p_;
  std::vector<long double> constant_;
  long double total_ = 0;
};

}  // namespace toto
