// SPDX-License-Identifier: Apache-2.0
// Predictions on disk: a folder of segments, each written once and whole. What a run that was
// interrupted has made is found there by the next one.
//
// An entry has a checksum of its own: a damaged one is a miss, and so is what follows it where the
// damage hides how long it is. Any number of processes may use one folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace toto::backtest {

inline constexpr std::size_t kMaxCachedFloats = std::size_t{1} << 24;  // of one entry

struct CachedPrediction {
  std::string key;            // 64 hexadecimal digits
  std::vector<float> values;  // at most kMaxCachedFloats, all finite
};

/// The bytes of a segment.
std::string encode_segment(std::span<const CachedPrediction> entries);

struct DecodedSegment {
  std::vector<CachedPrediction> entries;
  std::size_t damaged = 0;  // entries that were not usable, at least
};
DecodedSegment decode_segment(std::string_view bytes);
/// The same, without the whole of it in memory.
DecodedSegment read_segment(const std::string& path);

class PredictionCache {
 public:
  using Warn = std::function<void(std::string_view)>;

  /// Reads what the folder has; it is made when the first segment is written. An empty name: no
  /// cache. What goes wrong is told to `warn` and costs time, nothing else. A folder or a segment
  /// that other users may write to is not used: a checksum tells damage, not who wrote the bytes.
  PredictionCache(std::string folder, Warn warn);

  /// Empty: a miss. Valid until the next add().
  [[nodiscard]] std::span<const float> find(const std::string& key) const;
  /// Writes the entries as one segment, whole or not at all.
  void add(std::vector<CachedPrediction> entries);
  [[nodiscard]] std::size_t damaged() const { return damaged_; }

 private:
  std::string folder_;
  Warn warn_;
  std::unordered_map<std::string, std::vector<float>> entries_;
  std::size_t damaged_ = 0;
};

}  // namespace toto::backtest
