// SPDX-License-Identifier: Apache-2.0
// toto help, toto completion: what the program says about itself.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "core/closest.h"
#include "core/file_set.h"

namespace toto::cli {
namespace {

const CLI::App* find_command(const CLI::App* program, const std::vector<std::string>& words) {
  const CLI::App* at = program;
  for (const std::string& word : words) {
    const auto commands = commands_of(at);
    const auto found = std::ranges::find(commands, word, &CLI::App::get_name);
    if (found == commands.end()) {
      std::vector<std::string> known;
      known.reserve(commands.size());
      for (const CLI::App* command : commands) known.push_back(command->get_name());
      const std::string_view near = closest(word, known);
      const std::string remedy = "see " + full_name(at) + " --help";
      throw Error(ExitStatus::usage, "unknown_command", "nothing here is called '" + word + "'",
                  full_name(at),
                  near.empty() ? remedy : "did you mean " + std::string(near) + "? " + remedy);
    }
    at = *found;
  }
  return at;
}

/// toto.1, toto-forecast.1, ... of the command and those below it.
void write_pages(const CLI::App* command, const std::filesystem::path& folder, FileSet& files) {
  std::string name = full_name(command);
  std::ranges::replace(name, ' ', '-');
  files.add(folder / (name + ".1")).write(man_page(command, TOTO_VERSION));
  for (const CLI::App* sub : commands_of(command)) write_pages(sub, folder, files);
}

}  // namespace

void add_help(const Command& app, Session& session, const CLI::App* program) {
  struct Request {
    std::vector<std::string> words;
    bool man = false;
    std::string pages;  // a folder; empty: none
  };
  const auto request = std::make_shared<Request>();
  const Command help = add_command(app, session, "help", "Shows the help of a command.",
                                   "  toto help forecast\n"
                                   "  toto help model info\n"
                                   "  toto help --man forecast | man -l -\n");
  help.add_option("COMMAND", request->words, "The command, from the first word on")
      .type_name("WORD...");
  help.add_flag("--man", request->man, "As a page for man");
  help.add_option("--man-pages", request->pages,
                  "Write a page for man of each command to this folder")
      .type_name("DIR");
  help.callback([request, &session, program] {
    session.run = [request, program] {
      const CLI::App* const command = find_command(program, request->words);
      if (!request->pages.empty()) {
        FileSet files;
        write_pages(command, request->pages, files);
        files.commit();
        return ExitStatus::ok;
      }
      // Not command->help(): of the program it would show that of this command.
      print(request->man ? man_page(command, TOTO_VERSION)
                         : Help().make_help(command, "", CLI::AppFormatMode::Normal));
      return ExitStatus::ok;
    };
  });

  const auto shell = std::make_shared<std::string>();
  const Command complete = add_command(
      app, session, "completion", "Prints a script that completes commands and flags in a shell.",
      "  source <(toto completion bash)\n"
      "  toto completion zsh > \"${fpath[1]}/_toto\"\n"
      "  toto completion fish > ~/.config/fish/completions/toto.fish\n");
  complete.add_option("SHELL", *shell, "bash, zsh or fish").required().type_name("WORD");
  complete.callback([shell, &session, program] {
    session.run = [shell, program] {
      (void)parse_choice<int>(*shell, "SHELL", {{"bash", 0}, {"zsh", 1}, {"fish", 2}});
      print(completion(program, *shell));
      return ExitStatus::ok;
    };
  });
}

}  // namespace toto::cli
