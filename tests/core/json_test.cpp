// SPDX-License-Identifier: Apache-2.0
// Strict JSON: what other parsers let through is refused, with its code.
#include "core/json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/utf8.h"

namespace toto {
namespace {

Error refusal(const std::string& text) {
  try {
    parse_json(text, ExitStatus::bad_config, "file.json");
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 100);
  return {ExitStatus::ok, "none", ""};
}

nlohmann::json accepted(const std::string& text) {
  return parse_json(text, ExitStatus::bad_config, "file.json");
}

TEST(Json, ReadsEveryKindOfValue) {
  const auto value =
      accepted(" \t\r\n{\"a\": [1, -2, 2.5, true, null, \"\\u00e9\"], \"b\": {}} \n");
  EXPECT_EQ(value["a"][0], 1);
  EXPECT_EQ(value["a"][1], -2);
  EXPECT_EQ(value["a"][2], 2.5);
  EXPECT_EQ(value["a"][3], true);
  EXPECT_TRUE(value["a"][4].is_null());
  EXPECT_EQ(value["a"][5], "\xC3\xA9");
  EXPECT_TRUE(value["b"].is_object());
  EXPECT_TRUE(value["b"].empty());
  EXPECT_EQ(value.size(), 2U);
}

TEST(Json, NestedContainersEndUpInTheirPlace) {
  EXPECT_EQ(accepted(R"([[1,[2]],{"x":{"y":[3,{"z":4}]},"w":5}])").dump(),
            R"([[1,[2]],{"w":5,"x":{"y":[3,{"z":4}]}}])");
}

TEST(Json, ScalarsAreDocuments) { EXPECT_EQ(accepted("7"), 7); }

TEST(Json, LargeIntegersKeepTheirValue) {
  EXPECT_EQ(accepted("18446744073709551615").get<std::uint64_t>(), ~std::uint64_t{0});
  EXPECT_EQ(accepted("-9223372036854775808").get<std::int64_t>(), INT64_MIN);
}

TEST(Json, SyntaxErrorsGiveTheOffset) {
  const Error error = refusal("{\"a\": 1,}");
  EXPECT_EQ(error.code(), "invalid_json");
  EXPECT_EQ(error.status(), ExitStatus::bad_config);
  EXPECT_EQ(error.where(), "file.json");
  EXPECT_NE(error.message().find("byte 9"), std::string::npos) << error.message();
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const std::string text :
       {"",       " ",         "{",           "[",       "{\"a\"}",  "[1 2]", "[1],",
        "{} x",   "nul",       "'a'",         "// c\n1", "/* */ 1",  "01",    "+1",
        "1.",     ".5",        "0x10",        "NaN",     "Infinity", "-",     "[1,]",
        "\"\t\"", "\"\\x41\"", "\"\\ud800\"", "\"open",  "1e999",    "-1e999"}) {
    EXPECT_EQ(refusal(text).code(), "invalid_json") << text;
  }
}

TEST(Json, ANulDoesNotEndTheText) {
  EXPECT_EQ(refusal(std::string("{}\0garbage", 10)).code(), "invalid_json");
  EXPECT_EQ(refusal(std::string("\0", 1)).code(), "invalid_json");
}

TEST(Json, MessagesAreOneShortLine) {
  const Error error = refusal("[\"" + std::string(100'000, 'x') + "\n\"]");
  EXPECT_EQ(error.code(), "invalid_json");
  EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  EXPECT_LT(std::string(error.what()).size(), 300U);
  const Error key = refusal("{\"a\\n" + std::string(5000, 'k') + "\":1,\"a\\n" +
                            std::string(5000, 'k') + "\":2}");
  EXPECT_EQ(key.code(), "duplicate_key");
  EXPECT_EQ(std::string(key.what()).find('\n'), std::string::npos);
  EXPECT_LT(std::string(key.what()).size(), 300U);
}

TEST(Json, DuplicateKeys) {
  for (const std::string text : {R"({"a":1,"a":1})", R"({"x":[{"a":1,"b":2,"a":{}}]})",
                                 R"({"a":1,"\u0061":2})", R"({"":1,"":2})"}) {
    const Error error = refusal(text);
    EXPECT_EQ(error.code(), "duplicate_key") << text;
  }
  EXPECT_NO_THROW(accepted(R"({"a":{"a":{"a":1}},"b":{"a":1}})"));
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(accepted(nested(64)));
  EXPECT_EQ(refusal(nested(65)).code(), "invalid_json");
  EXPECT_EQ(refusal(std::string(100'000, '[')).code(), "invalid_json");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(refusal(objects).code(), "invalid_json");
}

TEST(Json, InvalidUtf8GivesTheOffset) {
  const Error error = refusal("{\"a\xFF\": 1}");
  EXPECT_EQ(error.code(), "invalid_utf8");
  EXPECT_NE(error.message().find("byte 3 (0xFF)"), std::string::npos) << error.message();
  EXPECT_EQ(refusal("\xFF").code(), "invalid_utf8");
  EXPECT_EQ(refusal("{} \xC3").code(), "invalid_utf8");
}

TEST(Json, QuoteIsAsciiAndShort) {
  EXPECT_EQ(quote("plain"), "\"plain\"");
  EXPECT_EQ(quote("a\nb\"\xC3\xA9\x01"), R"("a\nb\"\u00e9\u0001")");
  EXPECT_LT(quote(std::string(100'000, '\x01')).size(), 100U);
  EXPECT_EQ(shorten(std::string(80, 'x')), std::string(80, 'x'));
  EXPECT_EQ(shorten(std::string(81, 'x')), std::string(80, 'x') + "...");
}

TEST(Utf8, AgreesWithTheTableOfTheStandard) {
  constexpr auto kNone = std::string_view::npos;
  for (const std::string_view good :
       {"", "ascii", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(first_invalid_utf8(good), kNone) << good;
  }
  for (const std::string_view bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x7F", "\xC2\xC0", "\xE0\x9F\xBF",
        "\xE0\xA0", "\xED\xA0\x80", "\xE1\x80\x7F", "\xF0\x8F\xBF\xBF", "\xF0\x90\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(first_invalid_utf8("ab" + std::string(bad)), 2U);
  }
}

// Every scalar value of Unicode, and nothing else, in its shortest form.
TEST(Utf8, EveryCodePoint) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string bytes;
    if (c < 0x80) {
      bytes = {static_cast<char>(c)};
    } else if (c < 0x800) {
      bytes = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    } else if (c < 0x10000) {
      bytes = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
               static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      bytes = {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
               static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
    }
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(first_invalid_utf8(bytes), surrogate ? 0 : std::string_view::npos)
        << static_cast<std::uint32_t>(c);
  }
}

TEST(Json, WhatADocumentCanCostIsBounded) {
  std::string text = "[{}";
  for (std::size_t i = 0; i < kMaxJsonParts; ++i) text += ",{}";
  text += "]";
  try {
    parse_json(text, ExitStatus::bad_data, "file");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "invalid_json");
  }
}

TEST(Json, MembersComeOneByOne) {
  std::string seen;
  const auto take = [&](const std::string& name, const nlohmann::json& value) {
    seen += name + "=" + value.dump() + ";";
  };
  parse_json_members(R"({"a": {"b": [1, {"c": 2}]}, "d": 3, "e": [], "f": "g"})",
                     ExitStatus::bad_data, "file", 8, take);
  EXPECT_EQ(seen, "a={\"b\":[1,{\"c\":2}]};d=3;e=[];f=\"g\";");
  for (const char* text :
       {"[1]", "7", "\"text\"", "{\"a\":[[],[],[],[],[],[],[],[],[]]}", "{\"a\":1"}) {
    try {
      parse_json_members(text, ExitStatus::bad_data, "file", 8, take);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "invalid_json") << text;
    }
  }
}

}  // namespace
}  // namespace toto
