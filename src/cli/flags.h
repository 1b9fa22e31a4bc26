// SPDX-License-Identifier: Apache-2.0
// The commands and their flags, without the parser behind them: its headers take long to compile,
// and only flags.cpp, help.cpp and main.cpp need them. Where names are CLI11's, so are the
// meanings.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace toto::cli {

/// A flag or an argument of a command; copies are the same one.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag group(const std::string& heading) const;  ///< in --help; "": not shown there
  Flag type_name(const std::string& name) const;
  Flag required() const;
  Flag one_value() const;        ///< of a list: the flag takes one word, and may be repeated
  Flag comma_separated() const;  ///< the same, and commas separate values in that word
  Flag excludes(const Flag& other) const;
  Flag excludes(const std::string& other) const;
  Flag or_variable(const std::string& name) const;  ///< of the environment, where it is not given

 private:
  CLI::Option* option_;
};

/// A command; copies are the same one. What a flag sets must live as long as the program parses.
class Command {
 public:
  using Text = std::function<void(const std::string&)>;
  using Texts = std::function<void(const std::vector<std::string>&)>;

  explicit Command(CLI::App* app) : app_(app) {}

  Command add_subcommand(const std::string& name, const std::string& description) const;
  void require_one_subcommand() const;
  void footer(const std::string& text) const;
  void callback(const std::function<void()>& run) const;

  /// `names` that start with - are flags with a value, others are arguments.
  Flag add_option(const std::string& names, std::string& value, const std::string& help) const;
  Flag add_option(const std::string& names, std::optional<std::string>& value,
                  const std::string& help) const;
  Flag add_option(const std::string& names, std::vector<std::string>& value,
                  const std::string& help) const;
  Flag add_option_function(const std::string& names, const Text& take,
                           const std::string& help) const;
  Flag add_list_option_function(const std::string& names, const Texts& take,
                                const std::string& help) const;
  /// Flags without a value.
  Flag add_flag(const std::string& names, bool& value, const std::string& help) const;
  Flag add_flag(const std::string& names, std::optional<bool>& value,
                const std::string& help) const;
  Flag add_flag_function(const std::string& names, const std::function<void(bool)>& take,
                         const std::string& help) const;

 private:
  CLI::App* app_;
};

}  // namespace toto::cli
