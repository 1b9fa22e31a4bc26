// SPDX-License-Identifier: Apache-2.0
// Fields as numbers: what is one, what is missing, what is neither.
#include "data/number.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>

namespace toto::data {
namespace {

TEST(Number, ReadsWhatIsOne) {
  const struct {
    const char* text;
    float value;
  } cases[] = {
      {"0", 0.0F},
      {"-0", -0.0F},
      {"1.5", 1.5F},
      {"+1.5", 1.5F},
      {"  -2.25 ", -2.25F},
      {".5", 0.5F},
      {"5.", 5.0F},
      {"1e3", 1000.0F},
      {"1E+3", 1000.0F},
      {"1e-3", 0.001F},
      {"3.4028235e38", std::numeric_limits<float>::max()},
      {"1e-45", std::numeric_limits<float>::denorm_min()},
      {"1e-999", 0.0F},
      {"-1e-99999999999999999999", 0.0F},
      {"0e999999999999999999999", 0.0F},
      {"0.1", 0.1F},
      {"123456789012345678901234567890", 1.2345679e29F},
  };
  for (const auto& c : cases) {
    const Number number = parse_number(c.text);
    EXPECT_EQ(number.kind, NumberKind::value) << c.text;
    EXPECT_EQ(number.value, c.value) << c.text;
  }
  const std::string tiny = "0." + std::string(400, '0') + "1";
  EXPECT_EQ(parse_number(tiny).kind, NumberKind::value);
  EXPECT_EQ(parse_number(tiny).value, 0.0F);
}

TEST(Number, KnowsMissing) {
  for (const char* text :
       {"",    " ",    "NaN",  "nan", "NAN", "null", "NULL", "NA",   "na",   "N/A",
        "n/a", "None", "none", "-",   " - ", "--",   ".",    "#N/A", "<NA>", "nil"}) {
    EXPECT_EQ(parse_number(text).kind, NumberKind::missing) << text;
    EXPECT_TRUE(std::isnan(parse_number(text).value)) << text;
  }
}

TEST(Number, KnowsInfinite) {
  const std::string long_number = "1" + std::string(400, '0');
  const std::string shifted = "1" + std::string(400, '0') + "e-10";
  for (const std::string& text :
       {std::string("inf"), std::string("-inf"), std::string("+Inf"), std::string("Infinity"),
        std::string("-INFINITY"), std::string("1e999"), std::string("-1e999"), std::string("1e39"),
        std::string("3.4028236e38"), std::string("1e99999999999999999999"), long_number, shifted}) {
    EXPECT_EQ(parse_number(text).kind, NumberKind::not_finite) << text;
  }
}

TEST(Number, RefusesTheRest) {
  for (const char* text : {"1,5",
                           "0x1p3",
                           "0x10",
                           "1.5.2",
                           "1e",
                           "e5",
                           "1 000",
                           "1_000",
                           "--1",
                           "+-1",
                           "-+1",
                           "$5",
                           "5%",
                           "abc",
                           "nan(1)",
                           "-nan",
                           "infinit",
                           "1e+",
                           "true",
                           "\xC2\xA0"
                           "1",
                           "1\n"}) {
    EXPECT_EQ(parse_number(text).kind, NumberKind::not_a_number) << text;
  }
}

TEST(Number, TheLocalePlaysNoPart) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  // Where none of these is installed, the test has nothing to say.
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  }
  EXPECT_EQ(parse_number("1,5").kind, NumberKind::not_a_number);
  EXPECT_EQ(parse_number("1.5").value, 1.5F);
  std::setlocale(LC_ALL, before.c_str());
}

}  // namespace
}  // namespace toto::data
