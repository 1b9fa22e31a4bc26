// SPDX-License-Identifier: Apache-2.0
// Any bytes as a compressed body, a timestamp, a frequency, a header, a path: what is taken can be
// used, and a body is never larger than its limit.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/compress.h"
#include "server/decoder.h"
#include "server/http.h"
#include "server/time_axis.h"
#include "toto/error.hpp"

namespace {

using namespace toto;
using namespace toto::server;

void require(bool holds) {
  if (!holds) std::abort();
}

/// What it is when it comes in pieces. More than decode_body allows is left.
std::string in_pieces(std::string_view encoding, std::string_view text) {
  Decoder decoder(encoding);
  std::string body;
  for (std::size_t at = 0; at < text.size(); at += 7) {
    decoder.give(std::string(text.substr(at, 7)));
    for (std::string piece = decoder.next(); !piece.empty(); piece = decoder.next()) body += piece;
  }
  require(decoder.whole());
  return body;
}

void use_body(std::string_view encoding, std::string_view text) {
  constexpr std::size_t kLimit = 1 << 16;
  try {
    const std::string body = decode_body(text, encoding, kLimit);
    require(body.size() <= kLimit);
    require(decode_body(gzip(body), "gzip", kLimit) == body);
    require(text.empty() || in_pieces(encoding, text) == body);
  } catch (const Error& error) {
    require(error.code() != "internal");
  }
}

void use_time(std::string_view text) {
  const auto time = parse_iso_time(text);
  const std::size_t comma = text.find(';');
  if (time) {
    const auto again = parse_iso_time(data::format_time(time->time, time->style));
    require(again.has_value());
  }
  if (comma == std::string_view::npos) return;
  try {
    TimeAxis axis = make_axis(text.substr(0, comma), text.substr(comma + 1), "field");
    axis.skip(4000);
    require(parse_iso_time(axis.at(1)).has_value());
    (void)axis.at(10'000'000);
  } catch (const Error& error) {
    require(error.code() == "invalid_timestamp" || error.code() == "invalid_frequency" ||
            error.code() == "timestamp_overflow");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  switch (bytes[0] % 6) {
    case 0:
      use_body("gzip", text);
      break;
    case 1:
      use_body("deflate", text);
      break;
    case 2:
      use_body("zstd", text);
      break;
    case 3: {
      std::string decoded;
      if (percent_decode(text, decoded)) require(decoded.size() <= text.size());
      break;
    }
    case 4:
      (void)lists(text, "gzip");
      (void)good_request_id(text);
      break;
    default:
      use_time(text);
  }
  return 0;
}
