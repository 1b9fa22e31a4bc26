// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace toto::cpu {
namespace {

void write(float x, float* to) { *to = x; }
void write(float x, std::uint16_t* to) { *to = to_bf16(x); }

/// Rows [first, first + count) of the matrix become the columns of one panel, which is all zeros.
template <typename Weight>
void pack_panel(const float* weights, std::int32_t in, std::int32_t first, std::int32_t count,
                int columns, int step, Weight* panel) {
  // A cache line of each row at a time: both sides stay in the nearest cache.
  constexpr std::int32_t kBlock = 16;
  for (std::int32_t k0 = 0; k0 < in; k0 += kBlock) {
    const std::int32_t k1 = std::min(k0 + kBlock, in);
    for (std::int32_t c = 0; c < count; ++c) {
      const float* row = weights + std::int64_t{first + c} * in;
      for (std::int32_t k = k0; k < k1; ++k) {
        const std::int64_t at = std::int64_t{k / step} * columns * step + c * step + k % step;
        write(row[k], panel + at);
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

PackedMatrix pack_matrix(const float* weights, std::int32_t out, std::int32_t in,
                         std::span<const float> bias, bool gated, const TileFormat& format,
                         int columns, Arena& arena, ThreadTeam& team) {
  const std::int32_t width = gated ? out / 2 : out;
  PackedMatrix m;
  m.format = &format;
  m.gated = gated;
  m.in = in;
  m.units = (width + columns - 1) / columns;
  m.steps = static_cast<std::size_t>((in + format.step - 1) / format.step);
  const auto panel_columns = static_cast<std::size_t>(columns);
  const auto panels =
      static_cast<std::size_t>(m.units) * static_cast<std::size_t>(m.panels_per_unit());
  m.panel_bytes =
      m.steps * panel_columns * static_cast<std::size_t>(format.step) * format.weight_bytes;
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
      if (format.weight_bytes == sizeof(float)) {
        pack_panel(weights, in, first, count, columns, format.step,
                   reinterpret_cast<float*>(panel));
      } else {
        pack_panel(weights, in, first, count, columns, format.step,
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
