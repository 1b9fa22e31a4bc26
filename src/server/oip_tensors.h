// SPDX-License-Identifier: Apache-2.0
// Tensors of the Open Inference Protocol: JSON data, flat or nested, and the binary extension.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/json_field.h"

namespace toto::server {

struct Tensor {
  std::string name, datatype;
  std::vector<std::size_t> shape;
  std::size_t count = 0;             ///< of elements
  std::vector<double> numbers;       ///< [count], NaN where JSON has null; of BYTES: empty
  std::vector<std::string> strings;  ///< [count] of BYTES
};

/// Elements that a request's tensors may have in all.
inline constexpr std::size_t kMaxTensorElements = std::size_t{1} << 26;

/// Takes tensors whose data is behind the JSON part, in their order.
class BinaryPart {
 public:
  explicit BinaryPart(std::string_view bytes) : rest_(bytes) {}
  /// Throws Error invalid_tensor where there are fewer.
  std::string_view take(std::size_t size, std::string_view where);
  /// Throws Error invalid_tensor where bytes are left.
  void finish() const;

 private:
  std::string_view rest_;
};

/// Throws Error invalid_request, invalid_tensor (sizes that do not fit, unknown types).
Tensor read_tensor(const JsonField& field, BinaryPart& binary);

}  // namespace toto::server
