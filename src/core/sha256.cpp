// SPDX-License-Identifier: Apache-2.0
#include "core/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/sha256_constants.h"

namespace toto {
namespace {

std::uint32_t read_word(const std::byte* at) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | std::to_integer<std::uint32_t>(at[i]);
  return word;
}

template <typename Word>
void write_word(Word word, std::byte* at) {
  for (std::size_t i = 0; i < sizeof word; ++i) {
    at[i] = static_cast<std::byte>(word >> (8 * (sizeof word - 1 - i)) & 0xff);
  }
}

// The functions of FIPS 180-4, section 4.1.2.
std::uint32_t choose(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return (x & y) ^ (~x & z);
}
std::uint32_t majority(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return (x & y) ^ (x & z) ^ (y & z);
}
std::uint32_t big_sigma0(std::uint32_t x) {
  return std::rotr(x, 2) ^ std::rotr(x, 13) ^ std::rotr(x, 22);
}
std::uint32_t big_sigma1(std::uint32_t x) {
  return std::rotr(x, 6) ^ std::rotr(x, 11) ^ std::rotr(x, 25);
}
std::uint32_t small_sigma0(std::uint32_t x) { return std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3; }
std::uint32_t small_sigma1(std::uint32_t x) {
  return std::rotr(x, 17) ^ std::rotr(x, 19) ^ x >> 10;
}

}  // namespace

void sha256_portable(std::uint32_t* state, const std::byte* blocks, std::size_t count) {
  for (const std::byte* const end = blocks + 64 * count; blocks != end; blocks += 64) {
    std::array<std::uint32_t, 64> w;  // the message schedule
    for (std::size_t t = 0; t < 16; ++t) w[t] = read_word(blocks + 4 * t);
    for (std::size_t t = 16; t < 64; ++t) {
      w[t] = small_sigma1(w[t - 2]) + w[t - 7] + small_sigma0(w[t - 15]) + w[t - 16];
    }
    auto [a, b, c, d, e, f, g, h] = std::to_array(
        {state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]});
    for (std::size_t t = 0; t < 64; ++t) {
      const std::uint32_t t1 = h + big_sigma1(e) + choose(e, f, g) + kSha256Rounds[t] + w[t];
      const std::uint32_t t2 = big_sigma0(a) + majority(a, b, c);
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    const std::array add = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < add.size(); ++i) state[i] += add[i];
  }
}

Sha256::Sha256() {
  static const Compress best = sha256_x86() ? sha256_x86() : sha256_portable;
  compress_ = best;
}

void Sha256::update(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::size_t filled = bytes_ % kBlock;
  bytes_ += bytes.size();
  if (filled > 0) {
    const std::size_t some = std::min(bytes.size(), kBlock - filled);
    std::memcpy(pending_.data() + filled, bytes.data(), some);
    bytes = bytes.subspan(some);
    if (filled + some < kBlock) return;
    compress_(state_.data(), pending_.data(), 1);
  }
  const std::size_t whole = bytes.size() / kBlock;
  compress_(state_.data(), bytes.data(), whole);
  bytes = bytes.subspan(whole * kBlock);
  if (!bytes.empty()) std::memcpy(pending_.data(), bytes.data(), bytes.size());
}

Sha256::Digest Sha256::digest() {
  // A bit that is set, zeros, and the length in bits: they end a block (section 5.1.1).
  const std::uint64_t bits = bytes_ * 8;
  const std::size_t filled = bytes_ % kBlock;
  std::array<std::byte, 2 * kBlock> tail{};
  const std::size_t length = (filled < 56 ? kBlock : 2 * kBlock) - filled;
  tail[0] = std::byte{0x80};
  write_word(bits, tail.data() + length - sizeof bits);
  update(std::span(tail).first(length));

  Digest digest;
  for (std::size_t i = 0; i < state_.size(); ++i) write_word(state_[i], digest.data() + 4 * i);
  return digest;
}

std::string Sha256::hex() {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * sizeof(Digest));
  for (const std::byte byte : digest()) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

}  // namespace toto
