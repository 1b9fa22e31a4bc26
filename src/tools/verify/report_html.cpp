// SPDX-License-Identifier: Apache-2.0
// The report as one page for a browser: the same rows as in Markdown, coloured by verdict, with the
// long tables folded. No script, nothing loaded from anywhere.
#include <fmt/format.h>

#include "core/printable.h"
#include "tools/verify/report_text.h"

namespace toto {
namespace verify {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--line:#d5d9e0;--soft:#f5f6f8;--good:#1a7f4b;--warn:#9a6700;--bad:#c62f2f}
@media (prefers-color-scheme:dark){:root{--line:#3a3f4a;--soft:#20242c;--good:#4cc38a;--warn:#e0ac3f;--bad:#ff7b72}}
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0 0 .5rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}
.verdict{padding:.7rem 1rem;border-radius:.4rem;border:1px solid;font-weight:600;margin:1rem 0}
table{border-collapse:collapse;width:100%;font-size:.85rem;font-variant-numeric:tabular-nums}
td,th{border-bottom:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top}
th{background:var(--soft);position:sticky;top:0}
.scroll{overflow-x:auto}code{font-size:.85em;overflow-wrap:anywhere}
.holds{color:var(--good)}.warning{color:var(--warn)}.fails,.could-not-run{color:var(--bad);font-weight:600}
summary{cursor:pointer;padding:.3rem 0}
@media print{details>*{display:block}th{position:static}}
)";

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : to_utf8(printable(text))) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// The class of a verdict's word; empty for any other text.
std::string class_of(std::string_view text) {
  for (const Verdict v :
       {Verdict::holds, Verdict::warning, Verdict::fails, Verdict::could_not_run}) {
    if (word(v) != text) continue;
    return v == Verdict::could_not_run ? "could-not-run" : std::string(text);
  }
  return {};
}

std::string table(const std::vector<std::string>& columns, const Rows& rows) {
  std::string text = "<div class=\"scroll\"><table>";
  if (!columns.empty()) {
    text += "<thead><tr>";
    for (const std::string& column : columns) text += "<th>" + escape(column) + "</th>";
    text += "</tr></thead>";
  }
  text += "<tbody>\n";
  for (const auto& cells : rows) {
    text += "<tr>";
    for (const std::string& cell : cells) {
      const std::string name = class_of(cell);
      text += name.empty() ? std::string("<td>") : fmt::format("<td class=\"{}\">", name);
      text += cell.starts_with("toto verify ") ? "<code>" + escape(cell) + "</code>" : escape(cell);
      text += "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string section(const std::string& title, const std::string& body) {
  return "<h2>" + escape(title) + "</h2>\n" + body;
}

std::string page(const VerifyReport& report) {
  const char* colour = report.holds() ? "holds" : "fails";
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n<p class=\"verdict {}\">{}</p>\n",
      escape(report_title(report)), kStyle, escape(report_title(report)), colour,
      escape(summary(report)));
  text += table({}, head_rows(report));
  text += section("Groups", table(kGroupColumns, group_rows(report)));
  const Rows attention = attention_rows(report);
  if (!attention.empty()) {
    text += section("What needs attention", table(kAttentionColumns, attention));
  }
  for (const VerifyTable& t : report.tables) {
    text += section(t.title, "<p>" + escape(t.note) + "</p>\n" + table(t.columns, t.rows));
  }
  for (const std::string& group : groups(report)) {
    const Rows rows = check_rows(report, group);
    text +=
        section(heading(group), fmt::format("<details><summary>{} checks</summary>\n{}</details>\n",
                                            rows.size(), table(kCheckColumns, rows)));
  }
  text += section("Environment", table({}, environment_rows(report)));
  text += section("How to reproduce",
                  "<p>The whole report: <code>" + escape(report.command) +
                      "</code>. One part of it, whose verdict is then never a pass:</p>\n" +
                      table({"checks", "command"}, reproduce_rows(report)));
  return text + "</body>\n</html>\n";
}

}  // namespace
}  // namespace verify

std::string verify_html(const VerifyReport& report) { return verify::page(report); }

}  // namespace toto
