// SPDX-License-Identifier: Apache-2.0
// What the program says about itself: help in groups, pages for man, completion in real shells.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "support/program.h"

namespace toto::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class HelpCommand : public Program {
 protected:
  static std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) all.push_back(word);
    std::ranges::sort(all);
    return all;
  }
  bool has(const std::string& program) {
    return shell("command -v " + program + " >/dev/null").status == 0;
  }
  /// A script that completes, as a file.
  std::string script(const std::string& of) {
    const Result result = run({"completion", of});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return write("_toto", result.out);
  }
};

TEST_F(HelpCommand, TheFlagsThatPeopleNeedComeFirst) {
  const std::string text = run({"forecast", "--help"}).out;
  const std::size_t first = text.find("\nMost used:\n");
  ASSERT_NE(first, std::string::npos);
  EXPECT_LT(first, text.find("\nThe table:\n"));
  const std::string group = text.substr(first, text.find("\n\n", first) - first);
  std::size_t flags = 0;
  for (const char* flag : {"--horizon", "--level", "--model", "--output", "--plot"}) {
    EXPECT_THAT(group, HasSubstr(flag));
  }
  for (std::size_t at = group.find("\n  -"); at != std::string::npos;
       at = group.find("\n  -", at + 1)) {
    ++flags;
  }
  EXPECT_EQ(flags, 5U);
}

TEST_F(HelpCommand, IsTheSameAsTheFlag) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"help", "forecast"}).out, run({"forecast", "--help"}).out);
  EXPECT_EQ(run({"help", "model", "info"}).out, run({"model", "info", "--help"}).out);
  expect_failure(run({"help", "forcast"}), 2, "unknown_command");
  EXPECT_THAT(run({"help", "forcast"}).err, HasSubstr("did you mean forecast?"));
  expect_failure(run({"help", "model", "nothing"}), 2, "unknown_command");
}

TEST_F(HelpCommand, VersionHasAShortName) {
  EXPECT_EQ(run({"-V"}).out, "toto " TOTO_VERSION "\n");
  EXPECT_EQ(run({"-V"}).status, 0);
}

TEST_F(HelpCommand, PagesForMan) {
  std::filesystem::create_directory(path("man1"));
  ASSERT_EQ(run({"help", "--man-pages", "man1"}).status, 0);
  for (const char* page : {"toto.1", "toto-forecast.1", "toto-model-info.1", "toto-verify.1"}) {
    EXPECT_TRUE(std::filesystem::exists(path("man1/" + std::string(page)))) << page;
  }
  EXPECT_EQ(run({"help", "--man", "forecast"}).out, read_file(path("man1/toto-forecast.1")));
  expect_failure(run({"help", "--man-pages", "nowhere"}), 74, "write_failed");
  if (!has("man")) GTEST_SKIP() << "there is no man here";
  // Every page is read without a warning, and says what --help says.
  const Result all = shell(
      "for page in man1/*.1; do man --warnings -E UTF-8 -l \"$page\" >/dev/null || exit 1; done");
  EXPECT_EQ(all.status, 0);
  EXPECT_EQ(all.err, "");
  const Result page = shell("MANWIDTH=200 man -E UTF-8 -l man1/toto-forecast.1 | col -b");
  EXPECT_THAT(page.out, HasSubstr("toto-forecast - Forecasts the series of tables"));
  EXPECT_THAT(page.out, HasSubstr("Steps to forecast, 1 to 100000 (default 64)"));
  EXPECT_THAT(page.out, HasSubstr("toto forecast sales.csv --horizon 28\n"));
  EXPECT_THAT(page.out, HasSubstr("EXIT STATUS"));
}

TEST_F(HelpCommand, BashCompletes) {
  script("bash");
  const auto complete = [&](const std::string& line) {
    const Result result = shell("source _toto; COMP_WORDS=(" + line +
                                "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
                                "\"$(complete -p toto | sed 's/.*-F \\([^ ]*\\).*/\\1/')\" && "
                                "echo \"${COMPREPLY[@]}\"");
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return words(result.out);
  };
  EXPECT_THAT(complete("toto fore"), ElementsAre("forecast"));
  EXPECT_THAT(complete("toto model ''"), ElementsAre("info", "synth"));
  EXPECT_THAT(complete("toto forecast --hori"), ElementsAre("--horizon"));
  EXPECT_THAT(complete("toto forecast in.csv --lev"), ElementsAre("--level"));
  EXPECT_THAT(complete("toto model synth --pre"), ElementsAre("--preset"));
  EXPECT_THAT(complete("toto help fore"), ElementsAre("forecast"));
  EXPECT_THAT(complete("toto help model i"), ElementsAre("info"));
  EXPECT_THAT(complete("toto completion ''"), ElementsAre("bash", "fish", "zsh"));
  // Not a command but a file: left to the shell.
  EXPECT_THAT(complete("toto forecast sal"), testing::IsEmpty());
  EXPECT_EQ(shell("bash -n _toto").err, "");
  EXPECT_THAT(shell("source _toto; complete -p toto").out, HasSubstr("-o default"));
}

TEST_F(HelpCommand, ZshCompletes) {
  if (!has("zsh")) GTEST_SKIP() << "there is no zsh here";
  script("zsh");
  // In a terminal: what a user who presses Tab has on the line.
  write("tab.zsh",
        "zmodload zsh/zpty\n"
        "zpty -b shell zsh -f -i\n"
        "zpty -w shell 'PS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; "
        "zstyle \":completion:*\" list-prompt \"\"; LISTMAX=0; print -r READY'\n"
        "zpty -r -m shell text '*READY*READY*'\n"
        "zpty -w -n shell \"$1\"$'\\t'\n"
        "for i in {1..100}; do\n"
        "  sleep 0.05\n"
        "  while zpty -r -t shell text; do all+=$text; done\n"
        "  [[ $all == *\"$2\"* ]] && print -r found && exit 0\n"
        "done\n"
        "print -r -- \"$all\"; exit 1\n");
  for (const auto& [line, completed] : std::vector<std::pair<std::string, std::string>>{
           {"toto fore", "toto forecast"},
           {"toto forecast --hori", "--horizon"},
           {"toto model in", "toto model info"},
           {"toto help det", "toto help detect"},
           {"toto completion fi", "toto completion fish"}}) {
    const Result result =
        shell("timeout 60 zsh -f tab.zsh '" + line + "' '" + completed + "' 2>&1");
    EXPECT_EQ(result.status, 0) << line << ": " << result.out;
  }
}

TEST_F(HelpCommand, FishCompletes) {
  if (!has("fish")) GTEST_SKIP() << "there is no fish here";
  script("fish");
  const auto complete = [&](const std::string& line) {
    const Result result =
        shell("fish --no-config -c 'source _toto; complete -C \"" + line + "\"' | cut -f1");
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return words(result.out);
  };
  EXPECT_THAT(complete("toto fore"), ElementsAre("forecast"));
  EXPECT_THAT(complete("toto model "), ElementsAre("info", "synth"));
  EXPECT_THAT(complete("toto forecast --hori"), ElementsAre("--horizon"));
  EXPECT_THAT(complete("toto model synth --pre"), ElementsAre("--preset"));
  EXPECT_THAT(complete("toto help fore"), ElementsAre("forecast"));
  EXPECT_THAT(complete("toto completion "), ElementsAre("bash", "fish", "zsh"));
}

TEST_F(HelpCommand, OnlyShellsThatAreKnown) {
  expect_failure(run({"completion", "tcsh"}), 2, "invalid_choice");
  expect_failure(run({"completion"}), 2, "usage");
}

}  // namespace
}  // namespace toto::test
