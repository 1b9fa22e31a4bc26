// SPDX-License-Identifier: Apache-2.0
// The thread team: every index once, whatever the number of threads and of callers.
#include "core/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "core/cpu_info.h"

namespace toto {
namespace {

TEST(ThreadTeam, SharesAreContiguousAndEven) {
  for (const std::int64_t count : {0, 1, 2, 7, 16, 1000}) {
    for (const std::int64_t parts : {1, 2, 3, 8}) {
      std::int64_t next = 0;
      for (std::int64_t i = 0; i < parts; ++i) {
        const Range r = share(count, parts, i);
        EXPECT_EQ(r.begin, next);
        EXPECT_GE(r.size(), count / parts);
        EXPECT_LE(r.size(), count / parts + 1);
        next = r.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(ThreadTeam, SizeIsWhatWasAskedFor) {
  EXPECT_EQ(ThreadTeam(1).size(), 1);
  EXPECT_EQ(ThreadTeam(3).size(), 3);
  EXPECT_EQ(ThreadTeam(0).size(), available_cores());
}

TEST(ThreadTeam, RunsEachThreadOnceAndJoins) {
  // More threads than cores as well: they must finish, if not fast.
  for (const int size : {1, 2, 3, 2 * available_cores() + 1}) {
    ThreadTeam team(size);
    std::vector<int> calls(static_cast<std::size_t>(size), 0);
    std::vector<std::thread::id> ids(calls.size());
    constexpr int kRuns = 300;
    for (int run = 0; run < kRuns; ++run) {
      team.run(size, [&](int thread) noexcept {
        ++calls[static_cast<std::size_t>(thread)];
        ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id();
      });
      // Plain memory: visible here only because the run has joined.
      for (const int c : calls) ASSERT_EQ(c, run + 1);
    }
    EXPECT_EQ(ids[0], std::this_thread::get_id());
    EXPECT_EQ(team.counters().runs, std::uint64_t{kRuns});
  }
}

TEST(ThreadTeam, EachShareHasAThreadOfItsOwnWhereNoneIsLate) {
  ThreadTeam team(3);
  std::vector<std::thread::id> ids(3);
  std::atomic<int> begun{0};
  team.run(3, [&](int thread) noexcept {
    ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id();
    ++begun;
    while (begun < 3) std::this_thread::yield();  // so that nobody ends before all have begun
  });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[2], ids[0]);
  EXPECT_NE(ids[1], ids[2]);
  EXPECT_EQ(team.counters().takeovers, 0U);
}

/// Programs that keep every core busy make workers late by milliseconds. Here they are late because
/// they are asleep when the work comes.
TEST(ThreadTeam, TheCallerDoesWhatALateWorkerHasNotBegun) {
  ThreadTeam team(2, /*spin=*/false);
  std::uint64_t seen = 0;
  // A worker that has to wake up is later than an empty share, if not each time.
  for (int tries = 0; team.counters().takeovers == 0 && tries < 100'000; ++tries) {
    std::vector<int> calls(2, 0);
    std::vector<std::thread::id> ids(2);
    team.run(2, [&](int thread) noexcept {
      ++calls[static_cast<std::size_t>(thread)];
      ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id();
    });
    ASSERT_EQ(calls, (std::vector<int>{1, 1}));
    const std::uint64_t now = team.counters().takeovers;
    EXPECT_EQ(ids[1] == ids[0], now > seen);
    seen = now;
  }
  EXPECT_GT(seen, 0U);
}

TEST(ThreadTeam, RunsStayWholeHoweverLateWorkersAre) {
  ThreadTeam team(4, /*spin=*/false);
  std::vector<std::uint64_t> calls(4, 0);  // unprotected: a share done twice at once is a race
  constexpr std::uint64_t kRuns = 21'000;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    const int threads = static_cast<int>(2 + run % 3);
    team.run(threads, [&](int t) noexcept { ++calls[static_cast<std::size_t>(t)]; });
  }
  EXPECT_EQ(calls[0], kRuns);
  EXPECT_EQ(calls[1], kRuns);
  EXPECT_EQ(calls[2], kRuns / 3 * 2);
  EXPECT_EQ(calls[3], kRuns / 3);
}

TEST(ThreadTeam, UsesOnlyTheThreadsAskedFor) {
  ThreadTeam team(3);
  for (const int threads : {1, 2, 3, 1, 2}) {
    std::vector<int> calls(3, 0);
    team.run(threads, [&](int t) noexcept { ++calls[static_cast<std::size_t>(t)]; });
    for (int t = 0; t < 3; ++t) {
      EXPECT_EQ(calls[static_cast<std::size_t>(t)], t < threads ? 1 : 0) << t << " of " << threads;
    }
  }
}

TEST(ThreadTeam, IdleWorkersParkAndComeBack) {
  ThreadTeam team(2);
  int sum = 0;
  for (std::uint64_t i = 0; i < 3; ++i) {
    // However slow the machine, an idle worker parks some time.
    while (team.counters().parks <= i) std::this_thread::yield();
    std::vector<int> parts(2, 0);
    team.run(2, [&](int t) noexcept { parts[static_cast<std::size_t>(t)] = t + 1; });
    sum += parts[0] + parts[1];
  }
  EXPECT_EQ(sum, 9);
}

TEST(ThreadTeam, CallersTakeTurns) {
  ThreadTeam team(2);
  std::vector<std::int64_t> sums(2, 0);  // unprotected: two runs at once would be a race
  constexpr int kCallers = 4;
  constexpr int kRuns = 200;
  {
    std::vector<std::jthread> callers;
    for (int c = 0; c < kCallers; ++c) {
      callers.emplace_back([&] {
        for (int run = 0; run < kRuns; ++run) {
          team.run(1 + run % 2, [&](int t) noexcept { ++sums[static_cast<std::size_t>(t)]; });
        }
      });
    }
  }
  EXPECT_EQ(sums[0], kCallers * kRuns);
  EXPECT_EQ(sums[1], kCallers * kRuns / 2);
}

TEST(ThreadTeam, CanBeMadeAndUnmadeWithoutRunning) {
  for (int i = 0; i < 50; ++i) ThreadTeam team(3);
}

TEST(CpuInfo, FeaturesInclude) {
  const CpuFeatures& f = cpu_features();
  EXPECT_TRUE(f.sse4 || !f.avx2);
  EXPECT_TRUE(f.avx2 || !f.avx512);
  EXPECT_TRUE(f.avx512 || !f.avx512_bf16);
  EXPECT_TRUE(f.avx512_bf16 || !f.amx_bf16);
  EXPECT_GE(available_cores(), 1);
}

}  // namespace
}  // namespace toto
