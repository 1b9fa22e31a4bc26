// SPDX-License-Identifier: Apache-2.0
// Operations of Toto 2.0 on a device that do several products at once: they have the bits of one
// product after the other, whatever the number of rows. Skipped where there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "backend/ops2.h"
#include "support/differential_ops.h"
#include "support/needs_device.h"

namespace toto {
namespace {

constexpr std::int32_t kIn = 200, kInner = 800, kOut = 288, kMost = 70;

class CudaSums : public testing::Test {
 protected:
  void SetUp() override {
    TOTO_NEEDS_DEVICE();
    backend_ = make_cuda_backend({CudaWeights::bf16, 1});
    first_ = matrix(kInner, kIn, Epilogue::store);
    second_ = matrix(kOut, kInner, Epilogue::store);
    skip_ = matrix(kOut, kIn, Epilogue::residual);
    x_ = rows_of(kIn);
  }

  Backend& be() { return *backend_; }
  const Ops2& ops() { return *backend_->ops2(); }
  const Matrix& first() const { return first_; }
  const Matrix& second() const { return second_; }
  const Matrix& skip() const { return skip_; }
  const std::vector<float>& x() const { return x_; }
  Matrix matrix(std::int32_t out, std::int32_t in, Epilogue use) {
    const auto w = dice_.values(static_cast<std::size_t>(out) * static_cast<std::size_t>(in), 0.2F);
    const auto bias = dice_.values(static_cast<std::size_t>(out), 1.0F);
    return be().upload_matrix(differential::copy_of(w), out, in, bias, use);
  }
  std::vector<float> rows_of(std::int32_t width) {
    return dice_.values(std::size_t{kMost} * static_cast<std::size_t>(width), 3.0F);
  }

 private:
  differential::Dice dice_{17};
  std::unique_ptr<Backend> backend_;
  Matrix first_, second_, skip_;
  std::vector<float> x_;
};

/// Room for so many rows of any type, filled with what is not a result.
differential::Memory room(Backend& be, std::int32_t rows, std::int32_t width) {
  return {be, std::vector<float>(
                  static_cast<std::size_t>(rows) * static_cast<std::size_t>(width + 8), 0.5F)};
}

std::vector<double> first_rows(const differential::Memory& y, std::int32_t rows) {
  std::vector<double> all = y.read();
  all.resize(static_cast<std::size_t>(rows) * kOut);
  return all;
}

TEST_F(CudaSums, ASumHasTheBitsOfTwoProducts) {
  const ElementType type = be().operand_type(first());
  for (const std::int32_t rows : {1, 3, 8, 9, 18, 32}) {
    const auto inputs = room(be(), rows, kIn), inner = room(be(), rows, kInner);
    const differential::Memory from(be(), x());
    const View x = inputs.of(kIn + 8).as(type, rows, kIn);
    const View z = inner.of(kInner + 8).as(type, rows, kInner);
    ops().rms_norm(from.of(kIn).shaped(rows, kIn), x, 1e-6);
    ops().linear_silu(first(), x, z);
    const auto apart = room(be(), rows, kOut), together = room(be(), rows, kOut);
    const View y = apart.of(kOut + 8).shaped(rows, kOut);
    be().linear(second(), z, y, Epilogue::store);
    be().linear(skip(), x, y, Epilogue::residual);
    ASSERT_TRUE(
        ops().linear_sum(second(), z, skip(), x, together.of(kOut + 8).shaped(rows, kOut), {}));
    EXPECT_EQ(first_rows(together, rows), first_rows(apart, rows)) << rows << " rows";
  }
}

// In large batches the second product is added in the cache, which has no subnormal numbers.
TEST_F(CudaSums, ASubnormalSumIsZeroAsThatOfTwoProducts) {
  const ElementType type = be().operand_type(first());
  const auto tiny = [&](std::int32_t in, float bias, Epilogue use) {
    const std::vector<float> w(std::size_t{kOut} * static_cast<std::size_t>(in));
    return be().upload_matrix(differential::copy_of(w), kOut, in, std::vector<float>(kOut, bias),
                              use);
  };
  const Matrix one = tiny(kInner, 3e-39F, Epilogue::store);
  const Matrix other = tiny(kIn, -1e-39F, Epilogue::residual);
  const auto inputs = room(be(), kMost, kIn), inner = room(be(), kMost, kInner);
  const auto both = [&](std::int32_t rows, bool together) {
    const auto sums = room(be(), rows, kOut);
    const View x = inputs.of(kIn + 8).as(type, rows, kIn);
    const View z = inner.of(kInner + 8).as(type, rows, kInner);
    const View y = sums.of(kOut + 8).shaped(rows, kOut);
    if (together) {
      EXPECT_TRUE(ops().linear_sum(one, z, other, x, y, {}));
    } else {
      be().linear(one, z, y, Epilogue::store);
      be().linear(other, x, y, Epilogue::residual);
    }
    return first_rows(sums, rows);
  };
  for (const std::int32_t rows : {1, 32}) EXPECT_EQ(both(rows, true), both(rows, false)) << rows;
  const auto zeros = both(kMost, false);
  EXPECT_TRUE(std::all_of(zeros.begin(), zeros.end(), [](double v) { return v == 0; }));
}

TEST_F(CudaSums, ANormedMlpDoesNotDependOnTheNumberOfRows) {
  // The second has so many weights that they are streamed.
  for (const auto& size : {std::pair{kIn, kInner}, {1536, 6144}}) {
    const std::int32_t in = size.first;
    const std::int32_t inner_width = size.second;
    const Matrix into = matrix(inner_width, in, Epilogue::store);
    const Matrix out_of = matrix(kOut, inner_width, Epilogue::store);
    const Matrix past = matrix(kOut, in, Epilogue::residual);
    const std::vector<float> values = rows_of(in);
    const auto mlp = [&](std::int32_t rows) {
      const differential::Memory from(be(), values);
      const auto inner = room(be(), rows, inner_width), scratch = room(be(), rows, in);
      const auto y = room(be(), rows, kOut);
      EXPECT_TRUE(ops().norm_residual_mlp(
          from.of(in).shaped(rows, in), 1e-6, {scratch.of(in + 8).shaped(rows, in)}, into, out_of,
          past, inner.of(inner_width + 8).as(be().operand_type(out_of), rows, inner_width),
          y.of(kOut + 8).shaped(rows, kOut)));
      return first_rows(y, rows);
    };
    const auto all = mlp(kMost);
    for (const std::int32_t rows : {1, 3, 8, 9, 32, 33}) {
      const auto some = mlp(rows);
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()))
          << rows << " rows of " << in << " inputs";
    }
  }
}

// Behind a norm: weights that a thread block holds (held_rows_sm90a.cu), and those of wide layers,
// which are streamed (streamed_rows_sm90a.cu). Where rows are many, not all slices fit.
TEST_F(CudaSums, ANormedProductDoesNotDependOnTheNumberOfRows) {
  for (const auto& size : {std::pair{896, 256},
                           {904, 256},  // gates in a part of sixteen bytes
                           {3072, 1024},
                           {5472, 1024},
                           {4608, 1536},
                           {8200, 1000},
                           {10928, 2048}}) {
    const std::int32_t out = size.first;
    const std::int32_t in = size.second;
    for (const Epilogue use : {Epilogue::store, Epilogue::gated}) {
      const auto cells = [](std::int32_t rows, std::int32_t columns) {
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
      };
      const std::vector<float> rows_of_x = rows_of(in);
      const Matrix m = matrix(out, in, use);
      // Gated results lie in rows of whole sixteen bytes.
      const std::int32_t width = use == Epilogue::gated ? (out / 2 + 7) / 8 * 8 : out;
      const auto product = [&](std::int32_t rows) {
        const differential::Memory from(be(), rows_of_x);
        const auto scratch = room(be(), rows, in), y = room(be(), rows, width);
        const View results =
            y.of(width + 8).as(use == Epilogue::gated ? be().operand_type(m) : be().element_type(),
                               rows, use == Epilogue::gated ? out / 2 : out);
        EXPECT_TRUE(ops().norm_linear(from.of(in).shaped(rows, in), 1e-6,
                                      {scratch.of(in + 8).shaped(rows, in)}, m, results, use));
        std::vector<double> all = y.read();
        // Gated results are bfloat16, two to an element: compared as what they are.
        all.resize(cells(rows, width) / (use == Epilogue::gated ? 2 : 1));
        return all;
      };
      const auto all = product(kMost);
      for (const std::int32_t rows : {1, 8, 9, 16, 19, 32}) {
        const auto some = product(rows);
        EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()))
            << out << "x" << in << ", " << rows << " rows, epilogue " << static_cast<int>(use);
      }
    }
  }
}

}  // namespace
}  // namespace toto
