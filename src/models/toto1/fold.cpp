// SPDX-License-Identifier: Apache-2.0
#include "models/toto1/fold.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

namespace toto {
namespace {

constexpr std::int64_t kColumns = 8;  // of a tile; with kRows its sums fill the registers
constexpr std::int64_t kRows = 4;

/// out[r][j] = sum_k head[r][k] * strip[k][j] for `Rows` rows of the head and the strip's columns.
/// Every sum is formed in the order of k.
template <std::int64_t Rows>
void fold_tile(const double* strip, const double* head, float* out, std::int64_t columns,
               std::int64_t width) {
  double sum[Rows][kColumns] = {};
  for (std::int64_t k = 0; k < width; ++k) {
    const double* row = strip + k * kColumns;
    for (std::int64_t r = 0; r < Rows; ++r) {
      const double h = head[r * width + k];
      for (std::int64_t j = 0; j < kColumns; ++j) sum[r][j] += h * row[j];
    }
  }
  for (std::int64_t r = 0; r < Rows; ++r) {
    for (std::int64_t j = 0; j < columns; ++j) {
      out[r * width + j] = static_cast<float>(sum[r][j]);
    }
  }
}

/// out[r][j] = sum_k head[r][k] * unembed[k][j] for one patch step. `strip` is scratch.
void fold_step(const float* unembed, const double* head, float* out, std::int64_t rows,
               std::int64_t width, std::vector<double>& strip) {
  strip.assign(static_cast<std::size_t>(width * kColumns), 0.0);
  for (std::int64_t j0 = 0; j0 < width; j0 += kColumns) {
    const std::int64_t columns = std::min(kColumns, width - j0);
    for (std::int64_t k = 0; k < width; ++k) {
      for (std::int64_t j = 0; j < columns; ++j) {
        strip[static_cast<std::size_t>(k * kColumns + j)] =
            static_cast<double>(unembed[k * width + j0 + j]);
      }
    }
    std::int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) {
      fold_tile<kRows>(strip.data(), head + r * width, out + r * width + j0, columns, width);
    }
    for (; r < rows; ++r) {
      fold_tile<1>(strip.data(), head + r * width, out + r * width + j0, columns, width);
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
    std::vector<double> strip;
    for (std::int64_t p = next++; p < patch; p = next++) {
      fold_step(unembed.data() + p * width * width, wide.data(),
                folded.weights.get() + p * rows * width, rows, width, strip);
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
  const auto start = [&] {
    try {
      helpers.emplace_back(work);
      return true;
    } catch (const std::system_error&) {  // no more threads: those that are there do it all
      return false;
    }
  };
  for (unsigned i = 1; i < count && start(); ++i) {
  }
  work();
  return folded;
}

}  // namespace toto
