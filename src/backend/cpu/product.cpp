// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/product.h"

#include <algorithm>
#include <cstring>

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
constexpr std::int64_t kFewTiles = 4;
constexpr std::int64_t kWays = 8;
constexpr int kMaxFewRows = 9;  // of a tile whose format has `more`
constexpr std::int64_t kPieceSteps = 1024;

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

/// Whether rows that are used as they are lie so far apart that they compete for a half of the
/// lines of the nearest cache, or for fewer, which has kWays of a kind at least. Then a tile has no
/// more rows than that, or where there are few tiles the rows are copied.
bool crowded(const TileFormat& format, std::int32_t in) {
  constexpr std::size_t kApart = 2048;
  return format.input_bytes == 0 && format.rows > kWays &&
         static_cast<std::size_t>(in) * sizeof(float) % kApart == 0;
}

/// Row stride of prepared or copied input in bytes: not a multiple of the cache's way size, so that
/// the rows of a tile do not compete for the same lines.
std::size_t prepared_stride(const TileFormat& format, std::int32_t in) {
  const std::size_t size = format.input_bytes == 0 ? sizeof(float) : format.input_bytes;
  return (static_cast<std::size_t>(in) * size + 63) / 64 * 64 + 64;
}

struct Part {
  Range rows;
  Range units;
};

class Worker {
 public:
  Worker(const Product& p, const Part& part, std::byte* scratch, int across, int index)
      : p_(p),
        part_(part),
        m_(*p.weights),
        format_(*p.weights->format),
        prepared_(scratch),
        across_(across),
        index_(index) {}

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
    // Equal tiles: one of a row or two takes as long as its weights take to come.
    const bool copy = crowded(format_, m_.in) && count > 1 && count <= kFewTiles * format_.rows;
    std::int64_t tile_rows = crowded(format_, m_.in) && !copy ? kWays : format_.rows;
    if (format_.any_rows) tile_rows = divide_up(count, divide_up(count, tile_rows));
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
    } else if (copy) {
      const std::size_t bytes = stride;
      stride = prepared_stride(format_, m_.in);
      for (std::int64_t r = 0; r < count; ++r) {
        std::memcpy(prepared_ + static_cast<std::size_t>(r) * stride, x + r * m_.in, bytes);
      }
      a = prepared_;
    }
    // Several tiles together fetch a line for each of the vectors of a step.
    const std::int64_t tiles = divide_up(count, tile_rows);
    lines_ = static_cast<std::size_t>(divide_up(kTileVectors, tiles));
    last_block_ = first + count == part_.rows.end;
    const bool few = tiles > 1 && tiles <= kFewTiles && format_.more[0][1] != nullptr;
    pieces_ = few ? divide_up(static_cast<std::int64_t>(m_.steps), kPieceSteps) : 1;
    for (std::int64_t unit = part_.units.begin; unit < part_.units.end; ++unit) {
      if (pieces_ > 1 || (few && m_.gated)) {
        in_pieces(a, stride, {first, first + count}, tile_rows, unit);
        continue;
      }
      // With several tiles what is next is fetched while this unit is worked on. A single tile
      // streams through its unit and fetches what it will need itself in a moment.
      ahead_ = ahead_end_ = nullptr;
      if (tiles > 1) fetch_after(unit);
      for (std::int64_t row = 0; row < count; row += tile_rows) {
        const auto rows = static_cast<int>(std::min(tile_rows, count - row));
        tile(a + static_cast<std::size_t>(row) * stride, stride, rows, unit, first + row);
      }
    }
  }

  /// What is read after a unit: the next one; after the last one the first again, or the first that
  /// this thread will have of the product after this.
  void fetch_after(std::int64_t unit) {
    const PackedMatrix* of = &m_;
    std::int64_t next = unit + 1;
    if (next == part_.units.end) {
      next = part_.units.begin;
      if (last_block_ && m_.following != nullptr) {
        of = m_.following;
        next = share(of->units, across_, index_).begin;
      }
    }
    ahead_ = of->unit(next);
    ahead_end_ = of->unit(next + 1);
  }

  /// The rows times a unit, a part of k at a time for all tiles: what few tiles read, and what they
  /// fetch meanwhile, is to fit the second-level cache.
  void in_pieces(const std::byte* a, std::size_t stride, Range rows, std::int64_t tile_rows,
                 std::int64_t unit) {
    alignas(64) float tiles[2][kFewTiles][kMaxFewRows * kMaxTileColumns];
    const int vectors = m_.vectors_of(unit);
    const std::size_t step_bytes = m_.bytes_of(unit) / m_.steps;
    const std::size_t input_step = static_cast<std::size_t>(format_.step) *
                                   (format_.input_bytes == 0 ? sizeof(float) : format_.input_bytes);
    const auto each_tile = [&](const auto& visit) {
      int i = 0;
      for (std::int64_t row = rows.begin; row < rows.end; row += tile_rows) {
        visit(i++, row, static_cast<int>(std::min(tile_rows, rows.end - row)));
      }
    };
    for (int half = 0; half < m_.panels_per_unit(); ++half) {
      const std::byte* b = m_.unit(unit) + static_cast<std::size_t>(half) * m_.bytes_of(unit);
      for (std::int64_t piece = 0; piece < pieces_; ++piece) {
        const Range steps = share(static_cast<std::int64_t>(m_.steps), pieces_, piece);
        const auto from = static_cast<std::size_t>(steps.begin);
        const auto end = static_cast<std::size_t>(steps.end);
        if (piece + 1 == pieces_ && half + 1 == m_.panels_per_unit()) {
          fetch_after(unit);
        } else {
          ahead_ = b + end * step_bytes;
          ahead_end_ = ahead_ + (end - from) * step_bytes;
        }
        const auto& tile = (piece == 0 ? format_.tile : format_.more)[vectors - 1];
        each_tile([&](int i, std::int64_t row, int count) {
          tile[count](a + static_cast<std::size_t>(row - rows.begin) * stride + from * input_step,
                      stride, b + from * step_bytes, end - from,
                      fetch(b + from * step_bytes, vectors, end - from), tiles[half][i]);
        });
      }
    }
    each_tile([&](int i, std::int64_t row, int count) {
      finish(tiles[0][i], tiles[1][i], output(unit, row, count));
    });
  }

  [[nodiscard]] const float* bias_of(std::int64_t unit) const {
    return m_.bias + unit * m_.panels_per_unit() * p_.kernels->columns;
  }

  /// Where the result of a tile goes.
  [[nodiscard]] TileOutput output(std::int64_t unit, std::int64_t row, int rows) const {
    const int columns = p_.kernels->columns;
    TileOutput out{};
    out.y = p_.y + row * p_.out + unit * columns;
    out.stride = static_cast<std::size_t>(p_.out);
    out.rows = rows;
    out.columns = static_cast<int>(std::min<std::int64_t>(columns, p_.out - unit * columns));
    out.bias = bias_of(unit);
    return out;
  }

  void tile(const std::byte* a, std::size_t stride, int rows, std::int64_t unit, std::int64_t row) {
    const std::byte* b = m_.unit(unit);
    const TileOutput out = output(unit, row, rows);
    for (int r = 0; r < rows; ++r) {  // by the time the tile is done, its place is in the cache
      const float* y = out.y + static_cast<std::size_t>(r) * out.stride;
      for (int c = 0; c < out.columns; c += 16) __builtin_prefetch(y + c, 1);
    }
    const int vectors = m_.vectors_of(unit);
    const auto& placed = p_.epilogue == Epilogue::residual ? format_.add : format_.store;
    if (!m_.gated && !p_.silu && out.columns * kTileVectors == p_.kernels->columns * vectors &&
        placed[vectors - 1][rows] != nullptr) {
      placed[vectors - 1][rows](a, stride, b, m_.steps, fetch(b, vectors, m_.steps),
                                {out.y, out.stride, out.bias});
      return;
    }
    alignas(64) float tiles[2][kMaxTileRows * kMaxTileColumns];
    for (int half = 0; half < m_.panels_per_unit(); ++half) {
      const std::byte* panel = b + static_cast<std::size_t>(half) * m_.bytes_of(unit);
      format_.tile[vectors - 1][rows](a, stride, panel, m_.steps, fetch(panel, vectors, m_.steps),
                                      tiles[half]);
    }
    finish(tiles[0], tiles[1], out);
  }

  /// `value` only of a gated product.
  void finish(const float* sums, const float* value, TileOutput out) const {
    if (m_.gated) {
      out.gate = sums;
      out.gate_bias = out.bias;
      out.bias += p_.kernels->columns;
      p_.kernels->gated(value, out);
    } else if (p_.epilogue == Epilogue::residual) {
      p_.kernels->add(sums, out);
    } else if (p_.silu) {
      p_.kernels->silu(sums, out);
    } else {
      p_.kernels->store(sums, out);
    }
  }

  /// What a tile over so many steps of the panel at `b` fetches.
  Ahead fetch(const std::byte* b, int vectors, std::size_t steps) {
    const auto across = static_cast<std::size_t>(vectors);
    if (ahead_ < ahead_end_) {
      const Ahead next{ahead_, std::min(lines_, format_.scaled ? 1 : across) * kLine};
      ahead_ += steps * next.pace;
      return next;
    }
    const auto lanes = static_cast<std::size_t>(p_.kernels->columns / kTileVectors);
    return {b + kDistance, across * (format_.scaled ? lanes : kLine)};
  }

  const Product& p_;
  const Part part_;
  const PackedMatrix& m_;
  const TileFormat& format_;
  std::byte* prepared_;
  const int across_;  // threads among which units are divided, and which of them this is
  const int index_;
  bool last_block_ = false;           // of the part's rows
  std::int64_t pieces_ = 1;           // of k
  std::size_t lines_ = 1;             // that a tile fetches for each step
  const std::byte* ahead_ = nullptr;  // what is fetched next, of the next unit
  const std::byte* ahead_end_ = nullptr;
};

}  // namespace

std::size_t prepared_bytes(const TileFormat& format, std::int32_t in) {
  if (format.input_bytes != 0) return kMaxBlockRows * prepared_stride(format, in);
  const auto few = static_cast<std::size_t>(kFewTiles * format.rows);
  return crowded(format, in) ? few * prepared_stride(format, in) : 0;
}

void multiply(const Product& product, ThreadTeam& team, const ScratchSet& scratch) {
  const std::int64_t columns = product.kernels->columns;
  const std::int64_t first = product.first / columns;
  const std::int64_t units = divide_up(product.out, columns) - first;
  const TileFormat& format = *product.weights->format;
  const std::int64_t rows = format.rows;
  const std::int64_t tiles = divide_up(product.rows, rows);
  // A fork-join costs about as much as 10,000 multiply-adds.
  const std::int64_t work = product.rows * units * columns * product.weights->in;
  const Grid grid = choose_grid(tiles, kManyRows / rows, units, work < 40000 ? 1 : team.size(),
                                format.input_bytes != 0);
  team.run(grid.rows * grid.units, [&](int thread) noexcept {
    const Range of_tiles = share(tiles, grid.rows, thread / grid.units);
    Part part;
    part.rows = {of_tiles.begin * rows, std::min<std::int64_t>(of_tiles.end * rows, product.rows)};
    part.units = share(units, grid.units, thread % grid.units);
    part.units = {part.units.begin + first, part.units.end + first};
    Worker(product, part, scratch.of(team.seat(thread)), grid.units, thread % grid.units).run();
  });
}

}  // namespace toto::cpu
