// SPDX-License-Identifier: Apache-2.0
#include "model/fold.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace toto {
namespace {

/// out[r][j] = sum_k head[r][k] * unembed[k][j] for one patch step. The inner loop runs over j, so
/// that both operands stream and every sum is formed in the order of k.
void fold_step(const float* unembed, const double* head, float* out, std::int64_t rows,
               std::int64_t width, std::vector<double>& sums) {
  constexpr std::int64_t kColumns = 64;  // sums of a strip stay in the first-level cache
  sums.assign(static_cast<std::size_t>(rows * kColumns), 0.0);
  for (std::int64_t j0 = 0; j0 < width; j0 += kColumns) {
    const std::int64_t n = std::min(kColumns, width - j0);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int64_t k = 0; k < width; ++k) {
      double row[kColumns];
      for (std::int64_t j = 0; j < n; ++j)
        row[j] = static_cast<double>(unembed[k * width + j0 + j]);
      for (std::int64_t r = 0; r < rows; ++r) {
        const double h = head[r * width + k];
        double* sum = sums.data() + r * kColumns;
        for (std::int64_t j = 0; j < n; ++j) sum[j] += h * row[j];
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t j = 0; j < n; ++j) {
        out[r * width + j0 + j] =
            static_cast<float>(sums[static_cast<std::size_t>(r * kColumns + j)]);
      }
    }
  }
}

}  // namespace

FoldedHead fold_head(std::span<const float> unembed, std::span<const float> unembed_bias,
                     std::span<const float> head, std::span<const float> head_bias,
                     std::int64_t patch, std::int64_t width) {
  const auto rows = static_cast<std::int64_t>(head_bias.size());
  FoldedHead folded;
  folded.weights =
      std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(patch * rows * width));
  folded.bias.resize(static_cast<std::size_t>(patch * rows));
  const std::vector<double> wide(head.begin(), head.end());

  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    std::vector<double> sums;
    for (std::int64_t p = next++; p < patch; p = next++) {
      fold_step(unembed.data() + p * width * width, wide.data(),
                folded.weights.get() + p * rows * width, rows, width, sums);
      for (std::int64_t r = 0; r < rows; ++r) {
        double sum = head_bias[static_cast<std::size_t>(r)];
        for (std::int64_t k = 0; k < width; ++k) {
          sum += wide[static_cast<std::size_t>(r * width + k)] *
                 static_cast<double>(unembed_bias[static_cast<std::size_t>(p * width + k)]);
        }
        folded.bias[static_cast<std::size_t>(p * rows + r)] = static_cast<float>(sum);
      }
    }
  };
  std::vector<std::jthread> helpers;
  const unsigned count = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < count; ++i) helpers.emplace_back(work);
  work();
  return folded;
}

}  // namespace toto
