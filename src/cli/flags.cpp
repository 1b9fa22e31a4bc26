// SPDX-License-Identifier: Apache-2.0
#include "cli/flags.h"

#include <CLI/CLI.hpp>

namespace toto::cli {

Flag Flag::group(const std::string& heading) const {
  option_->group(heading);
  return *this;
}

Flag Flag::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Flag Flag::required() const {
  option_->required();
  return *this;
}

Flag Flag::one_value() const {
  option_->allow_extra_args(false);
  return *this;
}

Flag Flag::comma_separated() const {
  option_->delimiter(',');
  return one_value();
}

Flag Flag::excludes(const Flag& other) const {
  option_->excludes(other.option_);
  return *this;
}

Flag Flag::excludes(const std::string& other) const {
  option_->excludes(other);
  return *this;
}

Flag Flag::or_variable(const std::string& name) const {
  option_->envname(name);
  return *this;
}

Command Command::add_subcommand(const std::string& name, const std::string& description) const {
  return Command(app_->add_subcommand(name, description));
}

void Command::require_one_subcommand() const { app_->require_subcommand(1); }

void Command::footer(const std::string& text) const { app_->footer(text); }

void Command::callback(const std::function<void()>& run) const { app_->callback(run); }

Flag Command::add_option(const std::string& names, std::string& value,
                         const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag Command::add_option(const std::string& names, std::optional<std::string>& value,
                         const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag Command::add_option(const std::string& names, std::vector<std::string>& value,
                         const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag Command::add_option_function(const std::string& names, const Text& take,
                                  const std::string& help) const {
  return Flag(app_->add_option_function<std::string>(names, take, help));
}

Flag Command::add_list_option_function(const std::string& names, const Texts& take,
                                       const std::string& help) const {
  return Flag(app_->add_option_function<std::vector<std::string>>(names, take, help));
}

Flag Command::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Flag(app_->add_flag(names, value, help));
}

Flag Command::add_flag(const std::string& names, std::optional<bool>& value,
                       const std::string& help) const {
  // Not add_flag(names, value): CLI11 2.1 would set a value for a flag that nobody gave.
  return add_flag_function(
      names, [&value](bool on) { value = on; }, help);
}

Flag Command::add_flag_function(const std::string& names, const std::function<void(bool)>& take,
                                const std::string& help) const {
  return Flag(app_->add_flag_function(
      names, [take](std::int64_t count) { take(count > 0); }, help));
}

}  // namespace toto::cli
