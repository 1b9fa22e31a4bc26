// SPDX-License-Identifier: Apache-2.0
// Predictions on disk: what is damaged is a miss, and costs no other entry more than it must.
#include <sys/stat.h>

#include <cmath>

#include "market_file.h"
#include "tools/backtest/prediction_cache.h"

namespace toto::backtest {
namespace {

std::string key(char digit) { return std::string(64, digit); }

std::vector<CachedPrediction> three() {
  return {{key('a'), {1, 2, 3}}, {key('b'), {}}, {key('c'), {-4.5F}}};
}

std::size_t valid(const DecodedSegment& segment) {
  std::size_t count = 0;
  for (const CachedPrediction& entry : segment.entries) {
    for (const CachedPrediction& known : three()) {
      count += entry.key == known.key && entry.values == known.values ? 1 : 0;
    }
  }
  return count;
}

TEST(PredictionSegment, ComesBackAsItWas) {
  const DecodedSegment segment = decode_segment(encode_segment(three()));
  EXPECT_EQ(valid(segment), 3U);
  EXPECT_EQ(segment.damaged, 0U);
}

TEST(PredictionSegment, EveryTruncationLosesOnlyWhatIsCutOff) {
  const std::string whole = encode_segment(three());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const DecodedSegment segment = decode_segment(whole.substr(0, size));
    EXPECT_EQ(segment.entries.size(), valid(segment)) << size;
    EXPECT_LT(segment.entries.size(), 3U) << size;
  }
}

TEST(PredictionSegment, NoBitFlipPassesForData) {
  const std::string whole = encode_segment(three());
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const DecodedSegment segment = decode_segment(bytes);
    EXPECT_EQ(segment.entries.size(), valid(segment)) << bit;
    EXPECT_LT(segment.entries.size(), 3U) << bit;
    EXPECT_GT(segment.damaged, 0U) << bit;
  }
}

TEST(PredictionSegment, ValuesThatAreNotFiniteAreMisses) {
  const std::vector<CachedPrediction> odd = {{key('a'), {NAN}}, {key('b'), {INFINITY}}};
  const DecodedSegment segment = decode_segment(encode_segment(odd));
  EXPECT_TRUE(segment.entries.empty());
  EXPECT_EQ(segment.damaged, 2U);
}

class Cache : public test::InFolder {};

TEST_F(Cache, FindsWhatAnEarlierOneAdded) {
  {
    PredictionCache cache(path("cache"), {});
    EXPECT_TRUE(cache.find(key('a')).empty());
    cache.add(three());
    cache.add({{key('d'), {7}}});
  }
  PredictionCache cache(path("cache"), {});
  EXPECT_EQ(cache.find(key('a')).size(), 3U);
  ASSERT_EQ(cache.find(key('d')).size(), 1U);
  EXPECT_EQ(cache.find(key('d'))[0], 7);
  EXPECT_TRUE(cache.find(key('e')).empty());
  EXPECT_EQ(cache.damaged(), 0U);
}

TEST_F(Cache, ForeignAndEmptyFilesAreMisses) {
  write("cache/predictions-0123456789abcdef0123456789abcdef.bin", "");
  write("cache/predictions-1123456789abcdef0123456789abcdef.bin", "something else");
  write("cache/notes.txt", "not ours");
  const PredictionCache cache(path("cache"), {});
  EXPECT_EQ(cache.damaged(), 2U);
  EXPECT_TRUE(std::filesystem::exists(path("cache/notes.txt")));
}

TEST_F(Cache, AFolderThatCannotBeUsedIsToldOnce) {
  write("file", "in the way");
  int told = 0;
  PredictionCache cache(path("file"), [&](std::string_view) { ++told; });
  cache.add(three());
  cache.add(three());
  EXPECT_EQ(told, 1);
}

// A checksum tells damage, not who wrote the bytes.
TEST_F(Cache, WhatOthersMayWriteIsNotBelieved) {
  { PredictionCache(path("cache"), {}).add(three()); }
  std::string segment;
  for (const auto& entry : std::filesystem::directory_iterator(path("cache"))) {
    segment = entry.path().string();
  }
  ASSERT_EQ(::chmod(segment.c_str(), 0666), 0);
  {
    const PredictionCache cache(path("cache"), {});
    EXPECT_TRUE(cache.find(key('a')).empty());
    EXPECT_EQ(cache.damaged(), 1U);
  }
  ASSERT_EQ(::chmod(segment.c_str(), 0644), 0);
  ASSERT_EQ(::chmod(path("cache").c_str(), 0777), 0);
  std::string told;
  PredictionCache cache(path("cache"), [&](std::string_view text) { told = text; });
  EXPECT_TRUE(cache.find(key('a')).empty());
  EXPECT_NE(told.find("anybody may write to it"), std::string::npos) << told;
  cache.add({{key('d'), {7}}});
  ASSERT_EQ(::chmod(path("cache").c_str(), 0755), 0);
  const PredictionCache again(path("cache"), {});
  EXPECT_EQ(again.find(key('a')).size(), 3U);
  EXPECT_TRUE(again.find(key('d')).empty());
}

TEST_F(Cache, WithoutAFolderNothingIsKept) {
  PredictionCache cache("", {});
  cache.add(three());
  EXPECT_TRUE(cache.find(key('a')).empty());
}

}  // namespace
}  // namespace toto::backtest
