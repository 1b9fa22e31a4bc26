// SPDX-License-Identifier: Apache-2.0
// Ops2::for_each_part on the CPU: each thread takes parts of a call, small enough that what one
// operation leaves is in the thread's cache for the next.
#include <algorithm>
#include <atomic>
#include <span>

#include "backend/cpu/ops2.h"

namespace toto::cpu {
namespace {

constexpr std::int64_t kPartRows = 80;      // about so many: weights are read once for each part
constexpr std::int32_t kPartSlices = 128;   // at most
constexpr std::int64_t kLargestRows = 256;  // of a part
constexpr std::int64_t kRowsOfThread = 64;  // with fewer, weights are divided rather than rows
constexpr int kThreads = 256;               // with more, too
constexpr double kUneven = 1.15;            // the busiest thread's rows over the mean, at most

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Slices belong to the part among whose rows they begin: `parts` equal shares of all rows.
struct Cut {
  const Call& all;
  std::int64_t parts = 1;

  [[nodiscard]] std::int64_t end_of(std::int64_t part) const {
    return all.rows * (part + 1) / parts;
  }
  /// The first slice from `slice` on that is not of `part`, or before.
  [[nodiscard]] std::int32_t past(std::int64_t part, std::int32_t slice) const {
    while (slice < all.count && all.slices[slice].row < end_of(part)) ++slice;
    return slice;
  }
};

/// Whether no part is too large for its thread's room, and threads that take one after the other
/// are done at about the same time.
bool suits(const Cut& cut, int threads) {
  const std::int64_t room = std::min(kLargestRows, std::int64_t{cut.all.rows} / threads);
  std::int64_t load[kThreads] = {};
  std::int32_t slice = 0;
  for (std::int64_t part = 0; part < cut.parts; ++part) {
    const std::int32_t first = slice;
    std::int64_t rows = 0;
    for (slice = cut.past(part, slice);
         const CallSlice& s : std::span(cut.all.slices + first, cut.all.slices + slice)) {
      rows += s.rows();
    }
    if (rows > room || slice - first > kPartSlices) return false;
    *std::min_element(load, load + threads) += rows;
  }
  return static_cast<double>(*std::max_element(load, load + threads)) * threads <=
         kUneven * cut.all.rows;
}

/// How many parts; 1 where the call is better not divided.
std::int64_t count_parts(const Call& all, int threads) {
  if (threads < 2 || threads > kThreads || all.rows < kRowsOfThread * threads) return 1;
  // All threads are busy to the end if the number of parts is a multiple of theirs.
  const std::int64_t parts = divide_up(divide_up(all.rows, kPartRows), threads) * threads;
  return suits({all, parts}, threads) ? parts : 1;
}

/// The slices [first, last) as a call of their own, in `memory`.
Call renumbered(const Call& call, std::int32_t first, std::int32_t last, CallSlice* memory) {
  Call part = call;
  part.slices = memory;
  part.count = last - first;
  part.rows = part.lanes = 0;
  std::copy(call.slices + first, call.slices + last, memory);
  for (std::int32_t i = 0; i < part.count; ++i) {
    CallSlice& s = memory[i];
    s.row = part.rows;
    part.rows += s.rows();
    part.lanes += s.variates;
  }
  return part;
}

}  // namespace

void CpuOps2::for_each_part(const Call& all, const Call& wanted, PartWork work,
                            const void* context) const {
  const Cut cut{all, count_parts(all, team_.size())};
  if (cut.parts == 1) return work(context, {all, wanted});
  const std::int64_t room = all.rows / team_.size();
  std::atomic<std::int64_t> next{0};
  team_.run(team_.size(), [&](int thread) noexcept {
    const ThreadTeam::Alone alone(team_, thread);
    CallSlice slices[2][kPartSlices];
    std::int32_t first = 0;
    for (std::int64_t part = next++; part < cut.parts; part = next++) {
      first = cut.past(part - 1, first);
      const std::int32_t last = cut.past(part, first);
      if (first == last) continue;
      work(context,
           {renumbered(all, first, last, slices[0]), renumbered(wanted, first, last, slices[1]),
            all.slices[first].row, wanted.slices[first].row, thread * room});
    }
  });
}

}  // namespace toto::cpu
