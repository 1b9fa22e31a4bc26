// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/measures.h"

#include <cmath>

namespace toto::verify {

double mean_absolute_error(std::span<const float> forecast, std::span<const float> actual) {
  double sum = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    sum += std::abs(static_cast<double>(actual[i]) - static_cast<double>(forecast[i]));
  }
  return sum / static_cast<double>(actual.size());
}

double naive_error(std::span<const float> context) {
  double sum = 0;
  for (std::size_t i = 1; i < context.size(); ++i) {
    sum += std::abs(static_cast<double>(context[i]) - static_cast<double>(context[i - 1]));
  }
  return context.size() < 2 ? 0 : sum / static_cast<double>(context.size() - 1);
}

double quantile_loss(double level, double quantile, double actual) {
  return 2 * (actual - quantile) * (level - (actual < quantile ? 1 : 0));
}

double coverage(std::span<const float> lower, std::span<const float> upper,
                std::span<const float> actual) {
  double inside = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    inside += lower[i] <= actual[i] && actual[i] <= upper[i] ? 1 : 0;
  }
  return inside / static_cast<double>(actual.size());
}

}  // namespace toto::verify
