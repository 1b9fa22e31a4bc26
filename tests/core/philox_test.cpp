// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 against its authors' known answers, and the layout of a draw's address.
#include "core/philox.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace toto {
namespace {

struct KnownAnswer {
  PhiloxWords counter;
  std::uint64_t key;
  PhiloxWords words;
};

// Random123 1.14.0, tests/kat_vectors, lines "philox4x32 10".
TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  const KnownAnswer answers[] = {
      {{{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       0xffffffffffffffff,
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0x299f31d0a4093822,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const KnownAnswer& answer : answers) {
    const PhiloxWords words = philox4x32_10(answer.counter, answer.key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(words.x[i], answer.words.x[i]) << i;
  }
}

TEST(Philox, AddressFillsTheCounterAsDocumented) {
  const DrawAddress at{0xABCD12345678U, 0xFEDC, 0x11223344, 0x55667788};
  const PhiloxWords expected =
      philox4x32_10(PhiloxWords{{0x12345678, 0xABCDFEDC, 0x11223344, 0x55667788}}, 42);
  const PhiloxWords words = draw_words(42, at);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(words.x[i], expected.x[i]) << i;
}

TEST(Philox, EveryPartOfTheAddressAndTheSeedMatters) {
  std::set<std::vector<std::uint32_t>> seen;
  const auto add = [&](std::uint64_t seed, const DrawAddress& at) {
    const PhiloxWords w = draw_words(seed, at);
    seen.insert({w.x[0], w.x[1], w.x[2], w.x[3]});
  };
  add(7, {});
  int count = 1;
  for (int bit = 0; bit < 64; ++bit, ++count) add(7 ^ std::uint64_t{1} << bit, {});
  for (int bit = 0; bit < 48; ++bit, ++count) add(7, {.series = std::uint64_t{1} << bit});
  for (int bit = 0; bit < 16; ++bit, ++count) add(7, {.variate = std::uint32_t{1} << bit});
  for (int bit = 0; bit < 32; ++bit, ++count) add(7, {.sample = std::uint32_t{1} << bit});
  for (int bit = 0; bit < 32; ++bit, ++count) add(7, {.step = std::uint32_t{1} << bit});
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(count));
}

// FNV-1a: 0xCBF29CE484222325 for "", 0xAF63DC4C8601EC8C for "a", 0x85944171F73967E8 for "foobar"
// (the authors' published vectors), folded as h ^ h >> 48.
TEST(Philox, SeriesKeyIsFoldedFnv1a) {
  EXPECT_EQ(series_key(""), 0x9CE484222325U ^ 0xCBF2U);
  EXPECT_EQ(series_key("a"), 0xDC4C8601EC8CU ^ 0xAF63U);
  EXPECT_EQ(series_key("foobar"), 0x4171F73967E8U ^ 0x8594U);
  static_assert(series_key("AAPL") != series_key("AAPM"));
}

TEST(Philox, SeriesKeysOfManyIdsDiffer) {
  std::set<std::uint64_t> keys;
  for (int i = 0; i < 100000; ++i) keys.insert(series_key("series-" + std::to_string(i)));
  EXPECT_EQ(keys.size(), 100000U);
  EXPECT_LT(*keys.rbegin(), std::uint64_t{1} << 48);
}

}  // namespace
}  // namespace toto
