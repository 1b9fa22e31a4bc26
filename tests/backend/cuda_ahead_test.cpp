// SPDX-License-Identifier: Apache-2.0
// Products that leave what a norm after them takes: what comes of that has the bits of a norm that
// reads the rows. Skipped where there is no device.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "backend/ops2.h"
#include "support/differential_ops.h"
#include "support/needs_device.h"
#include "toto/error.hpp"

namespace toto {
namespace {

using Numbers = std::vector<double>;

std::size_t cells(std::int32_t rows, std::int32_t width) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
}

class CudaAhead : public testing::Test {
 protected:
  void SetUp() override {
    TOTO_NEEDS_DEVICE();
    backend_ = make_cuda_backend({CudaWeights::bf16, 1});
  }

  Backend& be() { return *backend_; }
  const Ops2& ops() { return *backend_->ops2(); }
  std::vector<float> values(std::int32_t rows, std::int32_t width, float size) {
    return dice_.values(cells(rows, width), size);
  }
  Matrix matrix(std::int32_t out, std::int32_t in, Epilogue use) {
    return be().upload_matrix(differential::copy_of(values(out, in, 0.2F)), out, in,
                              values(1, out, 1.0F), use);
  }
  /// Rows of `width` of any type, filled with what is not a result.
  differential::Memory room(std::int32_t rows, std::int32_t width) {
    return {be(), std::vector<float>(cells(rows, width + 8), 0.5F)};
  }
  /// Rows in bfloat16, as products take them, out of numbers that norms of float32 rows leave.
  View narrow(const differential::Memory& room, const std::vector<float>& rows, std::int32_t count,
              std::int32_t width) {
    const differential::Memory wide(be(), rows);
    const View to = room.of(width + 8).as(ElementType::bf16, count, width);
    ops().rms_norm(wide.of(width).shaped(count, width), to, 1e-6);
    return to;
  }
  /// Rows of `stream` to which a product of x is added, and norm(rows, room) of them.
  template <typename Norm>
  std::pair<Numbers, Numbers> add_and_norm(const Matrix& add, const View& x,
                                           const std::vector<float>& stream, bool ahead,
                                           const Norm& norm) {
    const std::int32_t rows = x.rows.count;
    const differential::Memory hidden(be(), stream);
    const auto scratch = room(rows, add.out);
    const View h = hidden.of(add.out).shaped(rows, add.out);
    const NormRoom next{scratch.of(add.out + 8).shaped(rows, add.out), ahead};
    if (ahead) {
      ops().linear_ahead(add, x, h, next.room);
    } else {
      be().linear(add, x, h, Epilogue::residual);
    }
    Numbers normed = norm(h, next);
    return {read(hidden, cells(rows, add.out)), std::move(normed)};
  }
  static Numbers read(const differential::Memory& y, std::size_t count) {
    Numbers all = y.read();
    all.resize(count);
    return all;
  }

 private:
  differential::Dice dice_{23};
  std::unique_ptr<Backend> backend_;
};

TEST_F(CudaAhead, IsOfferedForFewRowsOfWholeSixtyFours) {
  EXPECT_TRUE(ops().norms_ahead(1, 64, 64));
  EXPECT_TRUE(ops().norms_ahead(32, 1024, 5120));
  EXPECT_FALSE(ops().norms_ahead(33, 1024, 5120));
  EXPECT_FALSE(ops().norms_ahead(8, 1000, 5000));
  const auto exact = make_cuda_backend({CudaWeights::f32, 1});
  EXPECT_FALSE(exact->ops2()->norms_ahead(1, 64, 64));
}

// What is offered fits; what does not is refused, and not done without what a norm takes.
TEST_F(CudaAhead, IsNotOfferedWhereInputsAreTooMany) {
  constexpr std::int32_t kWidth = 64, kMany = 32768, kRows = 32;
  EXPECT_TRUE(ops().norms_ahead(1, kWidth, kMany));
  EXPECT_FALSE(ops().norms_ahead(kRows, kWidth, kMany));
  const Matrix add = matrix(kWidth, kMany, Epilogue::residual);
  const auto inputs = room(kRows, kMany), scratch = room(kRows, kWidth);
  const View x = narrow(inputs, values(kRows, kMany, 3.0F), kRows, kMany);
  const differential::Memory hidden(be(), values(kRows, kWidth, 3.0F));
  const View h = hidden.of(kWidth).shaped(kRows, kWidth);
  EXPECT_THROW(ops().linear_ahead(add, x, h, scratch.of(kWidth + 8).shaped(kRows, kWidth)), Error);
}

// Weights that a thread block holds, of which two may share the slices; those that are streamed;
// so many slices that they come in rounds; so many that no warp is left to sum squares; and blocks
// of 16, 32 and 48 outputs.
TEST_F(CudaAhead, ANormAfterAResidualHasTheBitsOfOneThatReadsTheRows) {
  struct Sizes {
    std::int32_t width, before, after;
  };
  for (const Sizes& sizes :
       {Sizes{64, 64, 96}, Sizes{256, 688, 896}, Sizes{1024, 2736, 3072}, Sizes{1536, 1536, 4608},
        Sizes{2048, 5472, 10928}, Sizes{64, 16384, 96}, Sizes{16384, 64, 96},
        Sizes{1024, 2736, 5472}, Sizes{1920, 64, 288}, Sizes{2560, 64, 96}, Sizes{4288, 64, 96}}) {
    const std::int32_t width = sizes.width, before = sizes.before, after = sizes.after;
    const Matrix add = matrix(width, before, Epilogue::residual);
    for (const Epilogue use : {Epilogue::store, Epilogue::gated}) {
      const Matrix next = matrix(after, width, use);
      const bool gated = use == Epilogue::gated;
      for (const std::int32_t rows : {1, 8, 9, 19, 32}) {
        const std::vector<float> stream = values(rows, width, 3.0F);
        const auto inputs = room(rows, before);
        const View x = narrow(inputs, values(rows, before, 3.0F), rows, before);
        const auto run = [&](bool ahead) {
          return add_and_norm(add, x, stream, ahead, [&](const View& h, const NormRoom& norm) {
            const auto y = room(rows, after);
            const View out = y.of(after + 8).as(gated ? ElementType::bf16 : be().element_type(),
                                                rows, gated ? after / 2 : after);
            EXPECT_TRUE(ops().norm_linear(h, 1e-6, norm, next, out, use));
            return read(y, cells(rows, after) / (gated ? 4 : 1));
          });
        };
        EXPECT_EQ(run(true), run(false)) << after << "x" << width << "x" << before << ", " << rows
                                         << " rows, epilogue " << static_cast<int>(use);
      }
    }
  }
}

TEST_F(CudaAhead, AndAfterASumOfTwoProducts) {
  constexpr std::int32_t kIn = 64;
  for (const std::int32_t width : {256, 384, 512, 1536}) {
    const std::int32_t inner = 4 * width;
    const Matrix second = matrix(width, inner, Epilogue::store);
    const Matrix skip = matrix(width, kIn, Epilogue::residual);
    const Matrix into = matrix(inner, width, Epilogue::store);
    const Matrix out_of = matrix(288, inner, Epilogue::store);
    const Matrix past = matrix(288, width, Epilogue::residual);
    for (const std::int32_t rows : {1, 9, 19, 32}) {
      const auto inputs = room(rows, kIn), between = room(rows, inner);
      const View x = narrow(inputs, values(rows, kIn, 3.0F), rows, kIn);
      const View z = narrow(between, values(rows, inner, 3.0F), rows, inner);
      const auto run = [&](bool ahead) {
        const auto hidden = room(rows, width), scratch = room(rows, width);
        const auto hold = room(rows, inner), y = room(rows, 288);
        const View h = hidden.of(width + 8).shaped(rows, width);
        const NormRoom norm{scratch.of(width + 8).shaped(rows, width), ahead};
        EXPECT_TRUE(ops().linear_sum(second, z, skip, x, h, norm));
        EXPECT_TRUE(ops().norm_residual_mlp(h, 1e-6, norm, into, out_of, past,
                                            hold.of(inner + 8).as(ElementType::bf16, rows, inner),
                                            y.of(288 + 8).shaped(rows, 288)));
        return std::pair{read(hidden, cells(rows, width)), read(y, cells(rows, 288))};
      };
      EXPECT_EQ(run(true), run(false)) << width << ", " << rows << " rows";
    }
  }
}

TEST_F(CudaAhead, AndValuesOfANorm) {
  constexpr std::int32_t kWidth = 256;
  const HeadShape shape{4, 4, 64, 64};
  const Matrix add = matrix(kWidth, kWidth, Epilogue::residual);
  const Matrix qkv = matrix(shape.row(), kWidth, Epilogue::store);
  for (const std::int32_t rows : {1, 19, 32}) {
    const std::vector<float> stream = values(rows, kWidth, 3.0F);
    const auto inputs = room(rows, kWidth);
    const View x = narrow(inputs, values(rows, kWidth, 3.0F), rows, kWidth);
    const auto run = [&](bool ahead) {
      return add_and_norm(add, x, stream, ahead, [&](const View& h, const NormRoom& norm) {
        const auto y = room(rows, kWidth);
        EXPECT_TRUE(ops().norm_values(h, 1e-6, norm, qkv, shape,
                                      y.of(kWidth + 8).as(ElementType::bf16, rows, kWidth)));
        return read(y, cells(rows, kWidth) / 2);
      });
    };
    EXPECT_EQ(run(true), run(false)) << rows << " rows";
  }
}

}  // namespace
}  // namespace toto
