// SPDX-License-Identifier: Apache-2.0
// gzip and zstd, as streams.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace toto::data {

/// What was unpacked, piece by piece; false: enough.
using TakePiece = std::function<bool(std::string_view)>;

class Decompressor {
 public:
  virtual ~Decompressor() = default;
  /// False once `take` had enough. Throws Error damaged_archive (65).
  virtual bool feed(std::string_view packed, const TakePiece& take) = 0;
  /// The packed bytes have ended. Throws Error damaged_archive (65) where they should not have.
  virtual void finish() = 0;
};

/// By the first bytes of a file: "gzip", "zstd" or nothing.
std::string_view compression_of(std::string_view head);

std::unique_ptr<Decompressor> make_decompressor(std::string_view compression, std::string name);

}  // namespace toto::data
