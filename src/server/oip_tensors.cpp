// SPDX-License-Identifier: Apache-2.0
#include "server/oip_tensors.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/json.h"
#include "server/errors.h"

namespace toto::server {
namespace {

static_assert(std::endian::native == std::endian::little, "binary tensors are little-endian");

Error invalid_tensor(std::string_view message, std::string_view where) {
  return {ExitStatus::usage, "invalid_tensor", message, where};
}

struct Type {
  std::string_view name;
  std::size_t size;  // of an element; 0: BYTES
};
constexpr std::array<Type, 14> kTypes = {{{"BOOL", 1},
                                          {"UINT8", 1},
                                          {"UINT16", 2},
                                          {"UINT32", 4},
                                          {"UINT64", 8},
                                          {"INT8", 1},
                                          {"INT16", 2},
                                          {"INT32", 4},
                                          {"INT64", 8},
                                          {"FP16", 2},
                                          {"BF16", 2},
                                          {"FP32", 4},
                                          {"FP64", 8},
                                          {"BYTES", 0}}};

template <typename T>
T load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

double half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else {
    value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

double element(std::string_view type, const char* at) {
  if (type == "FP32") return load<float>(at);
  if (type == "FP64") return load<double>(at);
  if (type == "FP16") return half(load<std::uint16_t>(at));
  if (type == "BF16") {
    return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(at)) << 16);
  }
  if (type == "INT64") return static_cast<double>(load<std::int64_t>(at));
  if (type == "UINT64") return static_cast<double>(load<std::uint64_t>(at));
  if (type == "INT32") return load<std::int32_t>(at);
  if (type == "UINT32") return load<std::uint32_t>(at);
  if (type == "INT16") return load<std::int16_t>(at);
  if (type == "UINT16") return load<std::uint16_t>(at);
  if (type == "INT8") return load<std::int8_t>(at);
  return load<std::uint8_t>(at);  // UINT8, BOOL
}

void read_strings(Tensor& tensor, std::string_view bytes, const std::string& where) {
  while (!bytes.empty()) {
    if (bytes.size() < 4) throw invalid_tensor("a length of 4 bytes is cut off", where);
    const std::size_t size = load<std::uint32_t>(bytes.data());
    bytes.remove_prefix(4);
    if (size > bytes.size()) {
      throw invalid_tensor(
          fmt::format("an element says it has {} bytes, {} are left", size, bytes.size()), where);
    }
    if (tensor.strings.size() == tensor.count) break;
    tensor.strings.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (tensor.strings.size() != tensor.count || !bytes.empty()) {
    throw invalid_tensor(
        fmt::format("the shape has {} elements, the data another number", tensor.count), where);
  }
}

void read_binary(Tensor& tensor, std::string_view bytes, std::size_t size,
                 const std::string& where) {
  if (size == 0) return read_strings(tensor, bytes, where);
  if (bytes.size() != tensor.count * size) {
    throw invalid_tensor(
        fmt::format("expected {} bytes for {} elements of {}, found {}", tensor.count * size,
                    tensor.count, tensor.datatype, bytes.size()),
        where);
  }
  tensor.numbers.resize(tensor.count);
  for (std::size_t i = 0; i < tensor.count; ++i) {
    tensor.numbers[i] = element(tensor.datatype, bytes.data() + i * size);
  }
}

/// Flat or nested; nested lists need not follow the shape, as the protocol has it row by row.
void read_json(Tensor& tensor, const JsonField& data, bool text) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    const nlohmann::json& one = data.value()[i];
    if (one.is_array()) {
      read_json(tensor, data[i], text);
    } else if (text) {
      tensor.strings.push_back(data[i].text());
    } else if (one.is_number()) {
      tensor.numbers.push_back(one.get<double>());
    } else if (one.is_boolean()) {
      tensor.numbers.push_back(one.get<bool>() ? 1 : 0);
    } else if (one.is_null()) {
      tensor.numbers.push_back(std::numeric_limits<double>::quiet_NaN());
    } else {
      data[i].fail("a number");
    }
    if (std::max(tensor.numbers.size(), tensor.strings.size()) > tensor.count) {
      throw invalid_tensor(fmt::format("more than the {} elements of the shape", tensor.count),
                           data.path());
    }
  }
}

void read_shape(Tensor& tensor, const JsonField& field) {
  if (field.size() > 8) field.fail("at most 8 dimensions");
  tensor.count = 1;
  for (std::size_t i = 0; i < field.size(); ++i) {
    const std::uint64_t size = field[i].whole(0, kMaxTensorElements);
    tensor.shape.push_back(size);
    tensor.count *= size;
    if (tensor.count > kMaxTensorElements) {
      throw invalid_tensor(fmt::format("more than {} elements", kMaxTensorElements), field.path());
    }
  }
}

}  // namespace

std::string_view BinaryPart::take(std::size_t size, std::string_view where) {
  if (size > rest_.size()) {
    throw invalid_tensor(
        fmt::format("binary_data_size is {}, and {} bytes are left behind the JSON", size,
                    rest_.size()),
        where);
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

void BinaryPart::finish() const {
  if (rest_.empty()) return;
  throw invalid_tensor(fmt::format("{} bytes behind the last tensor", rest_.size()), "body");
}

Tensor read_tensor(const JsonField& field, BinaryPart& binary) {
  Tensor tensor;
  tensor.name = field.at("name").text();
  const JsonField type = field.at("datatype");
  tensor.datatype = type.text();
  std::size_t size = static_cast<std::size_t>(-1);
  for (const Type& known : kTypes) {
    if (known.name == tensor.datatype) size = known.size;
  }
  if (size == static_cast<std::size_t>(-1)) {
    throw invalid_tensor("unknown type " + quote(tensor.datatype), type.path());
  }
  read_shape(tensor, field.at("shape"));
  std::optional<JsonField> binary_size;
  if (const auto parameters = field.find("parameters")) {
    binary_size = parameters->find("binary_data_size");
    if (parameters->find("shared_memory_region")) {
      throw invalid_tensor("there is no shared memory here", parameters->path());
    }
  }
  if (binary_size) {
    const std::uint64_t bytes = binary_size->whole(0, std::uint64_t{1} << 40);
    read_binary(tensor, binary.take(bytes, binary_size->path()), size, field.path());
    return tensor;
  }
  const JsonField data = field.at("data");
  read_json(tensor, data, size == 0);
  if (std::max(tensor.numbers.size(), tensor.strings.size()) != tensor.count) {
    throw invalid_tensor(fmt::format("the shape has {} elements, the data {}", tensor.count,
                                     std::max(tensor.numbers.size(), tensor.strings.size())),
                         data.path());
  }
  return tensor;
}

}  // namespace toto::server
