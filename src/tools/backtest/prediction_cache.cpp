// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/prediction_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <new>

#include "core/atomic_file.h"
#include "core/input_file.h"
#include "core/sha256.h"
#include "core/trusted_folder.h"
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

/// Entries one by one from `read(offset, bytes)`, of `size` bytes in all.
template <typename Read>
DecodedSegment decode(std::uint64_t size, const Read& read) {
  DecodedSegment out;
  std::array<char, kHead> head;
  if (size < kMagic.size()) {
    out.damaged = 1;
    return out;
  }
  read(0, std::span(head).first(kMagic.size()));
  if (!std::string_view(head.data(), head.size()).starts_with(kMagic)) {
    out.damaged = 1;
    return out;
  }
  for (std::uint64_t at = kMagic.size(); at < size;) {
    std::uint32_t count = 0;
    const bool has_head = size - at >= kHead;
    if (has_head) {
      read(at, std::span(head));
      std::memcpy(&count, head.data() + kKey + kChecksum, 4);
    }
    const std::uint64_t bytes = std::uint64_t{count} * sizeof(float);
    if (!has_head || count > kMaxCachedFloats || size - at - kHead < bytes) {
      ++out.damaged;
      return out;
    }
    const std::string_view text(head.data(), head.size());
    CachedPrediction entry{std::string(text.substr(0, kKey)), std::vector<float>(count)};
    read(at + kHead, std::span(reinterpret_cast<char*>(entry.values.data()), bytes));
    const bool whole =
        is_key(entry.key) &&
        text.substr(kKey, kChecksum) == checksum_of(entry.key, bytes_of(entry.values)) &&
        std::ranges::all_of(entry.values, [](float x) { return std::isfinite(x); });
    if (whole) {
      out.entries.push_back(std::move(entry));
    } else {
      ++out.damaged;
    }
    at += kHead + bytes;
  }
  return out;
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
  return decode(bytes.size(), [&](std::uint64_t at, std::span<char> out) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + at, out.size());
  });
}

DecodedSegment read_segment(const std::string& path) {
  DecodedSegment damaged;
  damaged.damaged = 1;
  try {
    const InputFile file(path);
    return decode(file.size(), [&](std::uint64_t at, std::span<char> out) {
      file.read(at, std::as_writable_bytes(out));
    });
  } catch (const Error&) {
    return damaged;
  } catch (const std::bad_alloc&) {  // a miss costs time, and this is the only thing it may cost
    return damaged;
  }
}

PredictionCache::PredictionCache(std::string folder, Warn warn)
    : folder_(std::move(folder)), warn_(std::move(warn)) {
  if (folder_.empty()) return;
  if (const std::string problem = folder_problem(folder_, true); !problem.empty()) {
    if (warn_) warn_(fmt::format("predictions are not kept in {}: {}", folder_, problem));
    folder_.clear();
    return;
  }
  std::vector<fs::path> segments;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(".bin")) segments.push_back(at->path());
    if (name.starts_with("." + std::string(kTag) + "-")) remove_if_stale(at->path());
  }
  std::ranges::sort(segments);
  for (const fs::path& path : segments) {
    if (!is_own_file(path.string())) {
      ++damaged_;
      continue;
    }
    DecodedSegment segment = read_segment(path.string());
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
