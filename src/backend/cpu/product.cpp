// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/product.h"

#include <algorithm>

namespace toto::cpu {
namespace {

/// How the team is laid over the result: `rows` times `units` threads.
struct Grid {
  int rows = 1;
  int units = 1;
};

constexpr std::size_t kLine = 64;
// How far ahead a single tile fetches its own weights. The processor's prefetcher stops at every
// page of 4 KiB, and with few rows there is not enough arithmetic to hide that.
constexpr std::size_t kDistance = std::size_t{16} << 10;
constexpr std::int64_t kManyRows = 64;  // for each thread

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The grid with the least work for its busiest thread. Between equals, units are divided rather
/// than rows: then each weight is read by one thread only. With `prepared` input and rows enough it
/// (`many` tiles for each thread) it is the other way round, since each thread prepares the rows it
/// reads. Bits do not depend on it.
Grid choose_grid(std::int64_t tiles, std::int64_t many, std::int64_t units, int threads,
                 bool prepared) {
  const bool prefer_rows = prepared && tiles >= many * threads;
  Grid best;
  std::int64_t least = tiles * units;
  for (int i = 1; i <= threads; ++i) {
    const int rows = prefer_rows ? threads / i : i;
    const int across = threads / rows;
    const std::int64_t work = divide_up(tiles, rows) * divide_up(units, across);
    if (work < least) {
      least = work;
      best = {rows, across};
    }
  }
  return best;
}

/// Row stride of prepared input in bytes: not a multiple of the cache's way size, so that the rows
/// of a tile do not compete for the same lines.
std::size_t prepared_stride(const TileFormat& format, std::int32_t in) {
  const std::size_t bytes = static_cast<std::size_t>(in) * format.input_bytes;
  return (bytes + 63) / 64 * 64 + 64;
}

struct Part {
  Range rows;
  Range units;
};

class Worker {
 public:
  Worker(const Product& p, const Part& part, std::byte* scratch)
      : p_(p), part_(part), m_(*p.weights), format_(*p.weights->format), prepared_(scratch) {}

  void run() {
    if (format_.enter != nullptr) format_.enter();
    const std::int64_t step = block_rows(part_.rows.size());
    for (std::int64_t row = part_.rows.begin; row < part_.rows.end; row += step) {
      block(row, std::min(step, part_.rows.end - row));
    }
    if (format_.leave != nullptr) format_.leave();
  }

 private:
  /// Equal blocks, of whole tiles: a last one of a few rows would read all weights for them. A
  /// single block may be half as large again.
  [[nodiscard]] std::int64_t block_rows(std::int64_t rows) const {
    const std::int64_t most = m_.block_rows;
    if (rows <= std::min<std::int64_t>(most + most / 2, kMaxBlockRows))
      return std::max<std::int64_t>(rows, 1);
    const std::int64_t each = divide_up(rows, divide_up(rows, most));
    return std::min(divide_up(each, format_.rows) * format_.rows, most);
  }

  void block(std::int64_t first, std::int64_t count) {
    const float* x = p_.x + first * m_.in;
    const std::byte* a = reinterpret_cast<const std::byte*>(x);
    std::size_t stride = static_cast<std::size_t>(m_.in) * sizeof(float);
    if (format_.input_bytes != 0) {
      stride = prepared_stride(format_, m_.in);
      for (std::int64_t r = 0; r < count; ++r) {
        format_.prepare(x + r * m_.in, static_cast<std::size_t>(m_.in),
                        prepared_ + static_cast<std::size_t>(r) * stride);
      }
      a = prepared_;
    }
    // Equal tiles: one of a row or two takes as long as its weights take to come.
    std::int64_t tile_rows = format_.rows;
    if (format_.any_rows) tile_rows = divide_up(count, divide_up(count, format_.rows));
    for (std::int64_t unit = part_.units.begin; unit < part_.units.end; ++unit) {
      // With several tiles the next unit is fetched while this one is worked on. A single tile
      // streams through its unit and fetches what it will need itself in a moment.
      const std::int64_t next = unit + 1 < part_.units.end ? unit + 1 : part_.units.begin;
      ahead_ = panel(next);
      ahead_end_ = count > format_.rows ? panel(next + 1) : ahead_;
      for (std::int64_t row = 0; row < count; row += tile_rows) {
        const auto rows = static_cast<int>(std::min(tile_rows, count - row));
        tile(a + static_cast<std::size_t>(row) * stride, stride, rows, unit, first + row);
      }
    }
  }

  void tile(const std::byte* a, std::size_t stride, int rows, std::int64_t unit, std::int64_t row) {
    alignas(64) float tiles[2][kMaxTileRows * kMaxTileColumns];
    const std::byte* b = panel(unit);
    const int columns = p_.kernels->columns;
    const float* bias = m_.bias + unit * m_.panels_per_unit() * columns;
    TileOutput out{};
    out.y = p_.y + row * p_.out + unit * columns;
    out.stride = static_cast<std::size_t>(p_.out);
    out.rows = rows;
    out.columns = static_cast<int>(std::min<std::int64_t>(columns, p_.out - unit * columns));
    out.bias = bias;
    for (int r = 0; r < rows; ++r) {  // by the time the tile is done, its place is in the cache
      const float* y = out.y + static_cast<std::size_t>(r) * out.stride;
      for (int c = 0; c < out.columns; c += 16) __builtin_prefetch(y + c, 1);
    }
    const int vectors = m_.vectors_of(unit);
    compute(a, stride, rows, b, vectors, tiles[0]);
    if (m_.gated) {
      compute(a, stride, rows, b + m_.bytes_of(unit), vectors, tiles[1]);
      out.gate = tiles[0];
      out.gate_bias = bias;
      out.bias = bias + columns;
      p_.kernels->gated(tiles[1], out);
    } else if (p_.epilogue == Epilogue::residual) {
      p_.kernels->add(tiles[0], out);
    } else if (p_.silu) {
      p_.kernels->silu(tiles[0], out);
    } else {
      p_.kernels->store(tiles[0], out);
    }
  }

  void compute(const std::byte* a, std::size_t stride, int rows, const std::byte* b, int vectors,
               float* tile) {
    const auto lanes = static_cast<std::size_t>(p_.kernels->columns / kTileVectors);
    const auto across = static_cast<std::size_t>(vectors);
    Ahead fetch{b + kDistance, across * (format_.scaled ? lanes : kLine)};
    if (ahead_ < ahead_end_) fetch = {ahead_, kLine};
    format_.tile[vectors - 1][rows](a, stride, b, m_.steps, fetch, tile);
    ahead_ += m_.steps * kLine;
  }

  [[nodiscard]] const std::byte* panel(std::int64_t unit) const {
    return m_.panels + static_cast<std::size_t>(unit * m_.panels_per_unit()) * m_.panel_bytes;
  }

  const Product& p_;
  const Part part_;
  const PackedMatrix& m_;
  const TileFormat& format_;
  std::byte* prepared_;
  const std::byte* ahead_ = nullptr;  // what is fetched next, of the next unit
  const std::byte* ahead_end_ = nullptr;
};

}  // namespace

std::size_t prepared_bytes(const TileFormat& format, std::int32_t in) {
  return format.input_bytes == 0 ? 0 : kMaxBlockRows * prepared_stride(format, in);
}

void multiply(const Product& product, ThreadTeam& team, const ScratchSet& scratch) {
  const std::int64_t columns = product.kernels->columns;
  const std::int64_t units = divide_up(product.out, columns);
  const TileFormat& format = *product.weights->format;
  const std::int64_t rows = format.rows;
  const std::int64_t tiles = divide_up(product.rows, rows);
  // A fork-join costs about as much as 10,000 multiply-adds.
  const std::int64_t work = std::int64_t{product.rows} * product.out * product.weights->in;
  const Grid grid = choose_grid(tiles, kManyRows / rows, units, work < 40000 ? 1 : team.size(),
                                format.input_bytes != 0);
  team.run(grid.rows * grid.units, [&](int thread) noexcept {
    const Range of_tiles = share(tiles, grid.rows, thread / grid.units);
    Part part;
    part.rows = {of_tiles.begin * rows, std::min<std::int64_t>(of_tiles.end * rows, product.rows)};
    part.units = share(units, grid.units, thread % grid.units);
    Worker(product, part, scratch.of(team.seat(thread))).run();
  });
}

}  // namespace toto::cpu
