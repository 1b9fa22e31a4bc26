// SPDX-License-Identifier: Apache-2.0
// Files that belong together: all or none at a failure, never old beside new after a kill.
#include "core/file_set.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>

#include "support/test_files.h"

namespace toto {
namespace {

using test::error_of;
using test::read_file;
using test::TempFolder;

constexpr const char* kNames[] = {"a", "b", "c"};

TEST(FileSet, NothingAppearsWhereOneFileCannotBeFlushed) {
  for (const auto finish : {&FileSet::commit, &FileSet::replace}) {
    const TempFolder folder;
    folder.write("a", "old");
    FileSet set;
    set.add(folder.path("a")).write("new");
    set.add("/dev/full").write("new");
    EXPECT_EQ(error_of([&] { (set.*finish)(); }).code(), "write_failed");
    EXPECT_EQ(read_file(folder.path("a")), "old");
  }
}

[[noreturn]] void replace_for_ever(const TempFolder& folder) {
  for (int version = 0;; ++version) {
    FileSet set;
    for (const char* name : kNames) set.add(folder.path(name)).write(std::to_string(version));
    set.replace();
  }
}

TEST(FileSet, AKillLeavesNoOldFileBesideANewOne) {
  const TempFolder folder;
  std::minstd_rand random(1);
  int whole = 0;
  for (int kill = 0; kill < 150; ++kill) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) replace_for_ever(folder);
    // The last ones have time for a whole set on a busy machine, too.
    ::usleep(500 + random() % (kill < 130 ? 5000 : 100000));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    std::set<std::string> versions;
    std::size_t there = 0;
    for (const char* name : kNames) {
      if (!std::filesystem::exists(folder.path(name))) continue;
      ++there;
      versions.insert(read_file(folder.path(name)));
    }
    EXPECT_LE(versions.size(), 1U);
    whole += there == 3 ? 1 : 0;
  }
  EXPECT_GT(whole, 0);
}

}  // namespace
}  // namespace toto
