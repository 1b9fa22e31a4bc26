// SPDX-License-Identifier: Apache-2.0
#include "server/decoder.h"

#include <zlib.h>
#include <zstd.h>

#include <new>
#include <utility>

#include "core/json.h"
#include "toto/error.hpp"

namespace toto::server {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr int kMaxWindowLog = 23;  // of zstd: 8 MiB, which every decoder must take (RFC 8878)

[[noreturn]] void damaged() {
  throw Error(ExitStatus::usage, "invalid_encoding", "the compressed body is damaged or cut off",
              "body");
}

void free_zlib(z_stream_s* stream) {
  inflateEnd(stream);
  delete stream;
}

void free_zstd(ZSTD_DCtx_s* stream) { ZSTD_freeDCtx(stream); }

}  // namespace

Decoder::Decoder(std::string_view encoding) : zlib_(nullptr, free_zlib), zstd_(nullptr, free_zstd) {
  if (encoding.empty() || encoding == "identity") return;
  if (encoding == "zstd") {
    zstd_.reset(ZSTD_createDCtx());
    if (zstd_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(zstd_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
    return;
  }
  members_ = encoding == "gzip" || encoding == "x-gzip";
  if (!members_ && encoding != "deflate") {
    throw Error(ExitStatus::usage, "unsupported_encoding",
                "expected gzip, deflate or zstd, found " + quote(encoding), "Content-Encoding");
  }
  auto stream = std::make_unique<z_stream>();
  if (inflateInit2(stream.get(), members_ ? 16 + MAX_WBITS : MAX_WBITS) != Z_OK) {
    throw std::bad_alloc();
  }
  zlib_.reset(stream.release());
}

void Decoder::give(std::string bytes) {
  in_ = std::move(bytes);
  at_ = 0;
}

std::string Decoder::next() {
  std::string out;
  if (at_ == in_.size() && !full_) return out;
  if (zlib_ != nullptr) {
    inflate_some(out);
  } else if (zstd_ != nullptr) {
    unzstd_some(out);
  } else {
    out = in_.substr(at_, kPiece);
    at_ += out.size();
  }
  return out;
}

void Decoder::inflate_some(std::string& out) {
  while (out.empty() && (at_ < in_.size() || full_)) {
    if (whole_ && at_ < in_.size()) {  // the first member, or one after another
      if (zlib_->total_in > 0 && (!members_ || inflateReset(zlib_.get()) != Z_OK)) damaged();
      whole_ = false;
    }
    out.resize(kPiece);
    zlib_->next_in = reinterpret_cast<Bytef*>(in_.data() + at_);
    zlib_->avail_in = static_cast<uInt>(in_.size() - at_);
    zlib_->next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_->avail_out = static_cast<uInt>(out.size());
    const int result = inflate(zlib_.get(), Z_NO_FLUSH);
    at_ = in_.size() - zlib_->avail_in;
    full_ = zlib_->avail_out == 0;
    out.resize(out.size() - zlib_->avail_out);
    if (result == Z_STREAM_END) {
      whole_ = true;
      full_ = false;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      damaged();
    }
  }
}

void Decoder::unzstd_some(std::string& out) {
  while (out.empty() && (at_ < in_.size() || full_)) {
    out.resize(kPiece);
    ZSTD_inBuffer in = {in_.data(), in_.size(), at_};
    ZSTD_outBuffer to = {out.data(), out.size(), 0};
    const std::size_t state = ZSTD_decompressStream(zstd_.get(), &to, &in);
    if (ZSTD_isError(state) != 0) damaged();
    at_ = in.pos;
    out.resize(to.pos);
    whole_ = state == 0;
    full_ = to.pos == kPiece && !whole_;
  }
}

}  // namespace toto::server
