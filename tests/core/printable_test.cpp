// SPDX-License-Identifier: Apache-2.0
// Text from outside is safe to show.
#include "core/printable.h"

#include <gtest/gtest.h>

#include "core/utf8.h"

namespace toto {
namespace {

std::string shown(std::string_view bytes) { return to_utf8(printable(bytes)); }

TEST(Printable, LeavesOrdinaryTextAlone) {
  for (const char* text : {"", "cpu.user", "<b>&\"'", "CO\u2082 \u00b5g/m\u00b3", "\u6f22\u5b57",
                           "\U0001F600", "e\u0301"}) {
    EXPECT_EQ(shown(text), text);
  }
}

TEST(Printable, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(shown("a\xFF"
                  "b"),
            "a\uFFFDb");
  EXPECT_EQ(shown("\xC0\xAF"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(shown("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(shown("\xE2\x82"), "\uFFFD\uFFFD");            // cut off
  EXPECT_EQ(shown("\xF4\x90\x80\x80x"), "\uFFFD\uFFFD\uFFFD\uFFFDx");
}

TEST(Printable, NothingThatATerminalOrAPageActsOnSurvives) {
  EXPECT_EQ(shown("\x1b[31mred"), "\uFFFD[31mred");
  EXPECT_EQ(shown(std::string_view("a\0b", 3)), "a\uFFFDb");
  EXPECT_EQ(shown("a\tb\nc\rd\u2028e"), "a b c d e");
  EXPECT_EQ(shown("\x7f\u0085\u009b"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(shown("\u202egnp.exe\u2066"), "\uFFFDgnp.exe\uFFFD");
  EXPECT_EQ(shown("\uFFFE\uFDD0\U0001FFFF"), "\uFFFD\uFFFD\uFFFD");
}

TEST(Printable, AnyTwoBytesGiveUtf8WithoutControls) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string bytes = {static_cast<char>(a), static_cast<char>(b)};
      const std::string text = shown(bytes);
      ASSERT_EQ(first_invalid_utf8(text), std::string_view::npos);
      for (const char c : text) ASSERT_GE(static_cast<unsigned char>(c), 0x20);
      ASSERT_EQ(shown(text), text);
    }
  }
}

TEST(Grouped, PutsThousandsInGroups) {
  EXPECT_EQ(grouped(0, 0), "0");
  EXPECT_EQ(grouped(999, 0), "999");
  EXPECT_EQ(grouped(1000, 0), "1,000");
  EXPECT_EQ(grouped(1234567.891, 2), "1,234,567.89");
  EXPECT_EQ(grouped(-100000, 1), "-100,000.0");
  EXPECT_EQ(grouped(-0.001, 2), "0.00");
  EXPECT_EQ(grouped(-1000, 0), "-1,000");
}

}  // namespace
}  // namespace toto
