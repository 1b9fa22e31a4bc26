// SPDX-License-Identifier: Apache-2.0
// The form of a plan entry: what was written is read, and nothing else is.
#include "engine/plan_entry.h"

#include <gtest/gtest.h>

#include "support/entries.h"
#include "support/test_files.h"

namespace toto {
namespace {

using test::error_of;
using test::plan_entry;
using test::plan_key;

TEST(PlanEntry, IsReadAsItWasWritten) {
  KeyedPlanEntry entry = {plan_key(), plan_entry(3)};
  entry.entry.choices.push_back({UINT32_MAX, 0, "", UINT32_MAX, UINT64_MAX});
  entry.entry.shapes.push_back({65536, 1, 65536, 100000, 65536});
  EXPECT_EQ(decode(encode(entry)), entry);
}

TEST(PlanEntry, Empty) {
  const KeyedPlanEntry entry = {plan_key(""), {}};
  EXPECT_EQ(decode(encode(entry)), entry);
}

// The bytes are part of the format: they are the same on every machine.
TEST(PlanEntry, Bytes) {
  KeyedPlanEntry entry;
  entry.key = {"1.2.3", "m", "avx2", "float32", "cpu"};
  entry.entry.choices = {{0x01020304, 5, "t", 6, 0x0102030405060708}};
  entry.entry.shapes = {{1, 2, 3, 4, 65536}};
  const std::string body(
      "\5\0001.2.3\1\0m\4\0avx2\7\0float32\3\0cpu"
      "\1\0\0\0\4\3\2\1\5\0\0\0\1\0t\6\0\0\0\10\7\6\5\4\3\2\1"
      "\1\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\0\0\1\0",
      81);
  const std::string bytes = encode(entry);
  EXPECT_EQ(bytes.substr(0, 16),
            std::string("totoplan\1\0\0\0", 12) + std::string("\x51\0\0\0", 4));
  EXPECT_EQ(bytes.substr(16, 32), "c58bd1c7d6e8d963e45ef504da8bfd8c");
  EXPECT_EQ(bytes.substr(48), body);
}

TEST(PlanEntry, EveryTruncationIsAMiss) {
  const std::string bytes = encode({plan_key(), plan_entry(1)});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(std::string_view(bytes).substr(0, size)), std::nullopt) << size;
  }
  EXPECT_EQ(decode(bytes + '\0'), std::nullopt);
}

TEST(PlanEntry, EveryFlippedBitIsAMiss) {
  const std::string bytes = encode({plan_key(), plan_entry(1)});
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(decode(flipped), std::nullopt) << bit;
  }
}

// A truncated or padded body under a correct checksum, as no writer makes it.
TEST(PlanEntry, SealedNonsenseIsAMiss) {
  const std::string body = encode({plan_key(), plan_entry(1)}).substr(48);
  ASSERT_TRUE(decode(seal_plan(body)));
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_EQ(decode(seal_plan(body.substr(0, size))), std::nullopt) << size;
  }
  EXPECT_EQ(decode(seal_plan(body + "x")), std::nullopt);
}

TEST(PlanEntry, CountsThatCannotBeAreAMiss) {
  const std::string body = encode({plan_key(), {}}).substr(48);
  const std::string texts = body.substr(0, body.size() - 8);
  const std::string none(4, '\0');
  EXPECT_TRUE(decode(seal_plan(texts + none + none)));
  for (const std::string& count : {std::string("\xFF\xFF\xFF\xFF", 4), std::string("\0\0\0\x80", 4),
                                   std::string("\1\0\0\0", 4)}) {
    EXPECT_EQ(decode(seal_plan(texts + count + none)), std::nullopt);
    EXPECT_EQ(decode(seal_plan(texts + none + count)), std::nullopt);
  }
}

// `count` shapes that differ, as they lie in a file.
std::string shape_bytes(std::uint8_t count) {
  std::string bytes;
  for (std::uint8_t i = 1; i <= count; ++i) {
    for (int number = 0; number < 5; ++number) bytes += {static_cast<char>(i), 0, 0, 0};
  }
  return bytes;
}

TEST(PlanEntry, NoMoreShapesThanAreBuiltAtAStart) {
  const std::string body = encode({plan_key(), {}}).substr(48);
  const std::string front = body.substr(0, body.size() - 4);
  const auto with = [&](std::uint8_t count) {
    return decode(
        seal_plan(front + std::string{static_cast<char>(count), 0, 0, 0} + shape_bytes(count)));
  };
  EXPECT_TRUE(with(kMaxPlanShapes));
  EXPECT_FALSE(with(kMaxPlanShapes + 1));
}

TEST(PlanEntry, ShapesThatCannotBeAreAMiss) {
  const std::string body = encode({plan_key(), {}}).substr(48);
  const std::string front = body.substr(0, body.size() - 4) + std::string("\1\0\0\0", 4);
  EXPECT_TRUE(decode(seal_plan(front + shape_bytes(1))));
  for (std::size_t number = 0; number < 5; ++number) {
    std::string huge = shape_bytes(1);
    huge.replace(4 * number, 4, "\xFF\xFF\xFF\x7F");
    EXPECT_FALSE(decode(seal_plan(front + huge))) << number;
    std::string zero = shape_bytes(1);
    zero[4 * number] = 0;
    EXPECT_EQ(decode(seal_plan(front + zero)).has_value(), number == 4) << number;
  }
  EXPECT_TRUE(is_plan_shape({500, 1, 512, 7, 4096}));
  EXPECT_TRUE(is_plan_shape({1, 7, 4096, 336, 256}));
  EXPECT_FALSE(is_plan_shape({65536, 65536, 2, 1, 1}));  // each possible, all together not
}

TEST(PlanEntry, SayingSomethingTwiceIsAMiss) {
  const std::string body = encode({plan_key(), {}}).substr(48);
  const std::string front = body.substr(0, body.size() - 4) + std::string("\2\0\0\0", 4);
  EXPECT_TRUE(decode(seal_plan(front + shape_bytes(2))));
  EXPECT_FALSE(decode(seal_plan(front + shape_bytes(1) + shape_bytes(1))));
}

TEST(PlanEntry, StringsAreShortAndPrintable) {
  const auto with_model = [](const std::string& text) {
    std::string body("\0\0", 2);
    body.push_back(static_cast<char>(text.size() & 0xFF));
    body.push_back(static_cast<char>(text.size() >> 8));
    return decode(seal_plan(body + text + std::string(6 + 8, '\0')));
  };
  EXPECT_TRUE(with_model("model"));
  EXPECT_TRUE(with_model(std::string(kMaxPlanText, 'x')));
  EXPECT_FALSE(with_model(std::string(kMaxPlanText + 1, 'x')));
  EXPECT_FALSE(with_model("a\x1b[31m"));
  EXPECT_FALSE(with_model("a\nb"));
  EXPECT_FALSE(with_model("\xC3\xA9"));
}

TEST(PlanEntry, ForeignBytesAreAMiss) {
  for (const char* text : {"", "totoplan", "{\"a\": 1}",
                           "\x7f"
                           "ELF",
                           "toto", "\n"}) {
    EXPECT_EQ(decode(text), std::nullopt);
  }
  EXPECT_EQ(decode(std::string(100'000, '\0')), std::nullopt);
  EXPECT_EQ(decode(std::string(100'000, '\xFF')), std::nullopt);
}

// A file of an older or a newer format, and one whose numbers have the other byte order, each
// whole in itself: the checksum covers the head, so only the head is to blame.
TEST(PlanEntry, OtherFormatsAreAMiss) {
  const std::string bytes = encode({plan_key(), plan_entry(1)});
  for (const std::string& format :
       {std::string(4, '\0'), std::string("\2\0\0\0", 4), std::string("\0\0\0\1", 4)}) {
    std::string other = bytes;
    other.replace(8, 4, format);
    EXPECT_EQ(decode(other), std::nullopt);
  }
}

TEST(PlanEntry, WhatDoesNotFitIsNotWritten) {
  const auto code = [](const KeyedPlanEntry& entry) {
    return error_of([&] { (void)encode(entry); }).code();
  };
  EXPECT_EQ(code({plan_key(std::string(129, 'x')), {}}), "internal");
  EXPECT_EQ(code({plan_key("a\n"), {}}), "internal");
}

TEST(PlanEntry, TheLargestIsWithinTheLimit) {
  KeyedPlanEntry entry = {plan_key(std::string(kMaxPlanText, 'm')), {}};
  const std::string tag(kMaxPlanText, 't');
  for (std::uint32_t i = 0; i < kMaxKernelChoices; ++i) {
    entry.entry.choices.push_back({i, i, tag, i, i});
  }
  for (std::uint32_t i = 1; i <= kMaxPlanShapes; ++i) entry.entry.shapes.push_back({i, 1, 1, 1, 1});
  EXPECT_EQ(decode(encode(entry)), entry);
  // What is beyond the limits is left out, as are shapes that cannot be.
  KeyedPlanEntry more = entry;
  more.entry.choices.push_back({1, 0, tag, 0, 0});
  more.entry.shapes.insert(more.entry.shapes.begin(), PlanShape{});
  more.entry.shapes.push_back({99, 1, 1, 1, 1});
  EXPECT_EQ(decode(encode(more)), entry);
}

TEST(PlanEntry, MergeKeepsTheFirst) {
  PlanEntry first = plan_entry(1, 2);
  const PlanEntry second = plan_entry(2, 3);
  const PlanEntry merged = merge(first, second);
  ASSERT_EQ(merged.choices.size(), 3U);
  EXPECT_EQ(merged.choices[1].candidate, 1U);
  EXPECT_EQ(merged.choices[2].candidate, 2U);
  EXPECT_EQ(merged.shapes, first.shapes);
  EXPECT_EQ(merge({}, second), second);
}

TEST(PlanEntry, MergeStopsAtTheLimits) {
  PlanEntry full;
  PlanEntry more;
  for (std::uint32_t i = 1; i <= kMaxPlanShapes; ++i) {
    full.shapes.push_back({i, 1, 1, 1, 1});
    more.shapes.push_back({i, 2, 1, 1, 1});
  }
  full.shapes.pop_back();
  const PlanEntry merged = merge(full, more);
  ASSERT_EQ(merged.shapes.size(), kMaxPlanShapes);
  EXPECT_EQ(merged.shapes.back(), more.shapes.front());
}

}  // namespace
}  // namespace toto
