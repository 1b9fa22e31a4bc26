// SPDX-License-Identifier: Apache-2.0
// The tiles of AMX: one instruction multiplies 16 rows of 32 bfloat16 by 32 x 16 weights and adds
// to 16 x 16 float32. Panels are those of AVX-512 BF16, [K/2][48][2], padded with zeros to whole
// tiles of K. An output depends on its own row only: the processor adds its products in the order
// of k, whatever the other rows hold.
#if defined(__x86_64__)
#include <immintrin.h>

#include "backend/cpu/ceiling_kernels.h"
#include "backend/cpu/product_kernels.h"

// Only these functions may use the instructions: the rest of the program runs everywhere.
#define TOTO_AMX __attribute__((target("amx-tile,amx-bf16,avx512f")))

namespace toto::cpu {
namespace {

constexpr std::size_t kRows = 16;   // of a tile register
constexpr std::size_t kPairs = 16;  // pairs of neighbouring k in a tile register
constexpr std::size_t kLine = 64;   // bytes in its row
constexpr std::size_t kPanelRow = kMaxTileColumns * 2 * sizeof(std::uint16_t);
constexpr std::size_t kOutputRow = kMaxTileColumns * sizeof(float);

/// The operand of ldtilecfg: all registers have 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t first_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileShapes kShapes;

TOTO_AMX void enter() { _tile_loadconfig(&kShapes); }

// A thread without tile registers in use is cheaper to switch.
TOTO_AMX void leave() { _tile_release(); }

TOTO_AMX inline void fetch_ahead(const std::byte* from, std::size_t pace) {
#pragma GCC unroll 16
  for (std::size_t step = 0; step < kPairs; ++step) {
    __builtin_prefetch(from + step * pace, 0, 2);
    if (pace == kLine) continue;
    __builtin_prefetch(from + step * pace + kLine, 0, 2);
    __builtin_prefetch(from + step * pace + 2 * kLine, 0, 2);
  }
}

/// Up to 16 rows, or with `two` up to 32. Reads all of them: those beyond are memory of the
/// prepared input, and their results are left where nobody looks. Registers 0-2 are the sums of the
/// first 16 rows, 3-5 those of the others, 6 the input, 7 the weights.
template <bool two>
TOTO_AMX void tile(const void* a, std::size_t a_stride, const void* b, std::size_t steps,
                   const Ahead& fetch, float* out) {
  const auto* x = static_cast<const std::byte*>(a);
  const auto* lower = x + (two ? kRows * a_stride : 0);
  const auto* panel = static_cast<const std::byte*>(b);
  const std::byte* ahead = fetch.from;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  if constexpr (two) {
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
  }
  for (std::size_t k = 0; k < steps; k += kPairs) {
    // Of 32 rows seven loads for six products: an input serves the end of one column and the begin
    // of the next.
    _tile_loadd(7, panel, kPanelRow);
    _tile_loadd(6, x, a_stride);
    _tile_dpbf16ps(0, 6, 7);
    if constexpr (two) {
      _tile_loadd(6, lower, a_stride);
      _tile_dpbf16ps(3, 6, 7);
    }
    _tile_loadd(7, panel + kLine, kPanelRow);
    if constexpr (two) {
      _tile_dpbf16ps(4, 6, 7);
      _tile_loadd(6, x, a_stride);
    }
    _tile_dpbf16ps(1, 6, 7);
    _tile_loadd(7, panel + 2 * kLine, kPanelRow);
    _tile_dpbf16ps(2, 6, 7);
    if constexpr (two) {
      _tile_loadd(6, lower, a_stride);
      _tile_dpbf16ps(5, 6, 7);
    }
    fetch_ahead(ahead, fetch.pace);
    x += kLine;
    lower += kLine;
    panel += kPairs * kPanelRow;
    ahead += kPairs * fetch.pace;
  }
  _tile_stored(0, out, kOutputRow);
  _tile_stored(1, out + kRows, kOutputRow);
  _tile_stored(2, out + 2 * kRows, kOutputRow);
  if constexpr (two) {
    float* const second = out + kRows * kMaxTileColumns;
    _tile_stored(3, second, kOutputRow);
    _tile_stored(4, second + kRows, kOutputRow);
    _tile_stored(5, second + 2 * kRows, kOutputRow);
  }
}

constexpr TileFormat amx_format() {
  TileFormat f{};
  f.rows = 2 * static_cast<int>(kRows);
  for (int rows = 1; rows <= f.rows; ++rows) {
    f.tile[kTileVectors - 1][rows] = rows <= static_cast<int>(kRows) ? tile<false> : tile<true>;
  }
  f.weight_bytes = sizeof(std::uint16_t);
  f.input_bytes = sizeof(std::uint16_t);
  f.step = 2;
  f.steps_at_once = static_cast<int>(kPairs);
  f.block_rows = 128;
  f.prepare = prepare_pairs;
  f.enter = enter;
  f.any_rows = false;  // but 16 or 32 at a time
  f.leave = leave;
  return f;
}

constexpr double kProducts = 6;  // of a step of multiply_add, each 16 x 16 x 32

TOTO_AMX float multiply_add(std::size_t steps) {
  enter();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::size_t step = 0; step < steps; ++step) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  alignas(64) float sums[kRows * kRows];
  _tile_stored(0, sums, kLine);
  leave();
  return sums[0];
}

}  // namespace

const PeakLoop kAmxPeak = {multiply_add, kProducts * 2 * 16 * 16 * 32};
const TileFormat kAmxFormat = amx_format();

}  // namespace toto::cpu

#endif
