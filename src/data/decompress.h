// SPDX-License-Identifier: Apache-2.0
// gzip, zstd and zip, as streams.
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

/// By the first bytes of a file: "gzip", "zstd", "zip" (of no office document) or nothing.
std::string_view compression_of(std::string_view head);

std::unique_ptr<Decompressor> make_decompressor(std::string_view compression, std::string name);

/// A zip archive, and no document of Excel and the like, which are such archives too.
bool is_zip_of_data(std::string_view head);
/// Of one file. finish() throws Error unsupported_format (65) where there are several.
std::unique_ptr<Decompressor> make_unzip(std::string name);

}  // namespace toto::data
