// SPDX-License-Identifier: Apache-2.0
// Attention for one instruction set (spec A7.3, A7.4).
//
// Keys are taken in chunks in a fixed order, each chunk merged into a running softmax by its
// largest logit: the bits of a row depend on its own query and keys, not on which other rows are
// computed. The shared prefix is a matrix product, many queries by one panel of transposed keys;
// the private keys of a trajectory are few, and are taken one dot product at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cpu/isa.h"

namespace toto::cpu {

inline constexpr std::int32_t kQueryGroup = 128;  // queries of one task
inline constexpr std::int32_t kKeyChunk = 64;     // keys merged at a time
inline constexpr std::int32_t kMaxPanelDim =
    256;  // wider heads use dot products for the prefix too

struct AttentionScratch {
  alignas(64) float panel[kMaxPanelDim * kKeyChunk];
  const float* query[kQueryGroup];
  float* out[kQueryGroup];
  const float* keys[kQueryGroup];  // private ones of each query
  const float* values[kQueryGroup];
};

/// What the tasks of one operation have in common.
struct AttentionShape {
  const float* qkv;  // [rows][3][heads][d]
  float* out;        // [rows][heads][d], or [lanes][heads][d]
  const float* keys;
  const float* values;
  const std::int32_t* ids;
  std::int32_t heads;
  std::int32_t d;
  bool last_only;
};

/// Queries first .. first + count - 1 of one variate and head: numbered by trajectory and token, or
/// by trajectory alone where only the last token is asked for.
struct TimeTask {
  const Block* block;
  std::int32_t variate;
  std::int32_t head;
  std::int32_t first;
  std::int32_t count;  // at most kQueryGroup
};

/// All variates of one trajectory, token and head.
struct VariateTask {
  const Block* block;
  std::int32_t trajectory;
  std::int32_t token;
  std::int32_t head;
};

struct AttentionKernels {
  void (*time)(const AttentionShape& shape, const TimeTask& task, AttentionScratch& scratch);
  void (*variates)(const AttentionShape& shape, const VariateTask& task);
};

const AttentionKernels& attention_kernels(Isa isa);

}  // namespace toto::cpu
