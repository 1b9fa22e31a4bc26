// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011): random numbers that are addressed, not consumed.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#ifdef __CUDACC__
#define TOTO_HOST_DEVICE __host__ __device__
#else
#define TOTO_HOST_DEVICE
#endif

namespace toto {

struct PhiloxWords {
  std::uint32_t x[4];
};

/// One block of four random words for a 128-bit counter and a 64-bit key.
TOTO_HOST_DEVICE constexpr PhiloxWords philox4x32_10(PhiloxWords counter, std::uint64_t key) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  PhiloxWords c = counter;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c.x[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c.x[2];
    c = PhiloxWords{
        {static_cast<std::uint32_t>(p1 >> 32) ^ c.x[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c.x[3] ^ k1, static_cast<std::uint32_t>(p0)}};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

/// Where a draw lives. `series` is the low 48 bits of series_key(); variates are below 2^16.
struct DrawAddress {
  std::uint64_t series = 0;
  std::uint32_t variate = 0;
  std::uint32_t sample = 0;
  std::uint32_t step = 0;
};

TOTO_HOST_DEVICE constexpr PhiloxWords draw_words(std::uint64_t seed, const DrawAddress& at) {
  return philox4x32_10(PhiloxWords{{static_cast<std::uint32_t>(at.series),
                                    (static_cast<std::uint32_t>(at.series >> 32) & 0xFFFFU) << 16 |
                                        (at.variate & 0xFFFFU),
                                    at.sample, at.step}},
                       seed);
}

/// FNV-1a (64 bits) of the id the user sees, folded to 48 bits: the same wherever the series
/// stands.
constexpr std::uint64_t series_key(std::string_view id) {
  std::uint64_t h = 0xCBF29CE484222325U;
  for (const char c : id) {
    h ^= static_cast<std::uint8_t>(c);
    h *= 0x100000001B3U;
  }
  return (h >> 48 ^ h) & 0xFFFFFFFFFFFFU;
}

}  // namespace toto
