// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace toto::cpu {
namespace {

void write(float x, float /*scale*/, float* to) { *to = x; }
void write(float x, float /*scale*/, std::uint16_t* to) { *to = to_bf16(x); }
void write(float x, float scale, std::int8_t* to) { *to = to_int8(x, scale); }

/// Rows [first, first + count) of the matrix become the columns of one panel, which is all zeros.
/// `scales` of these rows, for int8.
template <typename Weight>
void pack_panel(const float* weights, std::int32_t in, std::int32_t first, std::int32_t count,
                int columns, int step, const float* scales, Weight* panel) {
  // A cache line of each row at a time: both sides stay in the nearest cache.
  constexpr std::int32_t kBlock = 16;
  for (std::int32_t k0 = 0; k0 < in; k0 += kBlock) {
    const std::int32_t k1 = std::min(k0 + kBlock, in);
    for (std::int32_t c = 0; c < count; ++c) {
      const float* row = weights + std::int64_t{first + c} * in;
      const float scale = scales == nullptr ? 1.0F : scales[c];
      for (std::int32_t k = k0; k < k1; ++k) {
        const std::int64_t at = std::int64_t{k / step} * columns * step + c * step + k % step;
        write(row[k], scale, panel + at);
      }
    }
  }
}

}  // namespace

std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

float int8_scale(std::span<const float> row) {
  double largest = 0;
  for (const float w : row) {
    if (!std::isfinite(w)) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(static_cast<double>(w)));
  }
  return static_cast<float>(largest / 127);
}

std::int8_t to_int8(float w, float scale) {
  if (!(scale > 0)) return 0;
  // The clamp is for scales among the subnormal numbers, which are rounded coarsely.
  const double whole = std::nearbyint(static_cast<double>(w) / scale);
  return static_cast<std::int8_t>(std::clamp(whole, -127.0, 127.0));
}

PackedMatrix pack_matrix(const float* weights, std::int32_t out, std::int32_t in,
                         std::span<const float> bias, bool gated, const TileFormat& format,
                         int columns, Arena& arena, ThreadTeam& team) {
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
  m.panel_bytes =
      m.steps * panel_columns * static_cast<std::size_t>(format.step) * format.weight_bytes;
  const std::size_t scales = scales_at(m.steps, panel_columns);
  if (format.scaled) m.panel_bytes = (scales + panel_columns * sizeof(float) + 63) / 64 * 64;
  std::byte* memory = arena.take(panels * m.panel_bytes);
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
      std::byte* panel = memory + static_cast<std::size_t>(p) * m.panel_bytes;
      std::memset(panel, 0, m.panel_bytes);
      if (format.scaled) {
        auto* of_columns = reinterpret_cast<float*>(panel + scales);
        for (std::int32_t c = 0; c < count; ++c) {
          of_columns[c] =
              int8_scale({weights + std::int64_t{first + c} * in, static_cast<std::size_t>(in)});
        }
        pack_panel(weights, in, first, count, columns, format.step, of_columns,
                   reinterpret_cast<std::int8_t*>(panel));
      } else if (format.weight_bytes == sizeof(float)) {
        pack_panel(weights, in, first, count, columns, format.step, nullptr,
                   reinterpret_cast<float*>(panel));
      } else {
        pack_panel(weights, in, first, count, columns, format.step, nullptr,
                   reinterpret_cast<std::uint16_t*>(panel));
      }
      if (!bias.empty()) {
        std::copy_n(bias.data() + first, count, packed_bias + p * columns);
      }
    }
  });
  return m;
}

}  // namespace toto::cpu
