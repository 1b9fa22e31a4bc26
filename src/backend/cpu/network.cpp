// SPDX-License-Identifier: Apache-2.0
// Spec A6-A8 on the CPU backend: labels, norm, rotary embedding, attention.
#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/split.h"
#include "backend/expected_views.h"
#include "backend/operation.h"

namespace toto::cpu {
namespace {

// Guessed cycles, to decide whether an operation is worth more than one thread.
constexpr std::int64_t cycles_of_copy(std::int64_t elements) { return elements / 8 + 10; }
constexpr std::int64_t cycles_of_attention(std::int64_t keys, std::int64_t d) {
  return keys * (20 + d / 4) + 200;
}

}  // namespace

void CpuBackend::rms_norm(const ConstView& x, const ConstView& gain, const View& y) const {
  const OperationSpan span(Operation::rms_norm);
  expected::rms_norm(*this, x, gain, y);
  const std::int64_t dim = x.width;
  const float* const from = typed<float>(x);
  const float* const gains = typed<float>(gain);
  float* const to = typed<float>(y);
  split(team_, x.rows.count, cycles_of_copy(2 * dim),
        [&](std::int64_t first, std::int64_t end, int) {
          for (std::int64_t row = first; row < end; ++row) {
            rows_.rms_norm(from + row * dim, gains, to + row * dim, static_cast<std::size_t>(dim));
          }
        });
}

void CpuBackend::set_labels(const Batch& batch, const ConstView& labels, const View& hidden) const {
  const OperationSpan span(Operation::set_labels);
  expected::set_labels(*this, batch, labels, hidden);
  const std::int32_t dim = hidden.width;
  const float* const both = typed<float>(labels);
  float* const rows = typed<float>(hidden);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    if (b.labels == 0) continue;
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const bool exogenous = lane % b.variates >= b.variates - b.exogenous;
      std::copy_n(both + (exogenous ? dim : 0), dim,
                  rows + std::int64_t{b.row + lane * b.tokens} * dim);
    }
  }
}

void CpuBackend::rotary_append(const Batch& batch, const Rotary& rotary, const View& qkv,
                               const KvLayer& kv, std::int32_t heads) const {
  const OperationSpan span(Operation::rotary_append);
  const std::int64_t d = expected::rotary_append(*this, batch, rotary, qkv, kv, heads);
  float* const rows = typed<float>(qkv);
  float* const keys = typed<float>(kv.keys);
  float* const values = typed<float>(kv.values);
  const Rotation tables{typed<float>(rotary.cosine), typed<float>(rotary.sine),
                        typed<float>(rotary.factor)};
  const std::int64_t half = d / 2;
  const auto row_of = [&](std::int32_t, const Block& b, std::int32_t item) {
    const std::int64_t lane = item / b.tokens;
    const std::int64_t token = item % b.tokens;
    const std::int64_t t = b.position + token;
    const Rotation at{tables.cosine + t * half, tables.sine + t * half,
                      tables.factor + (t - b.centre + rotary.positions) * half};
    const std::int64_t slot =
        b.suffix_at + (lane * heads * b.suffix_capacity + b.suffix + token) * d;
    rows_.rotate(at, rows + (std::int64_t{b.row} + item) * 3 * heads * d,
                 static_cast<std::size_t>(heads), static_cast<std::size_t>(d), keys + slot,
                 values + slot, static_cast<std::size_t>(b.suffix_capacity * d));
  };
  split(team_, batch.rows, cycles_of_copy(3 * heads * d),
        [&](std::int64_t first, std::int64_t end, int) {
          for_each_item(
              batch, first, end, [](const Block& b) { return b.rows(); }, row_of);
        });
}

void CpuBackend::time_attention(const Batch& batch, const ConstView& qkv, const KvLayer& kv,
                                const View& out, std::int32_t heads, bool last_only) const {
  const OperationSpan span(Operation::time_attention);
  const std::int32_t head_dim =
      expected::time_attention(*this, batch, qkv, kv, out, heads, last_only);
  const AttentionShape shape{typed<float>(qkv),
                             typed<float>(out),
                             typed<float>(kv.keys),
                             typed<float>(kv.values),
                             batch.ids,
                             heads,
                             head_dim,
                             last_only};
  const auto queries = [&](const Block& b) {  // of one variate and head
    return b.trajectories * (last_only ? 1 : b.tokens);
  };
  const auto groups = [&](const Block& b) { return (queries(b) + kQueryGroup - 1) / kQueryGroup; };
  const auto tasks = [&](const Block& b) { return std::int64_t{groups(b)} * b.variates * heads; };
  std::int64_t count = 0;
  std::int64_t cycles = 0;
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    count += tasks(b);
    cycles += std::int64_t{queries(b)} * b.variates * heads *
              cycles_of_attention(b.prefix + b.suffix + b.tokens, head_dim);
  }
  if (count == 0) return;
  split(team_, count, cycles / count, [&](std::int64_t first, std::int64_t end, int thread) {
    auto& scratch = *reinterpret_cast<AttentionScratch*>(scratch_.of(team_.seat(thread)));
    for_each_item(batch, first, end, tasks, [&](std::int32_t, const Block& b, std::int32_t item) {
      const std::int32_t group = item % groups(b);
      const std::int32_t head = item / groups(b) % heads;
      const std::int32_t at = group * kQueryGroup;
      attention_.time(
          shape, {&b, item / groups(b) / heads, head, at, std::min(kQueryGroup, queries(b) - at)},
          scratch);
    });
  });
}

void CpuBackend::variate_attention(const Batch& batch, const ConstView& qkv, const View& out,
                                   std::int32_t heads) const {
  const OperationSpan span(Operation::variate_attention);
  const std::int32_t head_dim = expected::variate_attention(*this, batch, qkv, out, heads);
  AttentionShape shape{};
  shape.qkv = typed<float>(qkv);
  shape.out = typed<float>(out);
  shape.ids = batch.ids;
  shape.heads = heads;
  shape.d = head_dim;
  const auto tasks = [&](const Block& b) {
    return std::int64_t{b.trajectories} * b.tokens * heads;
  };
  std::int64_t count = 0;
  std::int64_t cycles = 0;
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    count += tasks(b);
    cycles += std::int64_t{b.rows()} * heads * cycles_of_attention(b.variates, head_dim);
  }
  if (count == 0) return;
  split(team_, count, cycles / count, [&](std::int64_t first, std::int64_t end, int) {
    for_each_item(batch, first, end, tasks, [&](std::int32_t, const Block& b, std::int32_t item) {
      attention_.variates(shape,
                          {&b, item / heads / b.tokens, item / heads % b.tokens, item % heads});
    });
  });
}

void CpuBackend::gather_last(const Batch& batch, const ConstView& x, const View& y) const {
  const OperationSpan span(Operation::gather_last);
  expected::gather_last(*this, batch, x, y);
  const std::int32_t dim = x.width;
  const std::int32_t columns = y.width;
  const float* const rows = typed<float>(x);
  float* const last = typed<float>(y);
  split(
      team_, batch.lanes, cycles_of_copy(columns), [&](std::int64_t first, std::int64_t end, int) {
        for_each_item(
            batch, first, end, [](const Block& b) { return b.lanes(); },
            [&](std::int32_t, const Block& b, std::int32_t lane) {
              const std::int64_t row = b.row + lane * b.tokens + b.tokens - 1;
              std::copy_n(rows + row * dim, columns, last + std::int64_t{b.lane + lane} * columns);
            });
      });
}

}  // namespace toto::cpu
