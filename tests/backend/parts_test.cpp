// SPDX-License-Identifier: Apache-2.0
// Ops2::for_each_part on the CPU: every slice once, whole, with rows and scratch of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "backend/cpu/cpu_backend.h"

namespace toto {
namespace {

struct Calls {
  std::vector<CallSlice> all, wanted;
  Call call_all, call_wanted;

  explicit Calls(const std::vector<std::int32_t>& tokens) {
    for (const std::int32_t n : tokens) {
      CallSlice s;
      s.row = call_all.rows;
      s.tokens = n;
      s.request = static_cast<std::int32_t>(all.size());
      all.push_back(s);
      call_all.rows += n;
      s.row = call_wanted.rows;
      s.tokens = 1;
      wanted.push_back(s);
      call_wanted.rows += 1;
    }
    call_all.slices = all.data();
    call_wanted.slices = wanted.data();
    call_all.count = call_wanted.count = call_all.lanes = call_wanted.lanes =
        static_cast<std::int32_t>(tokens.size());
  }
};

struct Seen {
  std::mutex mutex;
  std::map<std::int32_t, int> slices;            // how often
  std::map<std::int64_t, std::int64_t> scratch;  // first row: rows, the most
  int parts = 0;
};

/// The slices of a part are those of the call, but for their rows.
void look(const Calls& calls, const CallPart& part, Seen& seen) {
  const std::lock_guard lock(seen.mutex);
  ++seen.parts;
  ASSERT_EQ(part.all.count, part.wanted.count);
  std::int32_t row = 0;
  for (std::int32_t i = 0; i < part.all.count; ++i) {
    const CallSlice& s = part.all.slices[i];
    const CallSlice& w = part.wanted.slices[i];
    ++seen.slices[s.request];
    const auto at = static_cast<std::size_t>(s.request);
    EXPECT_EQ(w.request, s.request);
    EXPECT_EQ(s.row, row);
    EXPECT_EQ(part.first + s.row, calls.all[at].row);
    EXPECT_EQ(part.first_wanted + w.row, calls.wanted[at].row);
    EXPECT_EQ(s.tokens, calls.all[at].tokens);
    row += s.rows();
  }
  EXPECT_EQ(part.all.rows, row);
  EXPECT_EQ(part.wanted.rows, part.all.count);
  auto& rows = seen.scratch[part.own];
  rows = std::max<std::int64_t>(rows, part.all.rows);
}

int parts_of(int threads, const std::vector<std::int32_t>& tokens) {
  const auto backend = make_cpu_backend({threads, CpuWeights::f32, ""});
  const Calls calls(tokens);
  Seen seen;
  struct Context {
    const Calls& calls;
    Seen& seen;
  } context{calls, seen};
  backend->ops2()->for_each_part(
      calls.call_all, calls.call_wanted,
      [](const void* at, const CallPart& part) {
        const auto& c = *static_cast<const Context*>(at);
        look(c.calls, part, c.seen);
      },
      &context);
  EXPECT_EQ(seen.slices.size(), tokens.size());
  for (const auto& [slice, times] : seen.slices) EXPECT_EQ(times, 1) << slice;
  std::int64_t end = 0;  // no thread's scratch reaches into the next one's
  for (const auto& [first, rows] : seen.scratch) {
    EXPECT_GE(first, end);
    end = first + rows;
  }
  EXPECT_LE(end, calls.call_all.rows);
  return seen.parts;
}

TEST(CpuParts, EverySliceOnce) {
  EXPECT_GT(parts_of(2, std::vector<std::int32_t>(64, 18)), 2);
  EXPECT_GT(parts_of(3, std::vector<std::int32_t>(100, 7)), 2);
  EXPECT_GT(parts_of(2, std::vector<std::int32_t>(600, 1)), 1);
  std::vector<std::int32_t> mixed;
  for (int i = 0; i < 200; ++i) mixed.push_back(1 + i * 7 % 29);
  EXPECT_GT(parts_of(4, mixed), 3);
}

TEST(CpuParts, NotWhereThreadsWouldWait) {
  EXPECT_EQ(parts_of(1, std::vector<std::int32_t>(64, 18)), 1);
  EXPECT_EQ(parts_of(2, {18}), 1);               // few rows: weights are divided
  EXPECT_EQ(parts_of(2, {1000}), 1);             // a single series
  EXPECT_EQ(parts_of(2, {400, 10, 10, 10}), 1);  // one that is most of the work
}

}  // namespace
}  // namespace toto
