// SPDX-License-Identifier: Apache-2.0
// A zip archive of one file, as exchanges and data sites give them out, as a stream. Layout:
// PKWARE, APPNOTE.TXT, 4.3.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>
#include <vector>

#include "data/decompress.h"
#include "toto/error.hpp"

namespace toto::data {
namespace {

constexpr std::string_view kFile = "PK\x03\x04";
constexpr std::size_t kHeader = 30;  // bytes, before name and extra field

std::size_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::size_t value = 0;
  for (std::size_t i = size; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

class Zip final : public Decompressor {
 public:
  explicit Zip(std::string name) : name_(std::move(name)), out_(std::size_t{1} << 18) {
    if (inflateInit2(&stream_, -15) != Z_OK) throw std::bad_alloc();  // no header of zlib's own
  }
  ~Zip() override { inflateEnd(&stream_); }
  Zip(const Zip&) = delete;
  Zip& operator=(const Zip&) = delete;

  bool feed(std::string_view packed, const TakePiece& take) override {
    std::string joined;
    if (!begun_) {
      head_.append(packed);
      if (head_.size() < kHeader || head_.size() < size_of_header()) return true;
      begin();
      joined = head_.substr(size_of_header());
      head_.clear();
      packed = joined;
    }
    if (ended_) {
      keep(packed);
      return true;
    }
    return stored_ ? copy(packed, take) : unpack(packed, take);
  }

  void finish() override {
    if (!ended_) fail("damaged_archive", "the zip data ends too early", "fetch the file again");
    if (behind_.find(kFile) != behind_.npos) {
      fail("unsupported_format", "the zip archive holds several files",
           "unpack it, and name the table");
    }
  }

 private:
  [[noreturn]] void fail(std::string_view code, std::string_view message,
                         std::string_view remedy) const {
    throw Error(ExitStatus::bad_data, code, message, name_, remedy);
  }

  [[nodiscard]] std::size_t size_of_header() const {
    return kHeader + number_at(head_, 26, 2) + number_at(head_, 28, 2);
  }

  void begin() {
    const std::size_t flags = number_at(head_, 6, 2), method = number_at(head_, 8, 2);
    constexpr std::size_t kEncrypted = 1, kSizeBehind = 8, kStored = 0, kDeflated = 8;
    stored_ = method == kStored && (flags & kSizeBehind) == 0;
    left_ = number_at(head_, 18, 4);
    if ((flags & kEncrypted) != 0 || (!stored_ && method != kDeflated)) {
      fail("unsupported_format",
           "the zip archive is encrypted, or packed in another way than deflate",
           "unpack it first");
    }
    begun_ = true;
    ended_ = stored_ && left_ == 0;
  }

  bool copy(std::string_view bytes, const TakePiece& take) {
    const std::string_view piece = bytes.substr(0, left_);
    left_ -= piece.size();
    ended_ = left_ == 0;
    keep(bytes.substr(piece.size()));
    return piece.empty() || take(piece);
  }

  bool unpack(std::string_view packed, const TakePiece& take) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    bool full = false;  // the last call filled the buffer: there may be more to come
    while (!ended_ && (stream_.avail_in > 0 || full)) {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        fail("damaged_archive", "the zip data is damaged", "fetch the file again");
      }
      ended_ = result == Z_STREAM_END;
      full = stream_.avail_out == 0 && !ended_;
      const std::size_t size = out_.size() - stream_.avail_out;
      if (size > 0 && !take({out_.data(), size})) return false;
    }
    keep(packed.substr(packed.size() - stream_.avail_in));
    return true;
  }

  /// What follows the file: its sizes perhaps, then another file or the directory.
  void keep(std::string_view bytes) {
    constexpr std::size_t kEnough = 32;
    behind_.append(bytes.substr(0, kEnough - std::min(kEnough, behind_.size())));
  }

  std::string name_;
  std::vector<char> out_;
  z_stream stream_{};
  std::string head_, behind_;
  std::size_t left_ = 0;  // bytes of a file that is not packed
  bool begun_ = false, ended_ = false, stored_ = false;
};

}  // namespace

bool is_zip_of_data(std::string_view head) {
  constexpr auto kOffice =
      std::to_array<std::string_view>({"[Content_Types].xml", "_rels/", "docProps/", "xl/", "word/",
                                       "ppt/", "mimetype", "META-INF/"});
  if (!head.starts_with(kFile) || head.size() < kHeader) return false;
  const std::string_view name = head.substr(kHeader, number_at(head, 26, 2));
  return std::ranges::none_of(kOffice, [&](std::string_view one) { return name.starts_with(one); });
}

std::unique_ptr<Decompressor> make_unzip(std::string name) {
  return std::make_unique<Zip>(std::move(name));
}

}  // namespace toto::data
