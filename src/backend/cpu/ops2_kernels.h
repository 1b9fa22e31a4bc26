// SPDX-License-Identifier: Apache-2.0
// Rows, heads and attention of Toto 2.0 for one instruction set.
//
// Attention takes keys in chunks in a fixed order, each merged into a running softmax; a key that a
// query may not see has weight 0, which changes no bit. So the bits of a row depend on its own
// query and on what it sees.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/attention_kernels.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/row_kernels.h"

namespace toto::cpu {

/// Queries of one variate that share keys and values: query q is head q % heads of token q / heads.
struct HeadGroupTask {
  const float* queries;      // of the first token, its first head
  std::size_t query_stride;  // from one token to the next
  float* out;                // likewise
  std::size_t out_stride;
  const float* keys;           // [slots][qk]
  const float* values;         // [slots][v]
  const std::uint8_t* hidden;  // [slots], or nullptr: a token sees what is as hidden as it is
  std::size_t first_own;       // slot of the first token
  std::size_t first;           // query
  std::size_t count;           // at most kQueryGroup
  std::size_t heads;           // of the group
  std::size_t qk;
  std::size_t v;
};

/// All variates of one token and head.
struct TokenVariatesTask {
  const float* query;  // of variate 0
  const float* key;
  const float* value;
  float* out;
  std::size_t stride;  // from one variate to the next, of queries, keys and values
  std::size_t out_stride;
  const std::int32_t* groups;  // [variates]
  const std::uint8_t* hidden;  // of variate 0, or nullptr: none is
  std::size_t hidden_stride;
  std::int32_t variates;
  std::size_t qk;
  std::size_t v;
};

inline constexpr std::size_t kQuantileRows = 9;

struct Ops2Kernels {
  /// y = x / sqrt(mean(x^2) + epsilon).
  void (*rms_norm)(const float* x, float* y, std::size_t dim, float epsilon);
  /// z [2 patch]: asinh of the scaled values, 0 where the mask is 0, then 1 where a value is
  /// missing, unless the patch is `refed`.
  void (*embed_input)(const float* values, const std::uint8_t* mask, float loc, float scale,
                      std::size_t patch, bool refed, float* z);
  /// y [9][patch] = sinh(raw) * scale + loc. Returns whether any is infinite.
  bool (*spread)(const float* raw, std::size_t patch, float loc, float scale, float* y);
  /// In place: between the bounds, then ascending by columns. Returns whether columns are left
  /// unsorted since there are NaN among them.
  bool (*cap_and_sort)(float* y, std::size_t patch, float low, float high);
  /// The first half of each of `heads` heads of width qk, in place; factor may be nullptr.
  void (*rotate_half)(const Rotation& at, float* x, std::size_t heads, std::size_t qk, bool invert);
  void (*time)(const HeadGroupTask& task, AttentionScratch& scratch);
  void (*variates)(const TokenVariatesTask& task);
};

const Ops2Kernels& ops2_kernels(Isa isa);

}  // namespace toto::cpu
