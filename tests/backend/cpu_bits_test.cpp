// SPDX-License-Identifier: Apache-2.0
// The contract of bits: a row's result is the same whatever the number of rows and of threads, and
// wherever the row lies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/ops2.h"
#include "support/differential.h"
#include "support/host_views.h"

namespace toto {
namespace {

using differential::Dice;
using test::in_rows;
using Rows = std::vector<float>;

struct Case {
  cpu::Isa isa;
  CpuWeights weights;
};

void PrintTo(const Case& c, std::ostream* out) { *out << cpu::isa_name(c.isa); }

class CpuBits : public testing::TestWithParam<Case> {
 protected:
  static constexpr int kThreads[] = {1, 2, 3};

  [[nodiscard]] std::unique_ptr<Backend> make(int threads) const {
    return make_cpu_backend(
        {threads, GetParam().weights, std::string(cpu::isa_name(GetParam().isa))});
  }
};

bool same_bits(const float* a, const float* b, std::size_t n) {
  return std::memcmp(a, b, n * sizeof(float)) == 0;
}

struct Linear {
  Matrix matrix;
  Epilogue use;
  std::int32_t width;
};

Linear make_linear(Backend& be, Epilogue use, std::int32_t out, std::int32_t in) {
  Dice dice(7);
  const auto values =
      dice.values(static_cast<std::size_t>(out) * static_cast<std::size_t>(in), 1.0F);
  auto weights = std::make_unique<float[]>(values.size());
  std::copy(values.begin(), values.end(), weights.get());
  const auto bias = dice.values(static_cast<std::size_t>(out), 1.0F);
  return {be.upload_matrix(std::move(weights), out, in, bias, use), use,
          use == Epilogue::gated ? out / 2 : out};
}

/// Rows first .. first + count - 1 of x, as a call of their own; the residual starts at 0.25.
Rows run(const Backend& be, const Linear& linear, const Rows& x, std::int32_t first,
         std::int32_t count) {
  Rows y(static_cast<std::size_t>(count) * static_cast<std::size_t>(linear.width), 0.25F);
  be.linear(linear.matrix, in_rows(x, linear.matrix.in).from(first, count),
            in_rows(y, linear.width), linear.use);
  return y;
}

TEST_P(CpuBits, LinearRowsDoNotFeelEachOther) {
  // Sizes that leave a rest in every direction.
  constexpr std::int32_t kIn = 101;
  constexpr std::int32_t kOut = 2 * 83;
  constexpr std::int32_t kAll = 150;
  Dice dice(3);
  const Rows x = dice.values(std::size_t{kAll} * kIn, 3.0F);
  for (const Epilogue use : {Epilogue::store, Epilogue::residual, Epilogue::gated}) {
    Rows expected;
    for (const int threads : kThreads) {
      const auto be = make(threads);
      const Linear linear = make_linear(*be, use, kOut, kIn);
      const auto width = static_cast<std::size_t>(linear.width);
      for (int candidate = be->product_candidates() - 1; candidate >= 0; --candidate) {
        be->choose_product(linear.matrix, candidate);
        const Rows all = run(*be, linear, x, 0, kAll);
        if (expected.empty()) expected = all;
        ASSERT_TRUE(same_bits(all.data(), expected.data(), all.size()))
            << threads << " threads, candidate " << candidate;
      }
      for (std::int32_t count = 1; count <= 70; ++count) {
        const std::int32_t first = (count * 37) % (kAll - count);
        const Rows some = run(*be, linear, x, first, count);
        ASSERT_TRUE(same_bits(
            some.data(), expected.data() + static_cast<std::size_t>(first) * width, some.size()))
            << count << " rows from " << first << ", " << threads << " threads";
      }
    }
  }
}

TEST_P(CpuBits, FirstOutputsAreThoseOfTheWholeMatrix) {
  constexpr std::int32_t kIn = 64;
  constexpr std::int32_t kOut = 200;
  Dice dice(5);
  const Rows x = dice.values(std::size_t{9} * kIn, 1.0F);
  const auto be = make(2);
  Linear linear = make_linear(*be, Epilogue::store, kOut, kIn);
  const Rows all = run(*be, linear, x, 0, 9);
  for (const std::int32_t out : {1, 12, 47, 48, 49, 100, 199}) {
    linear.matrix.out = linear.width = out;
    const Rows some = run(*be, linear, x, 0, 9);
    for (std::size_t row = 0; row < 9; ++row) {
      const auto n = static_cast<std::size_t>(out);
      ASSERT_TRUE(same_bits(some.data() + row * n, all.data() + row * kOut, n)) << out;
    }
  }
}

// Sums that few rows form piece by piece, and rows that are copied since they lie 2 KiB apart.
TEST_P(CpuBits, LongSumsDoNotFeelTheNumberOfRows) {
  constexpr std::int32_t kOut = 2 * 70;
  constexpr std::int32_t kAll = 40;
  for (const std::int32_t in : {1537, 2500, 4096}) {
    Dice dice(19);
    const Rows x = dice.values(std::size_t{kAll} * static_cast<std::size_t>(in), 1.0F);
    for (const Epilogue use : {Epilogue::store, Epilogue::residual, Epilogue::gated}) {
      for (const int threads : {1, 2}) {
        const auto be = make(threads);
        const Linear linear = make_linear(*be, use, kOut, in);
        const auto width = static_cast<std::size_t>(linear.width);
        Rows expected;  // row by row
        for (std::int32_t row = 0; row < kAll; ++row) {
          const Rows one = run(*be, linear, x, row, 1);
          expected.insert(expected.end(), one.begin(), one.end());
        }
        for (const std::int32_t count : {2, 5, 9, 10, 18, 27, 36, 37, 40}) {
          const Rows some = run(*be, linear, x, kAll - count, count);
          ASSERT_TRUE(same_bits(some.data(),
                                expected.data() + static_cast<std::size_t>(kAll - count) * width,
                                some.size()))
              << count << " rows of " << in << ", " << threads << " threads";
        }
      }
    }
  }
}

// What attention reads has the bits of the whole product.
TEST_P(CpuBits, QueriesKeysAndValuesThatAreReadAreThoseOfTheWholeProduct) {
  HeadShape shape;
  shape.heads = 4;
  shape.groups = 2;
  shape.qk = 20;
  shape.v = 28;
  constexpr std::int32_t kIn = 40;
  constexpr std::int32_t kTokens[] = {9, 30, 4};
  constexpr std::int32_t kWanted[] = {2, 3, 4};
  std::vector<CallSlice> slices[2];
  Call all, wanted;
  for (std::int32_t i = 0; i < 3; ++i) {
    CallSlice s;
    s.variates = i + 1;
    s.patch = 7;
    s.tokens = kTokens[i];
    s.row = all.rows;
    slices[0].push_back(s);
    all.rows += s.rows();
    s.patch += kTokens[i] - kWanted[i];
    s.tokens = kWanted[i];
    s.row = wanted.rows;
    slices[1].push_back(s);
    wanted.rows += s.rows();
    all.lanes = wanted.lanes += s.variates;
  }
  all.slices = slices[0].data();
  wanted.slices = slices[1].data();
  all.count = wanted.count = 3;
  Dice dice(23);
  const Rows x = dice.values(static_cast<std::size_t>(all.rows) * kIn, 1.0F);
  const auto row_size = static_cast<std::size_t>(shape.row());
  const auto queries = static_cast<std::size_t>(shape.heads * shape.qk);
  const std::size_t values = queries + static_cast<std::size_t>(shape.groups * shape.qk);
  for (const int threads : kThreads) {
    const auto be = make(threads);
    ASSERT_TRUE(be->ops2()->skips_unread());
    const Linear linear = make_linear(*be, Epilogue::store, shape.row(), kIn);
    const Rows expected = run(*be, linear, x, 0, all.rows);
    constexpr float kOther = 77.0F;  // what is not asked for may be anything
    Rows some(expected.size(), kOther);
    be->ops2()->linear_values(linear.matrix, shape, in_rows(x, kIn), in_rows(some, shape.row()));
    for (std::size_t at = 0; at < some.size(); at += row_size) {
      ASSERT_TRUE(
          same_bits(some.data() + at + values, expected.data() + at + values, row_size - values));
    }
    EXPECT_EQ(some[0], kOther);  // and is not computed
    Rows scratch(static_cast<std::size_t>(wanted.rows) * (kIn + queries));
    std::fill(some.begin(), some.end(), kOther);
    be->ops2()->linear_wanted(all, wanted, linear.matrix, shape, in_rows(x, kIn),
                              in_rows(scratch, kIn + shape.heads * shape.qk),
                              in_rows(some, shape.row()));
    for (std::size_t at = 0; at < some.size(); at += row_size) {
      ASSERT_TRUE(same_bits(some.data() + at + queries, expected.data() + at + queries,
                            row_size - queries));
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const CallSlice& s = all.slices[i];
      for (std::int32_t v = 0; v < s.variates; ++v) {
        for (std::int32_t t = s.tokens - kWanted[i]; t < s.tokens; ++t) {
          const std::size_t at = static_cast<std::size_t>(s.row + v * s.tokens + t) * row_size;
          ASSERT_TRUE(same_bits(some.data() + at, expected.data() + at, queries));
        }
      }
    }
    EXPECT_EQ(some[0], kOther);
  }
}

/// Attention of a few heads for a batch whose blocks are at the same time rows, caches and outputs.
struct Attention {
  static constexpr std::int32_t kHeads = 2;
  static constexpr std::int32_t kDim = 24;
  static constexpr std::size_t kWidth = static_cast<std::size_t>(kHeads) * kDim;
  Rows qkv, keys, values;

  [[nodiscard]] Rows time(const Backend& be, const Block& block, bool last_only) {
    const Batch batch{&block, nullptr, 1, block.rows(), block.lanes()};
    Rows out(static_cast<std::size_t>(last_only ? block.lane + block.lanes()
                                                : block.row + block.rows()) *
             kWidth);
    be.time_attention(batch, in_rows(qkv, 3 * kWidth), {in_rows(keys, kDim), in_rows(values, kDim)},
                      in_rows(out, kWidth), kHeads, last_only);
    return out;
  }
};

TEST_P(CpuBits, TrajectoriesDoNotFeelEachOther) {
  Block all;
  all.trajectories = 150;
  all.variates = 2;
  all.tokens = 1;
  all.prefix = 70;
  all.suffix = 2;
  all.suffix_capacity = 5;
  Dice dice(11);
  Attention a;
  a.qkv = dice.values(static_cast<std::size_t>(all.rows()) * 3 * Attention::kWidth, 2.0F);
  const std::size_t prefix = std::size_t{2} * 70 * Attention::kWidth;
  all.suffix_at = static_cast<std::int64_t>(prefix);
  const std::size_t lane = std::size_t{5} * Attention::kWidth;
  a.keys = dice.values(prefix + static_cast<std::size_t>(all.lanes()) * lane, 2.0F);
  a.values = dice.values(a.keys.size(), 2.0F);
  Rows expected;
  for (const int threads : kThreads) {
    const auto be = make(threads);
    const Rows together = a.time(*be, all, false);
    if (expected.empty()) expected = together;
    ASSERT_TRUE(same_bits(together.data(), expected.data(), together.size()));
    for (const std::int32_t count : {1, 7, 64, 100}) {
      for (std::int32_t first = 0; first + count <= all.trajectories; first += count) {
        Block some = all;
        some.trajectories = count;
        some.row = some.lane = first * all.variates;
        some.suffix_at += static_cast<std::int64_t>(static_cast<std::size_t>(some.lane) * lane);
        const Rows part = a.time(*be, some, false);
        const std::size_t at = static_cast<std::size_t>(some.row) * Attention::kWidth;
        ASSERT_TRUE(same_bits(part.data() + at, expected.data() + at, part.size() - at))
            << count << " from " << first << ", " << threads << " threads";
      }
    }
  }
}

TEST_P(CpuBits, LastTokenAloneIsTheLastOfAll) {
  Block b;
  b.trajectories = 2;
  b.variates = 3;
  b.tokens = 66;
  b.suffix_capacity = 66;
  Dice dice(13);
  Attention a;
  a.qkv = dice.values(static_cast<std::size_t>(b.rows()) * 3 * Attention::kWidth, 2.0F);
  a.keys = dice.values(static_cast<std::size_t>(b.rows()) * Attention::kWidth, 2.0F);
  a.values = dice.values(a.keys.size(), 2.0F);
  const auto be = make(2);
  const Rows all = a.time(*be, b, false);
  const Rows last = a.time(*be, b, true);
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(b.lanes()); ++lane) {
    const std::size_t row = (lane + 1) * static_cast<std::size_t>(b.tokens) - 1;
    ASSERT_TRUE(same_bits(last.data() + lane * Attention::kWidth,
                          all.data() + row * Attention::kWidth, Attention::kWidth));
  }
}

TEST_P(CpuBits, VariatesOfAnotherGroupAreNotFelt) {
  constexpr std::int32_t kAll = 130;
  Dice dice(17);
  const Rows qkv = dice.values(std::size_t{kAll} * 3 * Attention::kWidth, 2.0F);
  Block b;
  b.variates = kAll;
  b.tokens = 1;
  std::vector<std::int32_t> ids(kAll);
  for (std::int32_t v = 0; v < kAll; ++v) ids[static_cast<std::size_t>(v)] = v % 2;
  Batch batch{&b, ids.data(), 1, kAll, kAll};
  Rows expected;
  for (const int threads : kThreads) {
    const auto be = make(threads);
    Rows out(std::size_t{kAll} * Attention::kWidth);
    be->variate_attention(batch, in_rows(qkv, 3 * Attention::kWidth),
                          in_rows(out, Attention::kWidth), Attention::kHeads);
    if (expected.empty()) expected = out;
    ASSERT_TRUE(same_bits(out.data(), expected.data(), out.size()));
  }
  // Group 0 by itself.
  Rows half;
  for (std::size_t v = 0; v < kAll; v += 2) {
    const auto at = qkv.begin() + static_cast<std::ptrdiff_t>(v * 3 * Attention::kWidth);
    half.insert(half.end(), at, at + 3 * Attention::kWidth);
  }
  b.variates = kAll / 2;
  std::fill(ids.begin(), ids.end(), 0);
  batch = {&b, ids.data(), 1, kAll / 2, kAll / 2};
  Rows out(std::size_t{kAll / 2} * Attention::kWidth);
  make(2)->variate_attention(batch, in_rows(half, 3 * Attention::kWidth),
                             in_rows(out, Attention::kWidth), Attention::kHeads);
  for (std::size_t v = 0; v < kAll / 2; ++v) {
    ASSERT_TRUE(same_bits(out.data() + v * Attention::kWidth,
                          expected.data() + 2 * v * Attention::kWidth, Attention::kWidth));
  }
}

TEST_P(CpuBits, RowOperationsDoNotFeelThreads) {
  constexpr std::int32_t kRows = 700;
  constexpr std::int32_t kDim = 4 * 27;
  Dice dice(19);
  const Rows x = dice.values(std::size_t{kRows} * kDim, 2.0F);
  const Rows gain = dice.values(kDim, 1.0F);
  Rows normed;
  Rows parameters;
  for (const int threads : kThreads) {
    const auto be = make(threads);
    Rows y(x.size());
    be->rms_norm(in_rows(x, kDim), in_rows(gain, kDim), in_rows(y, kDim));
    Rows p = x;
    be->distribution(in_rows(p, kDim), true);
    if (normed.empty()) {
      normed = y;
      parameters = p;
    }
    ASSERT_TRUE(same_bits(y.data(), normed.data(), y.size()));
    ASSERT_TRUE(same_bits(p.data(), parameters.data(), p.size()));
    for (std::size_t row = 0; row < kRows; row += 97) {
      Rows one(x.begin() + static_cast<std::ptrdiff_t>(row * kDim),
               x.begin() + static_cast<std::ptrdiff_t>((row + 1) * kDim));
      be->rms_norm(in_rows(one, kDim), in_rows(gain, kDim), in_rows(y, kDim));
      ASSERT_TRUE(same_bits(y.data(), normed.data() + row * kDim, kDim));
      be->distribution(in_rows(one, kDim), true);
      ASSERT_TRUE(same_bits(one.data(), parameters.data() + row * kDim, kDim));
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const cpu::Isa isa : cpu::available_isas()) {
    all.push_back({isa, CpuWeights::f32});
    all.push_back({isa, CpuWeights::bf16});
    all.push_back({isa, CpuWeights::int8});
  }
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(cpu::isa_name(info.param.isa)) +
         (info.param.weights == CpuWeights::bf16   ? "_weights_bf16"
          : info.param.weights == CpuWeights::int8 ? "_weights_int8"
                                                   : "_weights_f32");
}

INSTANTIATE_TEST_SUITE_P(All, CpuBits, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace toto
