// SPDX-License-Identifier: Apache-2.0
// The texts of --help in the format of man(7).
#include "cli/help.h"

namespace toto::cli {
namespace {

/// Text that roff shows as it stands.
std::string escaped(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";  // a hyphen that can be copied into a shell
    } else {
      out += c;
    }
    line_begins = c == '\n';
  }
  return out;
}

std::string section(const std::string& title) { return ".SH " + escaped(title) + "\n"; }

std::string entry(const std::string& name, const std::string& description) {
  return ".TP\n.B " + escaped(name) + "\n" + escaped(description) + "\n";
}

std::string with_hyphens(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

}  // namespace

std::string man_page(const CLI::App* command, const std::string& version) {
  const std::string name = with_hyphens(full_name(command));
  const std::string description = command->get_description();
  std::string text = ".TH \"" + upper(name) + "\" 1 \"\" \"toto " + version + "\"\n";
  text += section("NAME") + escaped(name) + " \\- " + escaped(summary_of(command)) + "\n";
  text += section("SYNOPSIS") + ".B " + escaped(usage_of(command)) + "\n";
  text += section("DESCRIPTION") + escaped(description) + "\n";
  const auto commands = commands_of(command);
  if (!commands.empty()) text += section("COMMANDS");
  for (const CLI::App* sub : commands) {
    text +=
        entry(sub->get_name(), summary_of(sub) + ". See " + with_hyphens(full_name(sub)) + "(1).");
  }
  std::string arguments;
  for (const CLI::Option* option : command->get_options()) {
    if (!option->nonpositional()) arguments += entry(names_of(option), option->get_description());
  }
  if (!arguments.empty()) text += section("ARGUMENTS") + arguments;
  for (const std::string& group : groups_of(command)) {
    text += section(upper(group));
    for (const CLI::Option* flag : flags_of(command, group)) {
      text += entry(names_of(flag), flag->get_description());
    }
  }
  // The footer holds examples, a line each.
  if (const std::string footer = command->get_footer(); !footer.empty()) {
    const std::size_t end = footer.find('\n');
    const bool headed = end != std::string::npos && end > 0 && footer[end - 1] == ':';
    text += section(headed ? upper(footer.substr(0, end - 1)) : "NOTES") + ".nf\n" +
            escaped(headed ? footer.substr(end + 1) : footer) + ".fi\n";
  }
  text += section("EXIT STATUS") +
          escaped(
              "0: done. 1: an anomaly, drift, or only part of the checks. 2: the command line is "
              "wrong. 3: a "
              "verification failed. 65, 66: the data are malformed or missing. "
              "69: no such device. 70: a defect, or not enough memory. 74: reading or writing "
              "failed. 78: a setting is wrong. 130: stopped by Ctrl-C.") +
          "\n";
  return text;
}

}  // namespace toto::cli
