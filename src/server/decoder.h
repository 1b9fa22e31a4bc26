// SPDX-License-Identifier: Apache-2.0
// A compressed body, decompressed piece by piece: never more in memory than two pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;
struct ZSTD_DCtx_s;

namespace toto::server {

class Decoder {
 public:
  /// "" and "identity" take bytes as they are; gzip, deflate, zstd. Throws Error
  /// unsupported_encoding (2).
  explicit Decoder(std::string_view encoding);

  /// More of the body. Only after next() gave nothing.
  void give(std::string bytes);
  /// At most 64 KiB of what was given; empty: all of it was. Throws Error invalid_encoding (2).
  [[nodiscard]] std::string next();
  /// Whether the body may end here.
  [[nodiscard]] bool whole() const { return whole_; }

 private:
  void inflate_some(std::string& out);
  void unzstd_some(std::string& out);

  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> zlib_;
  std::unique_ptr<ZSTD_DCtx_s, void (*)(ZSTD_DCtx_s*)> zstd_;
  bool members_ = false;  // gzip: another member may follow the first
  std::string in_;
  std::size_t at_ = 0;
  bool whole_ = true;
  bool full_ = false;  // the last piece took all the room: there may be more without more input
};

}  // namespace toto::server
