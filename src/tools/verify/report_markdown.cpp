// SPDX-License-Identifier: Apache-2.0
// The report as a page of text: the verdict first, then what failed, then every check.
#include <fmt/format.h>

#include <algorithm>

#include "core/printable.h"
#include "tools/verify/report_text.h"

namespace toto {
namespace verify {
namespace {

/// Text in a span of code, where nothing is special but the mark that ends it.
std::string code(std::string_view text) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string mark(longest + 1, '`');
  const char* const space = longest > 0 ? " " : "";
  return mark + space + to_utf8(printable(text)) + space + mark;
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& one : cells) {
    line += ' ';
    line += markdown_text(one);
    line += " |";
  }
  return line + "\n";
}

std::string table(const std::vector<std::string>& columns,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string text = row(columns) + "|";
  for (std::size_t i = 0; i < columns.size(); ++i) text += "---|";
  text += '\n';
  for (const auto& cells : rows) text += row(cells);
  return text;
}

std::string markdown(const VerifyReport& report) {
  std::string text = fmt::format("# {}\n\n**{}**\n\n", markdown_text(report_title(report)),
                                 markdown_text(summary(report)));
  text += table({"", ""}, head_rows(report));
  text += "\n## Groups\n\n" + table(kGroupColumns, group_rows(report));
  const auto attention = attention_rows(report);
  if (!attention.empty()) {
    text += "\n## What needs attention\n\n" + table(kAttentionColumns, attention);
  }
  for (const std::string& group : groups(report)) {
    text += fmt::format("\n## {}\n\n", markdown_text(heading(group))) +
            table(kCheckColumns, check_rows(report, group));
  }
  for (const VerifyTable& t : report.tables) {
    text += fmt::format("\n## {}\n\n{}\n\n", markdown_text(t.title), markdown_text(t.note)) +
            table(t.columns, t.rows);
  }
  text += "\n## Environment\n\n" + table({"", ""}, environment_rows(report));
  text += "\n## How to reproduce\n\nThe whole report: " + code(report.command) +
          ". One line of it, where the verdict is then that of a part and never a pass:\n\n" +
          table({"check", "command"}, reproduce_rows(report));
  return text;
}

}  // namespace
}  // namespace verify

std::string verify_markdown(const VerifyReport& report) { return verify::markdown(report); }

}  // namespace toto
