// SPDX-License-Identifier: Apache-2.0
// Comparing a backend with the reference backend in float64 on made-up inputs: shared by the tests
// and by the fuzz target. What is made up comes from a Dice, so bytes of a fuzzer can choose it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/batch_image.h"

namespace toto::differential {

inline constexpr double kUlp = 0x1p-24;  // relative error of one rounding to float32

/// What a backend rounds the operands of its products to.
enum class Rounds { nothing, to_bf16, to_tf32, weights_to_int8 };

struct Subject {
  Backend& backend;
  Backend& exact;   // the reference in float64
  Backend& single;  // the reference in float32: for what must agree in every bit
  Rounds rounds = Rounds::nothing;
};

/// Choices: from the bytes of a fuzzer while they last, then from a generator.
class Dice {
 public:
  explicit Dice(std::uint64_t seed, std::span<const std::uint8_t> bytes = {})
      : state_(seed), bytes_(bytes) {}

  /// lo .. hi, both included.
  std::int32_t integer(std::int32_t lo, std::int32_t hi) {
    const auto count = static_cast<std::uint32_t>(hi - lo) + 1;
    std::uint32_t word = 0;
    if (bytes_.size() >= 2) {
      word = bytes_[0] + 256U * bytes_[1];
      bytes_ = bytes_.subspan(2);
    } else {
      word = random();
    }
    return lo + static_cast<std::int32_t>(word % count);
  }
  bool coin() { return integer(0, 1) == 1; }

  /// Values of one tensor: -scale .. scale, with a few zeros, ones and large ones among them.
  std::vector<float> values(std::size_t count, float scale) {
    std::vector<float> v(count);
    for (float& x : v) {
      const std::uint32_t word = random();
      x = scale * (static_cast<float>(word) * 0x1p-31F - 1.0F);
      if (word % 61 == 0) x = 0;
      if (word % 67 == 0) x = scale;
      if (word % 71 == 0) x *= 8;
    }
    return v;
  }

 private:
  std::uint32_t random() {  // splitmix64
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return static_cast<std::uint32_t>((z ^ z >> 31) >> 32);
  }
  std::uint64_t state_;
  std::span<const std::uint8_t> bytes_;
};

/// Memory of a backend.
class Memory {
 public:
  Memory(Backend& backend, std::size_t count)
      : backend_(backend), count_(count), at_(backend.allocate(count * backend.element_size())) {}
  Memory(Backend& backend, const std::vector<float>& values) : Memory(backend, values.size()) {
    backend.upload(std::span<const float>(values), of(static_cast<std::int64_t>(count_)));
  }
  ~Memory() { backend_.release(at_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// [..][width]
  [[nodiscard]] View of(std::int64_t width) const {
    const auto rows = static_cast<std::int64_t>(count_) / width;
    return {at_, backend_.element_type(), static_cast<std::int32_t>(width),
            static_cast<std::int32_t>(rows)};
  }
  [[nodiscard]] std::vector<double> read() const {
    std::vector<double> values(count_);
    backend_.download(of(static_cast<std::int64_t>(count_)), values);
    return values;
  }

 private:
  Backend& backend_;
  std::size_t count_;
  void* at_;
};

/// Bytes in the memory of a backend.
class Bytes {
 public:
  Bytes(Backend& backend, const void* from, std::size_t count)
      : backend_(backend), count_(count), at_(static_cast<std::uint8_t*>(backend.allocate(count))) {
    backend.upload_bytes({static_cast<const std::uint8_t*>(from), count}, at_);
  }
  ~Bytes() { backend_.release(at_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  [[nodiscard]] std::uint8_t* at() const { return at_; }
  void read(void* to) const {
    backend_.download_bytes(at_, {static_cast<std::uint8_t*>(to), count_});
  }

 private:
  Backend& backend_;
  std::size_t count_;
  std::uint8_t* at_;
};

/// A ragged batch as the forward pass makes them.
struct MadeBatch {
  std::vector<Block> blocks;
  std::vector<std::int32_t> ids;
  std::int32_t positions = 0;  // rotary tables that are needed
  std::int64_t kv = 0;         // elements of a KvLayer
  Batch batch;
};

inline void finish(MadeBatch& made) {
  made.batch.blocks = made.blocks.data();
  made.batch.ids = made.ids.data();
  made.batch.count = static_cast<std::int32_t>(made.blocks.size());
}

/// A batch where the operations of a backend read it: device batches lie in a staging buffer.
class On {
 public:
  On(Backend& be, const Batch& batch) : backend_(be), batch_(batch) {
    if (!be.reads_device_batches()) return;
    const BatchLayout layout(batch.count, ids_of(batch));
    staging_ = be.allocate_staging(layout.bytes);
    write_image(batch, layout, staging_.host, staging_.device);
    be.copy_in(staging_, 0, layout.bytes);
    batch_.live = reinterpret_cast<const LiveBatch*>(staging_.device);
    batch_.variates = batch.lanes;
  }
  ~On() {
    if (staging_.host == nullptr) return;
    backend_.synchronise();
    backend_.release_staging(staging_);
  }
  On(const On&) = delete;
  On& operator=(const On&) = delete;
  // NOLINTNEXTLINE(google-explicit-constructor): it is that batch
  operator const Batch&() const { return batch_; }
  [[nodiscard]] const Batch* get() const { return &batch_; }

 private:
  Backend& backend_;
  Batch batch_;
  Staging staging_;
};

inline void add_block(MadeBatch& made, Block b, std::int32_t heads, std::int32_t d, Dice& dice) {
  b.row = made.batch.rows;
  b.lane = made.batch.lanes;
  b.ids = static_cast<std::int32_t>(made.ids.size());
  for (std::int32_t i = 0; i < b.variates * b.tokens; ++i) made.ids.push_back(dice.integer(0, 2));
  b.position = b.prefix + b.suffix;
  b.suffix_capacity = b.suffix + b.tokens + dice.integer(0, 3);
  b.centre = (b.position + b.tokens - 1) / 2;
  made.positions = std::max(made.positions, b.position + b.tokens);
  b.prefix_at = made.kv;
  made.kv += std::int64_t{b.variates} * heads * b.prefix * d;
  b.suffix_at = made.kv;
  made.kv += std::int64_t{b.lanes()} * heads * b.suffix_capacity * d;
  b.key = static_cast<std::uint64_t>(dice.integer(0, 65535)) << 20;
  b.first_sample = dice.integer(0, 1000);
  b.first_step = dice.integer(0, 500);
  made.batch.rows += b.rows();
  made.batch.lanes += b.lanes();
  made.blocks.push_back(b);
}

inline MadeBatch make_batch(Dice& dice, std::int32_t heads, std::int32_t d) {
  MadeBatch made;
  const std::int32_t count = dice.integer(1, 4);
  for (std::int32_t i = 0; i < count; ++i) {
    Block b;
    const bool decoding = dice.coin();
    const bool large = dice.integer(0, 3) == 0;
    b.trajectories = decoding ? dice.integer(1, large ? 130 : 5) : dice.integer(1, 2);
    b.variates = dice.integer(1, large ? 2 : 4);
    b.tokens = decoding ? 1 : dice.integer(1, large ? 70 : 9);
    b.prefix = decoding ? dice.integer(0, large ? 110 : 20) : 0;
    b.suffix = dice.integer(0, decoding && !large ? 60 : 3);
    b.labels = dice.integer(0, 1);
    b.exogenous = dice.integer(0, b.variates - 1);
    b.context = b.tokens - b.labels;
    add_block(made, b, heads, d, dice);
  }
  finish(made);
  return made;
}

/// Empty if every |got - expected| <= bound (infinities and NaN must be the same), else the first
/// that is not.
inline std::string compare(std::string_view what, std::span<const double> got,
                           std::span<const double> expected, std::span<const double> bound) {
  if (got.size() != expected.size() || got.size() != bound.size()) return "sizes differ";
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i] || std::abs(got[i] - expected[i]) <= bound[i]) continue;
    if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
    return std::string(what) + "[" + std::to_string(i) + "] of " + std::to_string(got.size()) +
           ": expected " + std::to_string(expected[i]) + ", found " + std::to_string(got[i]) +
           ", off by " + std::to_string(std::abs(got[i] - expected[i]) / bound[i]) +
           " times the bound";
  }
  return {};
}

inline std::string compare_bits(std::string_view what, std::span<const double> got,
                                std::span<const double> expected) {
  const std::vector<double> exact(got.size(), 0.0);
  return compare(what, got, expected, exact);
}

/// Eleven bits, nearest with ties away from zero: what tf32 products look at.
inline float to_tf32_value(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x1000U) & 0xFFFFE000U;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

/// Nearest even, in plain arithmetic: half of what bfloat16 means to the backend.
inline float to_bf16_value(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  bits += 0x7FFFU + (bits >> 16 & 1U);
  bits &= 0xFFFF0000U;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

/// Whole numbers from -127 to 127 times the largest magnitude over 127, which float32 holds; in
/// plain arithmetic.
inline void to_int8_values(std::span<float> row) {
  double largest = 0;
  for (const float w : row) largest = std::max(largest, std::abs(static_cast<double>(w)));
  const auto scale = static_cast<float>(largest / 127);
  if (scale == 0) return;
  for (float& w : row) {
    w = static_cast<float>(std::rint(static_cast<double>(w) / scale) * scale);
  }
}

}  // namespace toto::differential
