// SPDX-License-Identifier: Apache-2.0
// Output files appear whole or not at all.
#include "core/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "core/input_file.h"
#include "support/test_files.h"

namespace toto {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::read_file;
using test::TempFolder;

mode_t mode_of(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(AtomicFile, NothingIsThereBeforeCommit) {
  const TempFolder folder;
  AtomicFile file(folder.path("out"));
  file.write("hello");
  EXPECT_FALSE(fs::exists(folder.path("out")));
  file.commit();
  EXPECT_EQ(read_file(folder.path("out")), "hello");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(AtomicFile, SmallAndLargePiecesKeepTheirOrder) {
  const TempFolder folder;
  std::string expected;
  AtomicFile file(folder.path("out"));
  for (std::size_t i = 0; i < 400; ++i) {
    const std::string piece(i % 7 == 0 ? 70'000 : i, static_cast<char>('a' + i % 26));
    file.write(piece);
    expected += piece;
  }
  file.commit();
  EXPECT_EQ(read_file(folder.path("out")), expected);
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  const TempFolder folder;
  folder.write("out", "old");
  {
    AtomicFile file(folder.path("out"));
    file.write(std::string(200'000, 'x'));
  }
  EXPECT_EQ(read_file(folder.path("out")), "old");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(AtomicFile, SyncDoesNotCommit) {
  const TempFolder folder;
  AtomicFile file(folder.path("out"));
  file.write("a");
  file.sync();
  EXPECT_FALSE(fs::exists(folder.path("out")));
  file.write("b");
  file.commit();
  EXPECT_EQ(read_file(folder.path("out")), "ab");
}

TEST(AtomicFile, AReplacedFileKeepsItsMode) {
  const TempFolder folder;
  folder.write("out", "old");
  ::chmod(folder.path("out").c_str(), 0640);
  AtomicFile file(folder.path("out"));
  file.write("new");
  file.commit();
  EXPECT_EQ(read_file(folder.path("out")), "new");
  EXPECT_EQ(mode_of(folder.path("out")), 0640U);
}

TEST(AtomicFile, ANewFileHasTheUsualMode) {
  const TempFolder folder;
  const mode_t mask = ::umask(0027);
  AtomicFile file(folder.path("out"));
  file.commit();
  ::umask(mask);
  EXPECT_EQ(mode_of(folder.path("out")), 0640U);
}

TEST(AtomicFile, ALinkIsFollowed) {
  const TempFolder folder;
  folder.write("real/target", "old");
  fs::create_symlink("real/target", folder.path("near"));
  fs::create_symlink(folder.path("near"), folder.path("far"));
  AtomicFile file(folder.path("far"));
  file.write("new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(folder.path("far")));
  EXPECT_TRUE(fs::is_symlink(folder.path("near")));
  EXPECT_FALSE(fs::is_symlink(folder.path("real/target")));
  EXPECT_EQ(read_file(folder.path("real/target")), "new");
}

TEST(AtomicFile, ALinkToNothingMakesItsTarget) {
  const TempFolder folder;
  fs::create_symlink("later", folder.path("link"));
  AtomicFile file(folder.path("link"));
  file.write("new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(folder.path("link")));
  EXPECT_EQ(read_file(folder.path("later")), "new");
}

void expect_write_failed(const Error& error) {
  EXPECT_EQ(error.code(), "write_failed");
  EXPECT_EQ(error.status(), ExitStatus::io);
}

TEST(AtomicFile, RefusesWhatCannotBeWritten) {
  const TempFolder folder;
  fs::create_symlink("ring", folder.path("ring"));
  folder.write("file", "");
  for (const std::string& path :
       {folder.path("none/out"), folder.path(), folder.path("file/out"), folder.path("new/"),
        folder.path("ring"), std::string(), folder.path(std::string(5000, 'x'))}) {
    expect_write_failed(error_of([&] { AtomicFile file(path); }));
  }
  EXPECT_EQ(folder.files(), 2U);
}

TEST(AtomicFile, ANameAsLongAsTheSystemAllows) {
  const TempFolder folder;
  AtomicFile file(folder.path(std::string(255, 'n')));
  file.write("x");
  file.commit();
  EXPECT_EQ(read_file(folder.path(std::string(255, 'n'))), "x");
}

TEST(AtomicFile, ErrorsNameTheFileAndTheReason) {
  const TempFolder folder;
  const Error error = error_of([&] { AtomicFile file(folder.path("none/out")); });
  EXPECT_EQ(error.where(), folder.path("none/out"));
  EXPECT_NE(error.message().find("No such file"), std::string::npos) << error.message();
}

/// Runs `body` in a child process and gives its exit status.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Root may write anywhere, so the child gives that up first.
TEST(AtomicFile, ASetUidBitIsNotHandedOn) {
  const TempFolder folder;
  folder.write("out", "old");
  ASSERT_EQ(::chmod(folder.path("out").c_str(), 06755), 0);
  AtomicFile file(folder.path("out"));
  file.write("new");
  file.commit();
  EXPECT_EQ(read_file(folder.path("out")), "new");
  EXPECT_EQ(mode_of(folder.path("out")), 0755U);
}

TEST(AtomicFile, SameTargetFollowsLinksAndFolders) {
  const TempFolder folder;
  fs::create_directory(folder.path("sub"));
  fs::create_symlink("../out", folder.path("sub/link"));
  EXPECT_TRUE(same_target(folder.path("out"), folder.path("sub/../out")));
  EXPECT_TRUE(same_target(folder.path("out"), folder.path("sub/link")));
  EXPECT_FALSE(same_target(folder.path("out"), folder.path("other")));
  EXPECT_FALSE(same_target(folder.path("out"), folder.path("sub/out")));
  EXPECT_FALSE(same_target(folder.path("out"), folder.path("absent/out")));
  EXPECT_TRUE(same_target("/dev/stdout", "/dev/fd/1"));
  EXPECT_FALSE(same_target("/dev/stdout", "/dev/stderr"));
  EXPECT_FALSE(same_target("/dev/null", "/dev/null"));
}

TEST(AtomicFile, PermissionsAreRespected) {
  const TempFolder folder;
  folder.write("shut/x", "");
  folder.write("open/readonly", "old");
  ::chmod(folder.path().c_str(), 0755);
  ::chmod(folder.path("shut").c_str(), 0555);
  ::chmod(folder.path("open").c_str(), 0777);
  ::chmod(folder.path("open/readonly").c_str(), 0444);
  const int refused = in_child([&] {
    if (::getuid() == 0 && ::setuid(65534) != 0) return 99;
    int count = 0;
    for (const char* name : {"shut/new", "open/readonly"}) {
      try {
        AtomicFile file(folder.path(name));
      } catch (const Error& error) {
        count += error.code() == "write_failed" ? 1 : 0;
      }
    }
    return count;
  });
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(read_file(folder.path("open/readonly")), "old");
  EXPECT_EQ(folder.files(), 2U);
}

TEST(AtomicFile, ADeviceIsWrittenThrough) {
  AtomicFile file("/dev/null");
  file.write(std::string(100'000, 'x'));
  file.commit();
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(AtomicFile, AFullDiskIsAnError) {
  AtomicFile large("/dev/full");
  expect_write_failed(error_of([&] { large.write(std::string(100'000, 'x')); }));
  AtomicFile small("/dev/full");
  small.write("x");
  const Error error = error_of([&] { small.commit(); });
  expect_write_failed(error);
  EXPECT_NE(error.message().find("No space left"), std::string::npos) << error.message();
}

// A limit on the size of files stands in for a disk that fills up in the middle.
TEST(AtomicFile, AFailureInTheMiddleLeavesNothing) {
  const TempFolder folder;
  folder.write("out", "old");
  const int result = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      AtomicFile file(folder.path("out"));
      for (int i = 0; i < 10; ++i) file.write(std::string(30'000, 'x'));
      file.commit();
    } catch (const Error& error) {
      return error.code() == "write_failed" ? 7 : 8;
    }
    return 0;
  });
  EXPECT_EQ(result, 7);
  EXPECT_EQ(read_file(folder.path("out")), "old");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(AtomicFile, StandardOutputIsAppendedToAndKept) {
  const TempFolder folder;
  folder.write("log", "before\n");
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    in_child([&] {
      const int log = ::open(folder.path("log").c_str(), O_WRONLY | O_APPEND);
      ::dup2(log, STDOUT_FILENO);
      AtomicFile file(name);
      file.write("line\n");
      file.commit();
      return 0;
    });
  }
  EXPECT_EQ(read_file(folder.path("log")), "before\nline\nline\nline\n");
}

TEST(AtomicFile, APipeIsWrittenThrough) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  const int reader = ::open(folder.path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  AtomicFile file(folder.path("pipe"));
  file.write("through");
  file.commit();
  char got[16] = {};
  EXPECT_EQ(::read(reader, got, sizeof(got)), 7);
  EXPECT_STREQ(got, "through");
  ::close(reader);
}

// What a SIGINT handler does.
TEST(AtomicFile, UnfinishedFilesCanBeRemovedFromASignalHandler) {
  const TempFolder folder;
  folder.write("a", "old");
  const int result = in_child([&] {
    AtomicFile done(folder.path("done"));
    done.commit();
    AtomicFile a(folder.path("a"));
    AtomicFile b(folder.path("b"));
    a.write(std::string(200'000, 'x'));
    ::signal(SIGINT, [](int) {
      remove_unfinished_files();
      ::_exit(130);
    });
    ::raise(SIGINT);
    return 0;
  });
  EXPECT_EQ(result, 130);
  EXPECT_EQ(read_file(folder.path("a")), "old");
  EXPECT_TRUE(fs::exists(folder.path("done")));
  EXPECT_EQ(folder.files(), 2U);
}

TEST(AtomicFile, SlotsOfTheRegistryAreUsedAgain) {
  const TempFolder folder;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<AtomicFile>> files;
    for (int i = 0; i < 20; ++i) {
      files.push_back(std::make_unique<AtomicFile>(folder.path(std::to_string(i))));
    }
    EXPECT_EQ(folder.files(), 20U);
    remove_unfinished_files();
    EXPECT_EQ(folder.files(), 0U);
  }
}

TEST(InputFile, ReadsByPosition) {
  const TempFolder folder;
  const InputFile file(folder.write("in", "0123456789"));
  EXPECT_EQ(file.size(), 10U);
  std::string part(4, '\0');
  file.read(3, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, "3456");
  EXPECT_EQ(error_of([&] { file.read(7, std::as_writable_bytes(std::span(part))); }).code(),
            "read_failed");
}

TEST(InputFile, NamesWhatItCannotOpen) {
  const TempFolder folder;
  const Error missing = error_of([&] { InputFile file(folder.path("none")); });
  EXPECT_EQ(missing.code(), "file_not_found");
  EXPECT_EQ(missing.status(), ExitStatus::missing_input);
  EXPECT_EQ(missing.where(), folder.path("none"));
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder.path(), std::string("/dev/null"), folder.path("pipe")}) {
    const Error error = error_of([&] { InputFile file(path); });
    EXPECT_EQ(error.code(), "read_failed") << path;
    EXPECT_EQ(error.status(), ExitStatus::io);
  }
}

TEST(InputFile, TextFilesHaveALimit) {
  const TempFolder folder;
  const std::string path = folder.write("in", std::string(100'000, 'x'));
  EXPECT_EQ(read_text_file(path, 100'000, ExitStatus::bad_config).size(), 100'000U);
  const Error error = error_of([&] { read_text_file(path, 99'999, ExitStatus::bad_config); });
  EXPECT_EQ(error.code(), "file_too_large");
  EXPECT_EQ(error.status(), ExitStatus::bad_config);
  EXPECT_EQ(error_of([&] { read_text_file("/dev/zero", 100, ExitStatus::bad_config); }).code(),
            "file_too_large");
  EXPECT_EQ(error_of([&] { read_text_file(folder.path(), 9, ExitStatus::bad_config); }).code(),
            "read_failed");
}

}  // namespace
}  // namespace toto
