// SPDX-License-Identifier: Apache-2.0
// Escaping and fitting text.
#include "tools/plot/text.h"

#include <gtest/gtest.h>

#include "core/printable.h"

namespace toto::plot {
namespace {

TEST(Text, EscapesAllMarkup) {
  EXPECT_EQ(escape(U"<script>alert('x' & \"y\")</script>"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;");
  EXPECT_EQ(escape(U"\u6f22"), "\u6f22");
}

TEST(Text, WidthsAreThoseOfHelvetica) {
  EXPECT_NEAR(text_width(U"1,234", 10), 5 * 5.56 - 5.56 + 2.78, 1e-9);
  EXPECT_NEAR(text_width(std::string_view("Wi"), 100), 94.4 + 22.2, 1e-9);
  EXPECT_GT(text_width(U"abc", 10, true), text_width(U"abc", 10));
  EXPECT_EQ(text_width(U"", 10), 0);
}

TEST(Text, FitCutsWithAnEllipsis) {
  const std::u32string name = U"latency of a service with a long name";
  EXPECT_EQ(fit(name, 1000, 10), name);
  for (double width = 0; width < 200; width += 1) {
    const std::u32string cut = fit(name, width, 10);
    EXPECT_LE(text_width(cut, 10), width);
    if (cut != name && !cut.empty()) {
      EXPECT_EQ(cut.back(), U'\u2026');
    }
  }
}

TEST(Text, WrapBreaksAtSpaces) {
  const auto lines = wrap(U"aaa bbb ccc", text_width(U"aaa bbb", 10) + 0.01, 10, 5);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], U"aaa bbb");
  EXPECT_EQ(lines[1], U"ccc");
  EXPECT_TRUE(wrap(U"  ", 100, 10, 5).empty());
}

TEST(Text, WrapNeverExceedsWidthOrLines) {
  const std::u32string text(500, U'x');
  for (const std::u32string& all : {text, U"some words and " + text + U" and more words"}) {
    const auto lines = wrap(all, 200, 11, 3);
    EXPECT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines.back().back(), U'\u2026');
    for (const auto& line : lines) EXPECT_LE(text_width(line, 11), 200);
  }
}

}  // namespace
}  // namespace toto::plot
