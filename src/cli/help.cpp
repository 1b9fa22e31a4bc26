// SPDX-License-Identifier: Apache-2.0
// The text of --help: what the command is for, how it is called, its flags by group, examples.
#include "cli/help.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

namespace toto::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kIndent = 26;  // where the explanation of a flag begins

// Words of `text` in lines, from `column` on and later ones from `indent` on.
std::string wrapped(const std::string& text, std::size_t column, std::size_t indent) {
  std::istringstream words(text);
  std::string lines;
  std::size_t at = column;
  for (std::string word; words >> word;) {
    if (at > indent && at + 1 + word.size() > kWidth) {
      lines += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      lines += ' ';
      ++at;
    }
    lines += word;
    at += word.size();
  }
  return lines + "\n";
}

std::string entry(const std::string& name, const std::string& description) {
  std::string line = "  " + name;
  if (line.size() + 2 > kIndent) {
    line += '\n';
    line.append(kIndent, ' ');
  } else {
    line.resize(kIndent, ' ');
  }
  return line + wrapped(description, kIndent, kIndent);
}

/// Those under the same heading stay in order.
bool comes_last(const std::string& group) { return group == "Options"; }

}  // namespace

std::string names_of(const CLI::Option* option) {
  if (!option->nonpositional()) return option->get_name(true);
  std::string names;
  const auto add = [&names](std::string_view dashes, const std::string& name) {
    names.append(names.empty() ? "" : ", ").append(dashes).append(name);
  };
  for (const std::string& name : option->get_snames()) add("-", name);
  for (const std::string& name : option->get_lnames()) add("--", name);
  if (option->get_type_size() != 0) names += " " + option->get_type_name();
  return names;
}

std::string summary_of(const CLI::App* command) {
  std::string text = command->get_description();
  text.resize(std::min(text.find(". "), text.size()));
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string usage_of(const CLI::App* command) {
  std::string line = full_name(command);
  for (const CLI::Option* option : command->get_options()) {
    if (option->nonpositional() && option->get_required()) line += " " + names_of(option);
  }
  if (command->get_parent() != nullptr) line += " [FLAGS]";
  for (const CLI::Option* option : command->get_options()) {
    if (!option->nonpositional()) line += " [" + option->get_name(true) + "]";
  }
  if (command->get_require_subcommand_min() > 0) line += " COMMAND";
  return line;
}

std::vector<std::string> groups_of(const CLI::App* command) {
  std::vector<std::string> groups;
  for (const std::string& group : command->get_groups()) {
    if (!group.empty() && !flags_of(command, group).empty()) groups.push_back(group);
  }
  std::stable_partition(groups.begin(), groups.end(),
                        [](const std::string& group) { return !comes_last(group); });
  std::stable_partition(groups.begin(), groups.end(),
                        [](const std::string& group) { return group == kFirstFlags; });
  return groups;
}

std::vector<const CLI::Option*> flags_of(const CLI::App* command, const std::string& group) {
  std::vector<const CLI::Option*> flags;
  for (const CLI::Option* option : command->get_options()) {
    if (option->nonpositional() && option->get_group() == group) flags.push_back(option);
  }
  return flags;
}

std::vector<const CLI::App*> commands_of(const CLI::App* command) {
  return command->get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); });
}

std::string full_name(const CLI::App* command) {
  const CLI::App* const parent = command->get_parent();
  if (command->get_name().empty()) return full_name(parent);  // a group of flags
  return (parent == nullptr ? "" : full_name(parent) + " ") + command->get_name();
}

std::string Help::make_help(const CLI::App* command, std::string /*name*/,
                            CLI::AppFormatMode /*mode*/) const {
  std::string text =
      wrapped(command->get_description(), 0, 0) + "\nUsage: " + usage_of(command) + "\n";

  const auto commands = commands_of(command);
  if (!commands.empty()) text += "\nCommands:\n";
  for (const CLI::App* sub : commands) text += entry(sub->get_name(), summary_of(sub));

  std::string arguments;
  for (const CLI::Option* option : command->get_options()) {
    if (!option->nonpositional()) arguments += entry(names_of(option), option->get_description());
  }
  if (!arguments.empty()) text += "\nArguments:\n" + arguments;

  for (const std::string& group : groups_of(command)) {
    text += "\n" + (comes_last(group) ? "General" : group) + ":\n";
    for (const CLI::Option* flag : flags_of(command, group)) {
      text += entry(names_of(flag), flag->get_description());
    }
  }
  if (!command->get_footer().empty()) text += "\n" + command->get_footer();
  return text;
}

}  // namespace toto::cli
