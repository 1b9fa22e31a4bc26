// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace toto::cpu {
namespace {

void write(float x, float /*scale*/, float* to) { *to = x; }
void write(float x, float /*scale*/, std::uint16_t* to) { *to = to_bf16(x); }
void write(float x, float scale, std::int8_t* to) { *to = to_int8(x, scale); }

/// Weights in float32, row-major.
struct StoredRows {
  const float* weights;
  std::int32_t in;
  /// Weights [first, first + count) of a row.
  const float* part(std::int32_t row, std::int32_t first, std::int32_t /*count*/,
                    float* /*scratch*/) const {
    return weights + std::int64_t{row} * in + first;
  }
};

/// Weights that are folded when they are asked for.
struct FoldedRows {
  const FoldedMatrix& matrix;
  const float* part(std::int32_t row, std::int32_t first, std::int32_t count,
                    float* scratch) const {
    matrix.fold(row, first, std::span(scratch, static_cast<std::size_t>(count)));
    return scratch;
  }
};

// Four cache lines of each row at a time: both sides stay in the nearest cache.
constexpr std::int32_t kPart = 64;

template <typename Rows>
float scale_of_row(const Rows& rows, std::int32_t row, std::int32_t in) {
  Int8Scale scale;
  float scratch[kPart];
  for (std::int32_t k = 0; k < in; k += kPart) {
    const std::int32_t count = std::min(kPart, in - k);
    scale.see({rows.part(row, k, count, scratch), static_cast<std::size_t>(count)});
  }
  return scale.scale();
}

/// Rows [first, first + count) of the matrix become the columns of one panel, which is all zeros
/// where no weight goes. `scales` of these rows, for int8. kStep: TileFormat::step.
template <int kStep, typename Weight, typename Rows>
void pack_panel(const Rows& rows, std::int32_t in, std::int32_t first, std::int32_t count,
                int columns, const float* scales, Weight* panel) {
  static_assert(kPart % kStep == 0);
  float scratch[kPart];
  for (std::int32_t k0 = 0; k0 < in; k0 += kPart) {
    const std::int32_t length = std::min(kPart, in - k0);
    for (std::int32_t c = 0; c < count; ++c) {
      const float* part = rows.part(first + c, k0, length, scratch);
      const float scale = scales == nullptr ? 1.0F : scales[c];
      Weight* to = panel + std::int64_t{k0} * columns + std::ptrdiff_t{c} * kStep;
      for (std::int32_t i = 0; i < length; ++i) {
        write(part[i], scale, to + std::int64_t{i / kStep} * columns * kStep + i % kStep);
      }
    }
  }
}

template <typename Weight, typename Rows>
void pack_panel(const Rows& rows, std::int32_t in, std::int32_t first, std::int32_t count,
                int columns, int step, const float* scales, Weight* panel) {
  if (step == 1) return pack_panel<1>(rows, in, first, count, columns, scales, panel);
  return pack_panel<2>(rows, in, first, count, columns, scales, panel);
}

}  // namespace

std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

void Int8Scale::see(std::span<const float> weights) {
  for (const float w : weights) {
    if (!std::isfinite(w)) largest_ = std::numeric_limits<double>::quiet_NaN();
    if (std::abs(static_cast<double>(w)) > largest_) largest_ = std::abs(static_cast<double>(w));
  }
}

float Int8Scale::scale() const { return static_cast<float>(largest_ / 127); }

std::int8_t to_int8(float w, float scale) {
  if (!(scale > 0)) return 0;
  // The clamp is for scales among the subnormal numbers, which are rounded coarsely.
  const double whole = std::nearbyint(static_cast<double>(w) / scale);
  return static_cast<std::int8_t>(std::clamp(whole, -127.0, 127.0));
}

namespace {

std::size_t bytes_of_panel(const TileFormat& format, std::size_t steps, int columns) {
  const auto across = static_cast<std::size_t>(columns);
  if (format.scaled) return (scales_at(steps, across) + across * sizeof(float) + 63) / 64 * 64;
  return steps * across * static_cast<std::size_t>(format.step) * format.weight_bytes;
}

template <typename Rows>
PackedMatrix pack(const Rows& rows, std::int32_t out, std::int32_t in, std::span<const float> bias,
                  bool gated, const TileFormat& format, int columns, Arena& arena,
                  ThreadTeam& team) {
  const std::int32_t width = gated ? out / 2 : out;
  PackedMatrix m;
  m.format = &format;
  m.gated = gated;
  m.in = in;
  m.units = (width + columns - 1) / columns;
  m.block_rows = format.block_rows;
  const std::int64_t padded = std::int64_t{format.step} * format.steps_at_once;
  m.steps = static_cast<std::size_t>((in + padded - 1) / padded * format.steps_at_once);
  const auto panel_columns = static_cast<std::size_t>(columns);
  const auto panels =
      static_cast<std::size_t>(m.units) * static_cast<std::size_t>(m.panels_per_unit());
  const int lanes = columns / kTileVectors;
  const int last = (width - (m.units - 1) * columns + lanes - 1) / lanes;  // vectors
  if (format.tile[last - 1][1] != nullptr) m.last_vectors = last;
  m.panel_bytes = bytes_of_panel(format, m.steps, columns);
  m.last_bytes = bytes_of_panel(format, m.steps, m.last_vectors * lanes);
  const std::size_t spared =
      static_cast<std::size_t>(m.panels_per_unit()) * (m.panel_bytes - m.last_bytes);
  std::byte* memory = arena.take(panels * m.panel_bytes - spared);
  auto* packed_bias = reinterpret_cast<float*>(arena.take(panels * panel_columns * sizeof(float)));
  std::fill_n(packed_bias, panels * panel_columns, 0.0F);
  m.panels = memory;
  m.bias = packed_bias;

  team.run(team.size(), [&](int thread) noexcept {
    const Range mine = share(static_cast<std::int64_t>(panels), team.size(), thread);
    for (std::int64_t p = mine.begin; p < mine.end; ++p) {
      const auto unit = static_cast<std::int32_t>(p / m.panels_per_unit());
      const auto half = static_cast<std::int32_t>(p % m.panels_per_unit());
      const std::int32_t count = std::min(columns, width - unit * columns);
      const std::int32_t first = half * width + unit * columns;
      const int across = m.vectors_of(unit) * lanes;
      std::byte* panel = memory +
                         static_cast<std::size_t>(unit * m.panels_per_unit()) * m.panel_bytes +
                         static_cast<std::size_t>(half) * m.bytes_of(unit);
      const bool full = count == across && m.steps * static_cast<std::size_t>(format.step) ==
                                               static_cast<std::size_t>(in);
      if (!full || format.scaled) std::memset(panel, 0, m.bytes_of(unit));
      if (format.scaled) {
        const std::size_t scales = scales_at(m.steps, static_cast<std::size_t>(across));
        auto* of_columns = reinterpret_cast<float*>(panel + scales);
        for (std::int32_t c = 0; c < count; ++c) {
          of_columns[c] = scale_of_row(rows, first + c, in);
        }
        pack_panel(rows, in, first, count, across, format.step, of_columns,
                   reinterpret_cast<std::int8_t*>(panel));
      } else if (format.weight_bytes == sizeof(float)) {
        pack_panel(rows, in, first, count, across, format.step, nullptr,
                   reinterpret_cast<float*>(panel));
      } else {
        pack_panel(rows, in, first, count, across, format.step, nullptr,
                   reinterpret_cast<std::uint16_t*>(panel));
      }
      if (!bias.empty()) {
        std::copy_n(bias.data() + first, count, packed_bias + p * columns);
      }
    }
  });
  return m;
}

}  // namespace

PackedMatrix pack_matrix(const float* weights, std::int32_t out, std::int32_t in,
                         std::span<const float> bias, bool gated, const TileFormat& format,
                         int columns, Arena& arena, ThreadTeam& team) {
  return pack(StoredRows{weights, in}, out, in, bias, gated, format, columns, arena, team);
}

PackedMatrix pack_matrix(const FoldedMatrix& matrix, bool gated, const TileFormat& format,
                         int columns, Arena& arena, ThreadTeam& team) {
  const std::vector<float> bias(matrix.bias.begin(), matrix.bias.end());
  return pack(FoldedRows{matrix}, matrix.out, matrix.in, bias, gated, format, columns, arena, team);
}

}  // namespace toto::cpu
