// SPDX-License-Identifier: Apache-2.0
// What the program says about itself: --help, man pages, shell completion, all from the same texts.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/help_groups.h"

namespace toto::cli {

class Help : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* command, std::string name,
                        CLI::AppFormatMode mode) const override;
};

/// `toto model info`, from the program down to the command.
std::string full_name(const CLI::App* command);

/// "-o, --output FILE".
std::string names_of(const CLI::Option* option);

/// The first sentence of its description, without the full stop.
std::string summary_of(const CLI::App* command);

/// "toto forecast [FLAGS] [INPUT]".
std::string usage_of(const CLI::App* command);

/// Headings of its flags in the order of --help, without "" and those that have none.
std::vector<std::string> groups_of(const CLI::App* command);

/// The flags under a heading.
std::vector<const CLI::Option*> flags_of(const CLI::App* command, const std::string& group);

/// Its commands, without groups of flags.
std::vector<const CLI::App*> commands_of(const CLI::App* command);

/// The page of a command in the format of man(7). `version` stands at its foot.
std::string man_page(const CLI::App* command, const std::string& version);

/// A script that completes commands, flags and files. `shell`: bash, zsh or fish.
std::string completion(const CLI::App* program, const std::string& shell);

}  // namespace toto::cli
