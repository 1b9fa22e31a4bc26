// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace toto {

/// Hashes bytes that come in pieces of any length. Allocates nothing, except for the text of hex().
class Sha256 {
 public:
  /// Adds `count` blocks of 64 bytes to the eight words of the state.
  using Compress = void (*)(std::uint32_t* state, const std::byte* blocks, std::size_t count);
  using Digest = std::array<std::byte, 32>;

  /// With the fastest code for this processor.
  Sha256();
  /// With this code: for tests.
  explicit Sha256(Compress compress) : compress_(compress) {}

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  /// Ends the message. Nothing may be added afterwards.
  [[nodiscard]] Digest digest();
  /// The digest as 64 hexadecimal digits.
  [[nodiscard]] std::string hex();

 private:
  static constexpr std::size_t kBlock = 64;

  Compress compress_;
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> pending_{};  // the block that is not yet full
  std::uint64_t bytes_ = 0;                  // of the whole message so far
};

/// Plain C++.
void sha256_portable(std::uint32_t* state, const std::byte* blocks, std::size_t count);
/// With the SHA instructions of x86. Null where the processor has none.
Sha256::Compress sha256_x86();

}  // namespace toto
