// SPDX-License-Identifier: Apache-2.0
// The text of --help, wrapped to 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace toto::cli {

/// `toto model synth` for that subcommand.
std::string full_name(const CLI::App* command);

class Help : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* command, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace toto::cli
