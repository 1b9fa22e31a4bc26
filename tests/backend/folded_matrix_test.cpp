// SPDX-License-Identifier: Apache-2.0
// Weights that a backend folds as it packs them are those folded before, bit for bit.
#include "backend/folded_matrix.h"

#include <gtest/gtest.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/packed_matrix.h"
#include "support/differential_ops.h"

namespace toto {
namespace {

// More than one part of a row (64), of an odd length; more than one panel of any width.
constexpr std::int32_t kIn = 131;
constexpr std::int32_t kOut = 154;

struct Folding {
  std::string name;
  bool order, columns, after, rows, bias;
};

void PrintTo(const Folding& folding, std::ostream* to) { *to << folding.name; }

const Folding kFoldings[] = {
    {"plain", false, false, false, false, false}, {"columns", false, true, false, false, true},
    {"order", true, false, false, false, true},   {"after", false, false, true, false, true},
    {"rows", false, true, false, true, false},    {"all", true, true, true, true, true},
};

/// A matrix and the memory that it points to.
struct Made {
  std::vector<float> stored, columns;
  FoldedMatrix matrix;
};

std::unique_ptr<Made> make(const Folding& folding) {
  auto made = std::make_unique<Made>();
  differential::Dice dice(7);
  const auto values = [&](std::int32_t count) {
    return dice.values(static_cast<std::size_t>(count), 1.5F);
  };
  FoldedMatrix& m = made->matrix;
  made->stored = values(kOut * kIn);
  m.stored = made->stored;
  m.out = kOut;
  m.in = kIn;
  m.before = 1 / 3.0;
  if (folding.order) {
    m.order.resize(kOut);
    std::iota(m.order.begin(), m.order.end(), 0);
    std::rotate(m.order.begin(), m.order.begin() + 59, m.order.end());
  }
  if (folding.columns) m.columns = made->columns = values(kIn);
  if (folding.after) m.after = 1.7;
  if (folding.rows) {
    for (const float v : values(kOut)) m.rows.push_back(m.rows.size() < 60 ? v : 1.0);
  }
  if (folding.bias) {
    for (const float v : values(kOut)) m.bias.push_back(v / 7.0);
  }
  return made;
}

/// What the comments of FoldedMatrix say, one weight at a time.
double folded(const FoldedMatrix& m, std::size_t row, std::size_t k) {
  const std::size_t from = m.order.empty() ? row : static_cast<std::size_t>(m.order[row]);
  double w = m.stored[from * kIn + k];
  w *= m.before;
  if (!m.columns.empty()) w *= m.columns[k];
  w *= m.after;
  if (!m.rows.empty()) w *= m.rows[row];
  return w;
}

class Folded : public testing::TestWithParam<Folding> {};

TEST_P(Folded, PartsOfRowsAreProductsInOrder) {
  const auto made = make(GetParam());
  for (const std::int32_t first : {0, 64, 128}) {
    std::vector<double> wide(static_cast<std::size_t>(std::min(64, kIn - first)));
    std::vector<float> narrow(wide.size());
    for (std::int32_t row = 0; row < kOut; ++row) {
      made->matrix.fold(row, first, std::span(wide));
      made->matrix.fold(row, first, std::span(narrow));
      for (std::size_t k = 0; k < wide.size(); ++k) {
        const double expected = folded(made->matrix, static_cast<std::size_t>(row),
                                       static_cast<std::size_t>(first) + k);
        ASSERT_EQ(wide[k], expected) << row << ", " << k;
        ASSERT_EQ(narrow[k], static_cast<float>(expected)) << row << ", " << k;
      }
    }
  }
}

/// Products with the matrix, and with the same weights folded before they were uploaded.
void expect_same_products(Backend& be, const Folding& folding, Epilogue use, bool exact) {
  const auto made = make(folding);
  const FoldedMatrix& m = made->matrix;
  auto weights = std::make_unique<float[]>(std::size_t{kOut} * kIn);
  for (std::size_t i = 0; i < std::size_t{kOut} * kIn; ++i) {
    weights[i] = static_cast<float>(folded(m, i / kIn, i % kIn));
  }
  const std::vector<float> bias(m.bias.begin(), m.bias.end());
  const auto upload = exact ? &Backend::upload_exact_matrix : &Backend::upload_matrix;
  const Matrix before = (be.*upload)(std::move(weights), kOut, kIn, bias, use);
  const Matrix during = be.upload_folded_matrix(m, use, exact);
  ASSERT_EQ(during.out, kOut);
  ASSERT_EQ(during.in, kIn);
  const std::int32_t columns = use == Epilogue::gated ? kOut / 2 : kOut;
  differential::Dice dice(11);
  const std::vector<float> x = dice.values(std::size_t{3} * kIn, 2.0F);
  const auto product = [&](const Matrix& matrix) {
    const differential::Memory inputs(be, x);
    const differential::Memory y(be, std::vector<float>(static_cast<std::size_t>(3 * columns)));
    be.linear(matrix, inputs.of(kIn), y.of(columns), use);
    return y.read();
  };
  EXPECT_EQ(product(during), product(before));
}

TEST_P(Folded, ProductsHaveTheBitsOfWeightsFoldedBefore) {
  for (const CpuWeights weights : {CpuWeights::f32, CpuWeights::bf16, CpuWeights::int8}) {
    for (const cpu::Isa isa : cpu::available_isas()) {
      const auto be = make_cpu_backend({2, weights, std::string(cpu::isa_name(isa))});
      for (const Epilogue use : {Epilogue::store, Epilogue::gated}) {
        for (const bool exact : {false, true}) {
          SCOPED_TRACE(std::string(cpu::isa_name(isa)) + (exact ? ", exact" : ""));
          expect_same_products(*be, GetParam(), use, exact);
        }
      }
    }
  }
  expect_same_products(*make_reference_backend_f32(), GetParam(), Epilogue::store, false);
}

// The reference for float64 keeps what float32 has no digits for.
TEST_P(Folded, TheReferenceKeepsFloat64) {
  const auto be = make_reference_backend_f64();
  const auto made = make(GetParam());
  const Matrix m = be->upload_folded_matrix(made->matrix, Epilogue::store, false);
  for (const std::size_t k : {std::size_t{0}, std::size_t{130}}) {
    std::vector<float> one(kIn);
    one[k] = 1;
    const differential::Memory x(*be, one);
    const differential::Memory y(*be, std::vector<float>(kOut));
    be->linear(m, x.of(kIn), y.of(kOut), Epilogue::store);
    const std::vector<double> found = y.read();
    for (std::size_t row = 0; row < kOut; ++row) {
      const double bias = made->matrix.bias.empty() ? 0.0 : made->matrix.bias[row];
      ASSERT_EQ(found[row], folded(made->matrix, row, k) + bias) << row;
    }
  }
}

/// Weight (c, k) of a panel of `columns`, as it was packed: its bits, at the front of a word.
std::uint32_t packed_weight(const std::byte* panel, const cpu::TileFormat& format,
                            std::int64_t columns, std::int64_t c, std::int64_t k) {
  const std::int64_t at = k / format.step * columns * format.step + c * format.step;
  std::uint32_t bits = 0;
  std::memcpy(&bits, panel + static_cast<std::size_t>(at + k % format.step) * format.weight_bytes,
              format.weight_bytes);
  return bits;
}

/// Every weight of the panels, and zeros where there is none; `expected` of row and column.
template <typename Expected>
void expect_panels(const cpu::PackedMatrix& m, std::int32_t out, int columns,
                   const Expected& expected) {
  const std::int32_t width = m.gated ? out / 2 : out;
  const std::int64_t padded = static_cast<std::int64_t>(m.steps) * m.format->step;
  for (std::int32_t unit = 0; unit < m.units; ++unit) {
    const int across = m.vectors_of(unit) * columns / cpu::kTileVectors;
    for (std::int32_t half = 0; half < m.panels_per_unit(); ++half) {
      const std::byte* panel = m.unit(unit) + static_cast<std::size_t>(half) * m.bytes_of(unit);
      for (std::int32_t c = 0; c < across; ++c) {
        for (std::int32_t k = 0; k < padded; ++k) {
          const bool weight = unit * columns + c < width && k < m.in;
          ASSERT_EQ(packed_weight(panel, *m.format, across, c, k),
                    weight ? expected(half * width + unit * columns + c, k) : 0U)
              << unit << ", " << half << ", " << c << ", " << k;
        }
      }
    }
  }
}

// Panels that weights fill are not made zero before. The memory is not zero, as that of a system is
// by chance.
TEST(FoldedPanels, HoldEachWeightAndZeros) {
#ifdef __GLIBC__
  mallopt(M_PERTURB, 0x5A);
#endif
  for (const cpu::Isa isa : cpu::available_isas()) {
    const cpu::ProductKernels& kernels = cpu::product_kernels(isa);
    for (const cpu::TileFormat* format : {&kernels.f32, &kernels.bf16}) {
      for (const std::int32_t in : {131, 128, 192}) {
        for (const std::int32_t out : {154, 2 * kernels.columns}) {
          SCOPED_TRACE(std::string(cpu::isa_name(isa)) + ", " + std::to_string(in) + " to " +
                       std::to_string(out));
          differential::Dice dice(3);
          const auto stored = dice.values(static_cast<std::size_t>(in * out), 1.0F);
          FoldedMatrix matrix;
          matrix.stored = stored;
          matrix.out = out;
          matrix.in = in;
          matrix.before = 1 / 3.0;
          const auto bits = [&](std::int32_t row, std::int32_t k) {
            const auto w =
                static_cast<float>(stored[static_cast<std::size_t>(row * in + k)] * matrix.before);
            return format == &kernels.f32 ? std::bit_cast<std::uint32_t>(w)
                                          : std::uint32_t{cpu::to_bf16(w)};
          };
          for (const bool gated : {false, true}) {
            cpu::Arena arena;
            ThreadTeam team(2);
            expect_panels(cpu::pack_matrix(matrix, gated, *format, kernels.columns, arena, team),
                          out, kernels.columns, bits);
          }
        }
      }
    }
  }
#ifdef __GLIBC__
  mallopt(M_PERTURB, 0);
#endif
}

INSTANTIATE_TEST_SUITE_P(All, Folded, testing::ValuesIn(kFoldings),
                         [](const auto& folding) { return folding.param.name; });

}  // namespace
}  // namespace toto
