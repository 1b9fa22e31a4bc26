// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/prediction_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>

#include "core/atomic_file.h"
#include "core/input_file.h"
#include "core/sha256.h"
#include "toto/error.hpp"

namespace toto::backtest {
namespace {

namespace fs = std::filesystem;

// A segment: the magic, then entries of key, checksum, number of floats and floats, as they lie in
// memory. All numbers are little-endian, as on every machine this runs on.
constexpr std::string_view kMagic = "totopred0001";
constexpr std::size_t kKey = 64;
constexpr std::size_t kChecksum = 32;
constexpr std::size_t kHead = kKey + kChecksum + 4;
constexpr std::string_view kPrefix = "predictions-";
constexpr std::string_view kTag = "toto-predictions";
constexpr std::uint64_t kMaxSegmentBytes = std::uint64_t{1} << 31;
constexpr std::int64_t kStaleSeconds = 600;  // a write takes milliseconds

std::string_view bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

std::string checksum_of(std::string_view key, std::string_view body) {
  Sha256 hash;
  hash.update(key);
  hash.update(body);
  return hash.hex().substr(0, kChecksum);
}

bool is_key(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<std::string> read_bytes(const fs::path& path) {
  try {
    const InputFile file(path.string());
    if (file.size() > kMaxSegmentBytes) return std::nullopt;
    std::string bytes(file.size(), '\0');
    file.read(0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// What a writer that was killed left behind.
void remove_if_stale(const fs::path& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (status.st_mtime < std::time(nullptr) - kStaleSeconds) ::unlink(path.c_str());
}

}  // namespace

std::string encode_segment(std::span<const CachedPrediction> entries) {
  std::string out(kMagic);
  for (const CachedPrediction& entry : entries) {
    const std::string_view body = bytes_of(entry.values);
    const auto count = static_cast<std::uint32_t>(entry.values.size());
    char size[4];
    std::memcpy(size, &count, sizeof(size));
    out.append(entry.key).append(checksum_of(entry.key, body)).append(size, 4).append(body);
  }
  return out;
}

DecodedSegment decode_segment(std::string_view bytes) {
  DecodedSegment out;
  if (!bytes.starts_with(kMagic)) {
    out.damaged = 1;
    return out;
  }
  bytes.remove_prefix(kMagic.size());
  while (!bytes.empty()) {
    std::uint32_t count = 0;
    if (bytes.size() >= kHead) std::memcpy(&count, bytes.data() + kKey + kChecksum, 4);
    const bool fits = bytes.size() >= kHead && count <= kMaxCachedFloats &&
                      bytes.size() - kHead >= std::size_t{count} * sizeof(float);
    if (!fits) {
      ++out.damaged;
      return out;
    }
    const std::string_view key = bytes.substr(0, kKey);
    const std::string_view body = bytes.substr(kHead, std::size_t{count} * sizeof(float));
    CachedPrediction entry{std::string(key), std::vector<float>(count)};
    if (count > 0) std::memcpy(entry.values.data(), body.data(), body.size());
    const bool whole = is_key(key) && bytes.substr(kKey, kChecksum) == checksum_of(key, body) &&
                       std::ranges::all_of(entry.values, [](float x) { return std::isfinite(x); });
    if (whole) {
      out.entries.push_back(std::move(entry));
    } else {
      ++out.damaged;
    }
    bytes.remove_prefix(kHead + body.size());
  }
  return out;
}

PredictionCache::PredictionCache(std::string folder, Warn warn)
    : folder_(std::move(folder)), warn_(std::move(warn)) {
  if (folder_.empty()) return;
  std::vector<fs::path> segments;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(".bin")) segments.push_back(at->path());
    if (name.starts_with("." + std::string(kTag) + "-")) remove_if_stale(at->path());
  }
  std::ranges::sort(segments);
  for (const fs::path& path : segments) {
    const auto bytes = read_bytes(path);
    DecodedSegment segment = decode_segment(bytes ? *bytes : std::string());
    damaged_ += segment.damaged;
    for (CachedPrediction& entry : segment.entries) {
      entries_.insert_or_assign(std::move(entry.key), std::move(entry.values));
    }
  }
}

std::span<const float> PredictionCache::find(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::span<const float>() : std::span(found->second);
}

void PredictionCache::add(std::vector<CachedPrediction> entries) {
  if (folder_.empty() || entries.empty()) return;
  const std::string bytes = encode_segment(entries);
  Sha256 hash;
  hash.update(bytes);
  try {
    std::error_code error;
    fs::create_directories(folder_, error);
    std::string path = folder_;
    path.append("/").append(kPrefix).append(hash.hex().substr(0, 32)).append(".bin");
    AtomicFile file(path, kTag);
    file.write(bytes);
    file.commit();
  } catch (const Error& error) {
    if (error.status() != ExitStatus::io) throw;
    if (warn_) warn_(fmt::format("predictions were not kept: {}", error.what()));
    folder_.clear();  // once is enough
  }
}

}  // namespace toto::backtest
