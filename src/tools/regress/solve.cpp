// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/solve.h"

#include <cmath>

namespace toto::regress {

void Moments::add(std::span<const double> x, double y, double sign) {
  const std::size_t n = x.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) xx[i * n + j] += sign * x[i] * x[j];
    xy[i] += sign * x[i] * y;
    sum_x[i] += sign * x[i];
  }
  sum_y += sign * y;
  count += sign;
}

void Moments::add(const Moments& other, double sign) {
  for (std::size_t i = 0; i < xx.size(); ++i) xx[i] += sign * other.xx[i];
  for (std::size_t i = 0; i < xy.size(); ++i) xy[i] += sign * other.xy[i];
  for (std::size_t i = 0; i < sum_x.size(); ++i) sum_x[i] += sign * other.sum_x[i];
  sum_y += sign * other.sum_y;
  count += sign * other.count;
}

Ridge solve(const Moments& m, double strength) {
  const std::size_t n = m.xy.size();
  Ridge out;
  out.coefficient.assign(n, 0);
  out.covariance.assign(n * n, 0);
  out.intercept = m.count > 0 ? m.sum_y / m.count : 0;
  if (!std::isfinite(strength) || m.count <= 0) return out;

  std::vector<double> deviation(n);
  std::vector<std::size_t> active;
  for (std::size_t j = 0; j < n; ++j) {
    const double mean = m.sum_x[j] / m.count;
    const double second = m.xx[j * n + j] / m.count;
    const double variance = second - mean * mean;
    if (!(variance > 1e-12 * second)) continue;  // it never changes
    deviation[j] = std::sqrt(variance);
    active.push_back(j);
  }
  // Correlations plus the ridge, by Cholesky: L L' = A. The ridge keeps A positive definite.
  const std::size_t k = active.size();
  std::vector<double> lower(k * k);
  std::vector<double> right(k);
  for (std::size_t a = 0; a < k; ++a) {
    const std::size_t i = active[a];
    for (std::size_t b = 0; b <= a; ++b) {
      const std::size_t j = active[b];
      double value = (m.xx[i * n + j] / m.count - m.sum_x[i] * m.sum_x[j] / m.count / m.count) /
                     (deviation[i] * deviation[j]);
      if (a == b) value = 1 + strength;
      for (std::size_t c = 0; c < b; ++c) value -= lower[a * k + c] * lower[b * k + c];
      lower[a * k + b] = a == b ? std::sqrt(std::max(value, 1e-12)) : value / lower[b * k + b];
    }
    right[a] = (m.xy[i] / m.count - m.sum_x[i] * m.sum_y / m.count / m.count) / deviation[i];
  }
  const auto solve_for = [&](std::vector<double> x) {
    for (std::size_t a = 0; a < k; ++a) {
      for (std::size_t c = 0; c < a; ++c) x[a] -= lower[a * k + c] * x[c];
      x[a] /= lower[a * k + a];
    }
    for (std::size_t a = k; a-- > 0;) {
      for (std::size_t c = a + 1; c < k; ++c) x[a] -= lower[c * k + a] * x[c];
      x[a] /= lower[a * k + a];
    }
    return x;
  };
  const std::vector<double> scaled = solve_for(right);
  for (std::size_t a = 0; a < k; ++a) {
    const std::size_t i = active[a];
    out.coefficient[i] = scaled[a] / deviation[i];
    out.intercept -= out.coefficient[i] * m.sum_x[i] / m.count;
    std::vector<double> unit(k);
    unit[a] = 1;
    const std::vector<double> column = solve_for(unit);
    for (std::size_t b = 0; b < k; ++b) {
      out.covariance[i * n + active[b]] =
          column[b] / (m.count * deviation[i] * deviation[active[b]]);
    }
  }
  return out;
}

std::vector<double> levinson(std::span<const double> autocovariance) {
  std::vector<double> phi;
  if (autocovariance.empty() || !(autocovariance[0] > 0)) return phi;
  double error = autocovariance[0];
  for (std::size_t p = 1; p < autocovariance.size(); ++p) {
    double next = autocovariance[p];
    for (std::size_t i = 0; i < phi.size(); ++i) next -= phi[i] * autocovariance[p - 1 - i];
    const double reflection = next / error;
    if (!(std::abs(reflection) < 1)) break;
    std::vector<double> longer = phi;
    for (std::size_t i = 0; i < phi.size(); ++i) longer[i] -= reflection * phi[phi.size() - 1 - i];
    longer.push_back(reflection);
    phi = std::move(longer);
    error *= 1 - reflection * reflection;
  }
  return phi;
}

}  // namespace toto::regress
