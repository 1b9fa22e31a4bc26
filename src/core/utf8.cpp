// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.h"

namespace toto {
namespace {

/// Bytes of the sequence that starts with a lead byte, and the range its second byte must lie in.
/// Length 0: no sequence starts so.
struct Sequence {
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Sequence sequence_of(unsigned char lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xC2) return {};
  if (lead < 0xE0) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Sequence sequence = sequence_of(static_cast<unsigned char>(text[at]));
    if (sequence.length == 0 || sequence.length > text.size() - at) return at;
    for (std::size_t i = 1; i < sequence.length; ++i) {
      const auto byte = static_cast<unsigned char>(text[at + i]);
      const bool second = i == 1;
      if (byte < (second ? sequence.low : 0x80) || byte > (second ? sequence.high : 0xBF)) {
        return at;
      }
    }
    at += sequence.length;
  }
  return std::string_view::npos;
}

}  // namespace toto
