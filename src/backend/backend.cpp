// SPDX-License-Identifier: Apache-2.0
// What backends do unless they know better: staging where memory is the host's, folded weights.
#include "backend/backend.h"

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/folded_matrix.h"

namespace toto {

Staging Backend::allocate_staging(std::size_t bytes) {
  Staging staging;
  staging.bytes = bytes;
  staging.host = staging.device = static_cast<std::byte*>(allocate(bytes));
  return staging;
}

void Backend::release_staging(const Staging& staging) noexcept {
  if (staging.host != nullptr) release(staging.host);
}

Matrix Backend::upload_folded_matrix(const FoldedMatrix& matrix, Epilogue use, bool exact) {
  const auto in = static_cast<std::size_t>(matrix.in);
  auto weights = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(matrix.out) * in);
  for (std::int32_t row = 0; row < matrix.out; ++row) {
    matrix.fold(row, 0, std::span(weights.get() + static_cast<std::size_t>(row) * in, in));
  }
  const std::vector<float> bias(matrix.bias.begin(), matrix.bias.end());
  const auto upload = exact ? &Backend::upload_exact_matrix : &Backend::upload_matrix;
  return (this->*upload)(std::move(weights), matrix.out, matrix.in, bias, use);
}

}  // namespace toto
