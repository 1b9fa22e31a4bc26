// SPDX-License-Identifier: Apache-2.0
// SHA-256 against published digests, with each code that this processor can run.
#include "core/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace toto {
namespace {

struct Code {
  const char* name;
  Sha256::Compress compress;
};

std::vector<Code> codes() {
  std::vector<Code> all = {{"portable", sha256_portable}};
  if (const auto x86 = sha256_x86()) all.push_back({"x86", x86});
  return all;
}

std::string hash(Sha256::Compress compress, std::string_view text) {
  Sha256 sha(compress);
  sha.update(text);
  return sha.hex();
}

struct Example {
  std::string message, digest;
};

// NIST: FIPS 180-2, appendix B, and the additional examples of the Cryptographic Standards
// programme, which end on each side of a padding block.
std::vector<Example> examples() {
  return {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmn"
       "op"
       "qrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {"\xbd", "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b"},
      {std::string("\xc9\x8c\x8e\x55"),
       "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504"},
      {std::string(55, '\0'), "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"},
      {std::string(56, '\0'), "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb"},
      {std::string(57, '\0'), "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785"},
      {std::string(64, '\0'), "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"},
      {std::string(1000, '\0'), "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53"},
      {std::string(1000, 'A'), "c2e686823489ced2017f6059b8b239318b6364f6dcd835d0a519105a1eadd6e4"},
      {std::string(1005, 'U'), "f4d62ddec0f3dd90ea1380fa16a5ff8dc4c54b21740650f24afc4120903552b0"},
      {std::string(1'000'000, '\0'),
       "d29751f2649b32ff572b5e0a9f541ea660a50f94ff0beedfb0b692b924cc8025"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
}

TEST(Sha256, PublishedExamples) {
  for (const Code& code : codes()) {
    for (const Example& example : examples()) {
      EXPECT_EQ(hash(code.compress, example.message), example.digest)
          << code.name << ", " << example.message.size() << " bytes";
    }
  }
}

TEST(Sha256, PiecesOfAnyLengthGiveTheSame) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 1000, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string whole = hash(sha256_portable, text);
    for (const Code& code : codes()) {
      EXPECT_EQ(hash(code.compress, text), whole) << code.name;
      Sha256 pieces(code.compress);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t some = std::min<std::size_t>(random() % 200, text.size() - at);
        pieces.update(std::string_view(text).substr(at, some));
        at += some;
      }
      EXPECT_EQ(pieces.hex(), whole) << code.name << ", " << text.size() << " bytes in pieces";
    }
  }
}

TEST(Sha256, TheFastestCodeIsTheDefault) {
  Sha256 sha;
  sha.update("abc");
  EXPECT_EQ(sha.hex(), hash(codes().back().compress, "abc"));
}

// The digest of the digests of messages of 0 to 1000 bytes; the value is Python's hashlib's.
TEST(Sha256, EveryLength) {
  for (const Code& code : codes()) {
    Sha256 all(code.compress);
    for (std::size_t length = 0; length <= 1000; ++length) {
      std::string text(length, '\0');
      for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<char>((7 * i + length) % 256);
      Sha256 one(code.compress);
      one.update(text);
      all.update(one.digest());
    }
    EXPECT_EQ(all.hex(), "bc2788cf303b31d72f87b0559a1d0cf08cff14a58a5b8e1f0909e49c0b9fdea7")
        << code.name;
  }
}

// The length is counted in bits, in 64 of them: 5 GB are more than 32 bits of either.
TEST(Sha256, TheLengthOfFiveGigabytesEndsTheMessage) {
  static std::array<std::byte, 64> last;
  Sha256 sha([](std::uint32_t*, const std::byte* blocks, std::size_t count) {
    if (count > 0) std::memcpy(last.data(), blocks + 64 * (count - 1), 64);
  });
  const std::string million(1'000'000, 'x');
  for (int i = 0; i < 5000; ++i) sha.update(million);
  (void)sha.digest();
  std::uint64_t bits = 0;
  for (std::size_t i = 56; i < 64; ++i) bits = bits << 8 | std::to_integer<std::uint64_t>(last[i]);
  EXPECT_EQ(bits, 40'000'000'000U);
}

// Nothing to free, so nothing was allocated.
static_assert(std::is_trivially_destructible_v<Sha256> && std::is_trivially_copyable_v<Sha256>);

}  // namespace
}  // namespace toto
