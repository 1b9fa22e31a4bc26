// SPDX-License-Identifier: Apache-2.0
#include "server/compress.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "core/json.h"
#include "toto/error.hpp"

namespace toto::server {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr std::size_t kCompressFrom = std::size_t{64} << 10;
constexpr std::size_t kCompressTo = std::size_t{1} << 31;  // zlib counts with 32 bits
constexpr unsigned kMaxWindowLog = 27;                     // of zstd: 128 MiB

Error invalid_encoding(std::string_view message) {
  return {ExitStatus::usage, "invalid_encoding", message, "body"};
}

void check_size(std::size_t size, std::size_t limit) {
  if (size <= limit) return;
  throw Error(
      ExitStatus::usage, "body_too_large",
      fmt::format("expected at most {} bytes (max-body) of body once it is decompressed", limit),
      "body", "send fewer series at a time");
}

std::string inflate_all(std::string_view body, int window_bits, std::size_t limit) {
  z_stream stream = {};
  if (inflateInit2(&stream, window_bits) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, void (*)(z_stream*)> owner(&stream,
                                                             [](z_stream* s) { inflateEnd(s); });
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  std::string out;
  for (;;) {
    const std::size_t before = out.size();
    out.resize(before + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = kPiece;
    const int result = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    check_size(out.size(), limit);
    if (result == Z_STREAM_END) {
      if (stream.avail_in == 0) return out;
      if (window_bits < 16 || inflateReset(&stream) != Z_OK) break;  // gzip: one more member
      continue;
    }
    if (result != Z_OK || (stream.avail_in == 0 && out.size() == before)) break;
  }
  throw invalid_encoding("the compressed body is damaged or cut off");
}

std::string unzstd(std::string_view body, std::size_t limit) {
  const std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                             ZSTD_freeDStream);
  if (stream == nullptr) throw std::bad_alloc();
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  ZSTD_inBuffer in = {body.data(), body.size(), 0};
  std::string out;
  std::size_t state = 1;
  while (in.pos < in.size || state != 0) {
    const std::size_t before = out.size();
    const std::size_t read = in.pos;
    out.resize(before + kPiece);
    ZSTD_outBuffer piece = {out.data() + before, kPiece, 0};
    state = ZSTD_decompressStream(stream.get(), &piece, &in);
    if (ZSTD_isError(state) != 0) break;
    out.resize(before + piece.pos);
    check_size(out.size(), limit);
    if (in.pos == in.size && state == 0) return out;
    if (in.pos == read && piece.pos == 0) break;
  }
  if (body.empty()) return out;
  throw invalid_encoding("the compressed body is damaged or cut off");
}

}  // namespace

std::string decode_body(std::string_view body, std::string_view encoding, std::size_t limit) {
  if (encoding == "gzip" || encoding == "x-gzip") return inflate_all(body, 16 + MAX_WBITS, limit);
  if (encoding == "deflate") return inflate_all(body, MAX_WBITS, limit);
  if (encoding == "zstd") return unzstd(body, limit);
  throw Error(ExitStatus::usage, "unsupported_encoding",
              "expected gzip, deflate or zstd, found " + quote(encoding), "Content-Encoding");
}

std::string gzip(std::string_view body) {
  z_stream stream = {};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<z_stream, void (*)(z_stream*)> owner(&stream,
                                                             [](z_stream* s) { deflateEnd(s); });
  std::string out(deflateBound(&stream, body.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::bad_alloc();
  out.resize(out.size() - stream.avail_out);
  return out;
}

void compress_if_taken(const HttpRequest& request, HttpResponse& response) {
  if (response.body.size() < kCompressFrom || response.body.size() > kCompressTo) return;
  if (!lists(request.header("accept-encoding"), "gzip")) return;
  response.body = gzip(response.body);
  response.headers.push_back({"content-encoding", "gzip"});
  response.headers.push_back({"vary", "accept-encoding"});
}

}  // namespace toto::server
