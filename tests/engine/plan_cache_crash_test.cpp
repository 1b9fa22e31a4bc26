// SPDX-License-Identifier: Apache-2.0
// The plan cache when writers are killed, and when many processes share a folder.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <random>

#include "engine/plan_cache.h"
#include "engine/plan_files.h"
#include "support/entries.h"
#include "support/test_files.h"

namespace toto {
namespace {

using test::plan_entry;
using test::plan_key;
using test::TempFolder;

constexpr int kKills = 1000;
constexpr int kWriters = 8;  // at once
constexpr std::uint32_t kKeys = 3;

PlanCacheKey key_of(std::uint32_t number) { return plan_key("model-" + std::to_string(number)); }

PlanCache open_cache(const std::string& folder) {
  return {folder, CachePolicy::prefer, [](const LogEvent& event) { FAIL() << event.message; }};
}

// An entry as plan_entry() makes it for some number: none is a mixture.
bool is_written_entry(const PlanEntry& entry) {
  const std::uint32_t number = entry.choices.empty() ? 0 : entry.choices.front().candidate;
  const auto choices = static_cast<std::uint32_t>(entry.choices.size());
  return choices > 0 && entry == plan_entry(number, choices);
}

// Writes until it is killed. One byte through `ready` says that it has begun.
[[noreturn]] void write_for_ever(const std::string& folder, int ready, std::uint32_t first) {
  PlanCache cache(folder, CachePolicy::prefer, {});
  for (std::uint32_t i = first;; ++i) {
    cache.store(key_of(i % kKeys), plan_entry(i, 40));
    if (i == first && ::write(ready, "", 1) != 1) ::_exit(1);
  }
}

pid_t start_writer(const std::string& folder, int ready, std::uint32_t first) {
  const pid_t child = ::fork();
  if (child == 0) write_for_ever(folder, ready, first);
  return child;
}

TEST(PlanCacheCrash, AThousandKillsLeaveWholeEntriesOrNone) {
  const TempFolder folder;
  std::mt19937 random(7);
  std::uniform_int_distribution<int> microseconds(0, 3000);
  std::uint32_t loaded = 0;
  for (int round = 0; round < kKills / kWriters; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    std::array<pid_t, kWriters> writers = {};
    for (std::size_t i = 0; i < kWriters; ++i) {
      writers[i] = start_writer(folder.path(), ready[1], static_cast<std::uint32_t>(100 * i));
      ASSERT_GE(writers[i], 0);
    }
    // In every other round they are killed from the start on, else once one has written.
    char byte = 0;
    if (round % 2 == 0) {
      ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    }
    for (const pid_t writer : writers) {
      ::usleep(static_cast<useconds_t>(microseconds(random)));
      ASSERT_EQ(::kill(writer, SIGKILL), 0);
    }
    for (const pid_t writer : writers) {
      int status = 0;
      ASSERT_EQ(::waitpid(writer, &status, 0), writer);
      ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
    }
    ::close(ready[0]);
    ::close(ready[1]);

    const PlanCache cache = open_cache(folder.path());
    for (std::uint32_t i = 0; i < kKeys; ++i) {
      const auto entry = cache.load(key_of(i));
      if (!entry) continue;
      ++loaded;
      ASSERT_TRUE(is_written_entry(*entry));
    }
  }
  EXPECT_GE(loaded, static_cast<std::uint32_t>(kKills / kWriters));

  std::size_t unfinished = 0;
  for (const PlanFile& file : list_plan_files(folder.path())) {
    unfinished += file.state == PlanFileState::unfinished;
    EXPECT_NE(file.state, PlanFileState::damaged) << file.name;
  }
  RecordProperty("unfinished", static_cast<int>(unfinished));
  EXPECT_EQ(clear_plan_files(folder.path()).files, unfinished + kKeys);
  EXPECT_EQ(folder.files(), 0U);
}

// What one of the processes does; gives 0 if all it read was whole.
int use_shared_folder(const std::string& folder, std::uint32_t process) {
  int complaints = 0;
  PlanCache cache(folder, CachePolicy::prefer, [&](const LogEvent&) { ++complaints; });
  for (std::uint32_t i = 0; i < 60; ++i) {
    const PlanCacheKey key = key_of((process + i) % kKeys);
    if (!cache.store(key, plan_entry(process * 100 + i, 200))) return 2;
    const auto entry = cache.load(key);  // nobody removes entries: there is one
    if (!entry || !is_written_entry(*entry)) return 3;
  }
  return complaints == 0 ? 0 : 4;
}

TEST(PlanCacheCrash, SixteenProcessesShareAFolder) {
  const TempFolder folder;
  const std::string plans = folder.path("plans");  // which all of them try to make
  std::vector<pid_t> children;
  for (std::uint32_t process = 0; process < 16; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(use_shared_folder(plans, process));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), 0);
  }
  const std::vector<PlanFile> files = list_plan_files(plans);
  EXPECT_EQ(files.size(), kKeys);
  for (const PlanFile& file : files) EXPECT_EQ(file.state, PlanFileState::valid);
}

}  // namespace
}  // namespace toto
