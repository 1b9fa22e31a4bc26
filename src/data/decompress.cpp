// SPDX-License-Identifier: Apache-2.0
#include "data/decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <new>
#include <utility>
#include <vector>

#include "toto/error.hpp"

namespace toto::data {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

[[noreturn]] void fail(const std::string& name, std::string_view message) {
  throw Error(ExitStatus::bad_data, "damaged_archive", message, name,
              "fetch or compress the file again");
}

/// Files of several members, one after the other, as `cat a.gz b.gz` makes them, are fine.
class Gzip final : public Decompressor {
 public:
  explicit Gzip(std::string name) : name_(std::move(name)), out_(kPiece) {
    constexpr int kGzipWindow = 15 + 16;
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  bool feed(std::string_view packed, const TakePiece& take) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    bool full = false;  // the last call filled the buffer: there may be more to come
    while (stream_.avail_in > 0 || full) {
      if (ended_) {
        inflateReset(&stream_);
        ended_ = false;
      }
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        fail(name_, "the gzip data is damaged");
      }
      ended_ = result == Z_STREAM_END;
      full = stream_.avail_out == 0 && !ended_;
      const std::size_t size = out_.size() - stream_.avail_out;
      if (size > 0 && !take({out_.data(), size})) return false;
    }
    return true;
  }

  void finish() override {
    if (!ended_) fail(name_, "the gzip data ends too early");
  }

 private:
  std::string name_;
  std::vector<char> out_;
  z_stream stream_{};
  bool ended_ = false;
};

class Zstd final : public Decompressor {
 public:
  explicit Zstd(std::string name)
      : name_(std::move(name)), out_(kPiece), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

  bool feed(std::string_view packed, const TakePiece& take) override {
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    bool full = false;
    while (in.pos < in.size || full) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      expected_ = ZSTD_decompressStream(stream_, &out, &in);
      if (ZSTD_isError(expected_) != 0) fail(name_, "the zstd data is damaged");
      full = out.pos == out.size;
      if (out.pos > 0 && !take({out_.data(), out.pos})) return false;
    }
    return true;
  }

  void finish() override {
    if (expected_ != 0) fail(name_, "the zstd data ends too early");
  }

 private:
  std::string name_;
  std::vector<char> out_;
  ZSTD_DStream* stream_;
  std::size_t expected_ = 0;  // 0: a frame is complete
};

}  // namespace

std::string_view compression_of(std::string_view head) {
  if (head.starts_with("\x1F\x8B")) return "gzip";
  if (head.starts_with("\x28\xB5\x2F\xFD")) return "zstd";
  return is_zip_of_data(head) ? "zip" : std::string_view();
}

std::unique_ptr<Decompressor> make_decompressor(std::string_view compression, std::string name) {
  if (compression == "zip") return make_unzip(std::move(name));
  if (compression == "gzip") return std::make_unique<Gzip>(std::move(name));
  return std::make_unique<Zstd>(std::move(name));
}

}  // namespace toto::data
