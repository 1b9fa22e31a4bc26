// SPDX-License-Identifier: Apache-2.0
// The plan cache on disk: policies, folders that must not be used, foreign files, list and clear.
#include "engine/plan_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>

#include "engine/plan_files.h"
#include "support/entries.h"
#include "support/log_lines.h"
#include "support/test_files.h"

namespace toto {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::plan_entry;
using test::plan_key;
using test::TempFolder;
using testing::HasSubstr;

class PlanCacheTest : public testing::Test {
 protected:
  PlanCache cache(CachePolicy policy = CachePolicy::prefer) {
    return {plans, policy, test::warnings_into(warnings)};
  }
  [[nodiscard]] std::string file(const PlanCacheKey& key = plan_key()) const {
    return plans + "/" + plan_file_name(key);
  }
  /// One warning that contains `text`.
  void expect_warning(const std::string& text) {
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_THAT(warnings.front(), HasSubstr(text));
  }

  TempFolder folder;
  std::string plans = folder.path("deep/plans");
  std::vector<std::string> warnings;
};

TEST_F(PlanCacheTest, StoresAndLoads) {
  PlanCache first = cache();
  EXPECT_EQ(first.load(plan_key()), std::nullopt);
  EXPECT_FALSE(fs::exists(folder.path("deep")));  // reading makes nothing
  EXPECT_TRUE(first.store(plan_key(), plan_entry(1)));
  EXPECT_EQ(first.load(plan_key()), plan_entry(1));
  EXPECT_EQ(cache().load(plan_key()), plan_entry(1));
  EXPECT_EQ(folder.files(), 1U);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(PlanCacheTest, TheFolderIsForThisUserOnly) {
  const mode_t mask = ::umask(0);
  EXPECT_TRUE(cache().store(plan_key(), plan_entry(1)));
  ::umask(mask);
  for (const std::string& made : {folder.path("deep"), plans}) {
    struct stat status = {};
    ASSERT_EQ(::stat(made.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0700U) << made;
  }
}

TEST_F(PlanCacheTest, EveryPartOfTheKeyCounts) {
  PlanCache all = cache();
  ASSERT_TRUE(all.store(plan_key(), plan_entry(1)));
  for (const auto part : {&PlanCacheKey::program, &PlanCacheKey::model, &PlanCacheKey::isa,
                          &PlanCacheKey::type, &PlanCacheKey::device}) {
    PlanCacheKey other = plan_key();
    other.*part += "x";
    EXPECT_EQ(all.load(other), std::nullopt);
    ASSERT_TRUE(all.store(other, plan_entry(2)));
    EXPECT_EQ(all.load(other), plan_entry(2));
  }
  EXPECT_EQ(all.load(plan_key()), plan_entry(1));
  EXPECT_EQ(folder.files(), 6U);
}

// Whole entries, but of another key: somebody renamed a file.
TEST_F(PlanCacheTest, AnEntryUnderAnotherNameIsAMiss) {
  ASSERT_TRUE(cache().store(plan_key("other"), plan_entry(1)));
  fs::rename(file(plan_key("other")), file());
  EXPECT_EQ(cache().load(plan_key()), std::nullopt);
  EXPECT_EQ(list_plan_files(plans).front().state, PlanFileState::damaged);
}

TEST_F(PlanCacheTest, StoringAddsToWhatIsKnown) {
  ASSERT_TRUE(cache().store(plan_key(), plan_entry(1, 4)));
  ASSERT_TRUE(cache().store(plan_key(), plan_entry(2, 2)));
  const auto both = cache().load(plan_key());
  ASSERT_TRUE(both);
  ASSERT_EQ(both->choices.size(), 4U);
  EXPECT_EQ(both->choices[0].candidate, 2U);
  EXPECT_EQ(both->choices[3].candidate, 1U);
}

TEST_F(PlanCacheTest, DamagedFilesAreReplaced) {
  for (const std::string& bytes : {std::string(), std::string("foreign"), std::string(99, '\0'),
                                   std::string(kMaxPlanEntryBytes + 1, 'x')}) {
    folder.write("deep/plans/" + plan_file_name(plan_key()), bytes);
    EXPECT_EQ(cache().load(plan_key()), std::nullopt);
    EXPECT_TRUE(cache().store(plan_key(), plan_entry(1)));
    EXPECT_EQ(cache().load(plan_key()), plan_entry(1));
  }
  EXPECT_TRUE(warnings.empty());
}

TEST_F(PlanCacheTest, WhatIsNoFileIsAMiss) {
  fs::create_directories(plans);
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(cache().load(plan_key()), std::nullopt);
  fs::remove(file());
  fs::create_directory(file());
  EXPECT_EQ(cache().load(plan_key()), std::nullopt);
  EXPECT_FALSE(cache().store(plan_key(), plan_entry(1)));
  expect_warning("not written");
  fs::remove(file());
  fs::create_symlink("/dev/zero", file());
  EXPECT_EQ(cache().load(plan_key()), std::nullopt);
}

TEST_F(PlanCacheTest, NeverTouchesNothing) {
  ASSERT_TRUE(cache().store(plan_key(), plan_entry(1)));
  ::chmod(plans.c_str(), 0777);  // nor does it look
  PlanCache never = cache(CachePolicy::never);
  EXPECT_FALSE(never.usable());
  EXPECT_EQ(never.load(plan_key()), std::nullopt);
  EXPECT_FALSE(never.store(plan_key(), plan_entry(2)));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(PlanCacheTest, OnlyDoesNotWriteAndAMissIsAnError) {
  PlanCache only = cache(CachePolicy::only);
  EXPECT_FALSE(only.store(plan_key(), plan_entry(1)));
  EXPECT_FALSE(fs::exists(plans));
  const Error miss = error_of([&] { (void)only.load(plan_key()); });
  EXPECT_EQ(miss.code(), "plan_cache_miss");
  EXPECT_EQ(miss.status(), ExitStatus::bad_config);
  EXPECT_EQ(miss.where(), plans);
  EXPECT_THAT(miss.message(), HasSubstr("avx512_bf16"));
  ASSERT_TRUE(cache().store(plan_key(), plan_entry(1)));
  EXPECT_EQ(only.load(plan_key()), plan_entry(1));
}

TEST_F(PlanCacheTest, OnlyReadsAFolderThatCannotChange) {
  ASSERT_TRUE(cache().store(plan_key(), plan_entry(1)));
  ::chmod(plans.c_str(), 0555);
  EXPECT_EQ(cache(CachePolicy::only).load(plan_key()), plan_entry(1));
  EXPECT_TRUE(warnings.empty());
  EXPECT_FALSE(cache().usable());
  expect_warning("read-only");
  ::chmod(plans.c_str(), 0700);
}

TEST_F(PlanCacheTest, NoFolderIsNoCache) {
  plans = "";
  EXPECT_FALSE(cache().usable());
  EXPECT_FALSE(cache().store(plan_key(), plan_entry(1)));
  EXPECT_EQ(cache().load(plan_key()), std::nullopt);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(PlanCacheTest, AWorldWritableFolderIsNotUsed) {
  ASSERT_TRUE(cache().store(plan_key(), plan_entry(1)));
  ::chmod(plans.c_str(), 01777);
  PlanCache refused = cache();
  EXPECT_FALSE(refused.usable());
  EXPECT_EQ(refused.load(plan_key()), std::nullopt);
  EXPECT_FALSE(refused.store(plan_key(), plan_entry(2)));
  expect_warning("anybody may write to it");
  EXPECT_THAT(warnings.front(), HasSubstr(plans));
}

TEST_F(PlanCacheTest, AFolderThatChangedMeanwhileIsNotWrittenTo) {
  PlanCache early = cache();
  fs::create_directories(plans);
  ::chmod(plans.c_str(), 0777);
  EXPECT_FALSE(early.store(plan_key(), plan_entry(1)));
  expect_warning("anybody");
  EXPECT_FALSE(early.store(plan_key(), plan_entry(1)));  // and said once
  expect_warning("anybody");
  EXPECT_EQ(folder.files(), 0U);
}

TEST_F(PlanCacheTest, AFileIsNoFolder) {
  plans = folder.write("plans", "");
  EXPECT_FALSE(cache().usable());
  expect_warning("not a folder");
  warnings.clear();
  plans += "/below";
  EXPECT_FALSE(cache().store(plan_key(), plan_entry(1)));
  expect_warning("without the plan cache");
}

TEST_F(PlanCacheTest, FoldersOfOthersAreNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  fs::create_directories(plans);
  ASSERT_EQ(::chown(plans.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(cache().usable());
  expect_warning("another user");
  // That user uses it, but cannot use one of root without the right to write.
  const pid_t child = ::fork();
  if (child == 0) {
    ::chmod(folder.path().c_str(), 0755);
    const std::string roots = folder.path("roots");
    fs::create_directory(roots);
    ::chmod(roots.c_str(), 0755);
    if (::setuid(65534) != 0) ::_exit(1);
    if (!plan_folder_problem(plans, true).empty()) ::_exit(2);
    if (!plan_folder_problem(roots, false).empty()) ::_exit(3);
    if (plan_folder_problem(roots, true) != "it is read-only") ::_exit(4);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

TEST_F(PlanCacheTest, AFullDiskIsAWarning) {
  ASSERT_TRUE(cache().store(plan_key(), plan_entry(1)));
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit none = {0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    const bool stored = cache().store(plan_key(), plan_entry(2));
    ::_exit(!stored && warnings.size() == 1 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(cache().load(plan_key()), plan_entry(1));
  EXPECT_EQ(folder.files(), 1U);
}

TEST_F(PlanCacheTest, ListSaysWhatIsThere) {
  EXPECT_TRUE(list_plan_files(plans).empty());  // nor is there a folder
  PlanCacheKey older = plan_key();
  older.program = "0.0.1";
  ASSERT_TRUE(cache().store(plan_key(), plan_entry(1)));
  ASSERT_TRUE(cache().store(older, plan_entry(2)));
  folder.write("deep/plans/plan-0123456789abcdef0123456789abcdef.bin", "x");
  folder.write("deep/plans/.toto-plan-0123456789abcdef.tmp", "");
  folder.write("deep/plans/notes.txt", "mine");
  const std::vector<PlanFile> files = list_plan_files(plans);
  ASSERT_EQ(files.size(), 4U);
  std::map<PlanFileState, const PlanFile*> by_state;
  for (const PlanFile& one : files) by_state[one.state] = &one;
  ASSERT_EQ(by_state.size(), 4U);
  EXPECT_EQ(by_state[PlanFileState::valid]->content->entry, plan_entry(1));
  EXPECT_EQ(by_state[PlanFileState::valid]->bytes, fs::file_size(file()));
  EXPECT_EQ(by_state[PlanFileState::other_version]->content->key, older);
  EXPECT_EQ(by_state[PlanFileState::damaged]->bytes, 1U);
  EXPECT_EQ(by_state[PlanFileState::unfinished]->name, ".toto-plan-0123456789abcdef.tmp");
}

TEST_F(PlanCacheTest, ClearRemovesOnlyItsOwnFiles) {
  EXPECT_EQ(clear_plan_files(plans).files, 0U);
  ASSERT_TRUE(cache().store(plan_key(), plan_entry(1)));
  const std::uint64_t size = fs::file_size(file());
  folder.write("deep/plans/plan-0123456789abcdef0123456789abcdef.bin", "12345");
  folder.write("deep/plans/.toto-plan-0123456789abcdef.tmp", "123");
  // Close, but not ours.
  const std::vector<std::string> others = {"notes.txt",
                                           ".toto-0123456789abcdef.tmp",
                                           "plan-0123.bin",
                                           "plan-0123456789ABCDEF0123456789abcdef.bin",
                                           "plan-0123456789abcdef0123456789abcdef.bin.old",
                                           ".toto-plan-0123456789abcdeg.tmp",
                                           "below/plan-0123456789abcdef0123456789abcdef.bin"};
  for (const std::string& other : others) folder.write("deep/plans/" + other, "x");
  fs::create_symlink("notes.txt", plans + "/plan-00000000000000000000000000000000.bin");
  fs::create_directory(plans + "/plan-11111111111111111111111111111111.bin");
  const PlanFilesRemoved removed = clear_plan_files(plans);
  EXPECT_EQ(removed.files, 3U);
  EXPECT_EQ(removed.bytes, size + 8);
  EXPECT_EQ(folder.files(), others.size() + 1);
  EXPECT_TRUE(list_plan_files(plans).empty());
}

TEST_F(PlanCacheTest, WritersRemoveStaleTemporariesAndNoOthers) {
  const std::string fresh = folder.write("deep/plans/.toto-plan-000000000000000f.tmp", "");
  const std::string stale = folder.write("deep/plans/.toto-plan-000000000000000e.tmp", "");
  const std::string output = folder.write("deep/plans/.toto-000000000000000e.tmp", "");
  for (const std::string& old : {stale, output}) {
    fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  ASSERT_TRUE(cache().store(plan_key(), plan_entry(1)));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(output));  // a forecast's output may take hours
}

}  // namespace
}  // namespace toto
