// SPDX-License-Identifier: Apache-2.0
// Attention over time that appends too has the bits of one operation after the other, and appends
// the same. Skipped where there is no device.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "backend/cuda/runtime/cuda_backend.h"
#include "support/differential_attention.h"
#include "support/needs_device.h"

namespace toto {
namespace {

using differential::AttentionCase;

constexpr std::int32_t kKeys = 16;  // that a lane sees at most

/// Lanes of one to sixteen keys: more than a device has processors, or few.
AttentionCase few_keys(differential::Dice& dice, bool many = true) {
  AttentionCase c;
  c.heads = 3;
  c.d = 64;
  for (std::int32_t own = 1; own <= kKeys; ++own) {
    Block b;
    b.trajectories = many ? 8 : 1 + own % 2;
    b.variates = 1 + own % 3;
    b.tokens = own;
    differential::add_block(c.made, b, c.heads, c.d, dice);
  }
  differential::finish(c.made);
  c.made.batch.keys = kKeys;
  differential::fill_rows(c, dice, 1.0F);
  differential::fill_tables(c, dice);
  return c;
}

struct Result {
  std::vector<double> out, keys, values;
};

std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

class CudaAppend : public testing::TestWithParam<CudaWeights> {
 protected:
  void SetUp() override {
    TOTO_NEEDS_DEVICE();
    backend_ = make_cuda_backend({GetParam(), 1});
  }
  /// attend(batch, rotary, qkv, cache, out)
  template <typename Attend>
  Result run(const AttentionCase& c, bool last_only, const Attend& attend) {
    const differential::Memory qkv(*backend_, c.qkv), cosine(*backend_, c.cosine),
        sine(*backend_, c.sine), factor(*backend_, c.factor);
    const differential::KvMemory kv(*backend_, c);
    const std::int32_t rows = last_only ? c.made.batch.lanes : c.made.batch.rows;
    const std::int32_t width = c.heads * c.d;
    const differential::Memory out(*backend_, static_cast<std::size_t>(rows) * width);
    const bool narrow = GetParam() == CudaWeights::bf16;
    const View to = out.of(width).as(narrow ? ElementType::bf16 : ElementType::f32, rows, width);
    const Rotary rotary{cosine.of(32), sine.of(32), factor.of(32), c.made.positions};
    const differential::On batch(*backend_, c.made.batch);
    attend(batch, rotary, qkv.of(3 * width), kv.layer(), to);
    return {out.read(), kv.keys.read(), kv.values.read()};
  }
  /// For run().
  auto append_and_attend(const AttentionCase& c, bool last_only, bool kept) {
    return [this, heads = c.heads, last_only, kept](const Batch& b, const Rotary& rotary,
                                                    const View& qkv, const KvLayer& kv,
                                                    const View& out) {
      be().append_and_attend(b, rotary, qkv, kv, out, heads, last_only, kept);
    };
  }
  Backend& be() { return *backend_; }
  void expect_same_at_once(const AttentionCase& c);

 private:
  std::unique_ptr<Backend> backend_;
};

TEST_P(CudaAppend, AtOnceHasTheBitsOfOneAfterTheOther) {
  differential::Dice dice(5);
  for (const bool many : {true, false}) expect_same_at_once(few_keys(dice, many));
}

TEST_P(CudaAppend, WherePositionsDoNotBeginAtNothing) {
  differential::Dice dice(7);
  AttentionCase c = few_keys(dice);
  for (Block& b : c.made.blocks) b.position = b.tokens % 5;
  c.made.positions += 5;
  differential::fill_tables(c, dice);
  expect_same_at_once(c);
}

void CudaAppend::expect_same_at_once(const AttentionCase& c) {
  for (const bool last_only : {false, true}) {
    const Result apart = run(c, last_only,
                             [&](const Batch& b, const Rotary& rotary, const View& qkv,
                                 const KvLayer& kv, const View& out) {
                               be().rotary_append(b, rotary, qkv, kv, c.heads);
                               be().time_attention(b, qkv, kv, out, c.heads, last_only);
                             });
    for (const bool kept : {true, false}) {
      const Result at_once = run(c, last_only, append_and_attend(c, last_only, kept));
      EXPECT_EQ(at_once.out, apart.out) << (last_only ? "last, " : "all, ") << kept;
      EXPECT_EQ(at_once.keys, kept ? apart.keys : doubles(c.keys));
      EXPECT_EQ(at_once.values, kept ? apart.values : doubles(c.values));
    }
  }
}

TEST_P(CudaAppend, WhereMoreKeysMayBeSeenOneComesAfterTheOther) {
  differential::Dice dice(6);
  AttentionCase c = few_keys(dice);
  const Result few = run(c, false, append_and_attend(c, false, true));
  for (const std::int32_t keys : {0, kKeys + 1}) {
    c.made.batch.keys = keys;
    const Result any = run(c, false, append_and_attend(c, false, false));
    EXPECT_EQ(any.out, few.out) << keys;
    EXPECT_EQ(any.keys, few.keys) << keys;
    EXPECT_EQ(any.values, few.values) << keys;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaAppend, testing::Values(CudaWeights::f32, CudaWeights::bf16),
                         [](const testing::TestParamInfo<CudaWeights>& made) {
                           return made.param == CudaWeights::bf16 ? "bfloat16" : "float32";
                         });

}  // namespace
}  // namespace toto
