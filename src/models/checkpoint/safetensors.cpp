// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/json.h"

namespace toto {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;        // the limit of the format
constexpr std::size_t kMaxParts = std::size_t{1} << 16;  // of one tensor's fields, or the metadata
constexpr std::uint64_t kMaxSize = std::numeric_limits<std::int64_t>::max();

/// Reads the fields of one tensor, with errors that name file and tensor.
class EntryReader {
 public:
  EntryReader(const std::string& name, const json& fields, std::string_view where)
      : name_(name), fields_(fields), where_(where) {
    if (!fields_.is_object()) fail("invalid_json", "must be an object");
  }

  [[nodiscard]] SafetensorsEntry read() const {
    SafetensorsEntry entry{.name = name_, .type = type(), .shape = shape()};
    std::tie(entry.begin, entry.end) = offsets();
    const std::uint64_t expected = bytes_of_shape(entry.shape, bytes_of(entry.type));
    if (entry.bytes() != expected) {
      fail("size_mismatch",
           fmt::format("{} of shape {} takes {} bytes, not {}", name_of(entry.type),
                       field("shape").dump(), expected, entry.bytes()));
    }
    return entry;
  }

 private:
  [[noreturn]] void fail(std::string_view code, std::string_view message) const {
    throw Error(ExitStatus::bad_data, code, fmt::format("tensor {}: {}", quote(name_), message),
                where_);
  }

  [[nodiscard]] json field(std::string_view key) const { return fields_.value(key, json()); }

  [[nodiscard]] StoredType type() const {
    const json name = field("dtype");
    const auto known = name.is_string() ? stored_type_named(name.get<std::string>()) : std::nullopt;
    if (!known) fail("invalid_dtype", fmt::format("unknown dtype {}", text_of(name)));
    return *known;
  }

  [[nodiscard]] std::vector<std::int64_t> shape() const {
    const json list = field("shape");
    if (!list.is_array()) {
      fail("invalid_shape", fmt::format("shape must be a list, not {}", text_of(list)));
    }
    std::vector<std::int64_t> shape;
    for (const json& size : list) {
      if (!size.is_number_unsigned()) {
        fail("invalid_shape",
             fmt::format("every size must be a whole number of at least 0, not {}", text_of(size)));
      }
      if (size.get<std::uint64_t>() > kMaxSize) overflow();
      shape.push_back(size.get<std::int64_t>());
    }
    return shape;
  }

  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> offsets() const {
    const json pair = field("data_offsets");
    const bool valid = pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() &&
                       pair[1].is_number_unsigned() &&
                       pair[0].get<std::uint64_t>() <= pair[1].get<std::uint64_t>();
    if (!valid) {
      fail("invalid_offset",
           fmt::format("data_offsets must be [begin, end] with begin <= end, not {}",
                       text_of(pair)));
    }
    return {pair[0].get<std::uint64_t>(), pair[1].get<std::uint64_t>()};
  }

  /// Sizes of 0 are left out of the overflow check, so that it does not depend on their place: the
  /// product of the others must fit all the same.
  [[nodiscard]] std::uint64_t bytes_of_shape(const std::vector<std::int64_t>& shape,
                                             std::uint64_t element) const {
    std::uint64_t product = element;
    bool empty = false;
    for (const std::int64_t size : shape) {
      const auto factor = static_cast<std::uint64_t>(size);
      if (factor == 0) {
        empty = true;
      } else if (product > kMaxSize / factor) {
        overflow();
      } else {
        product *= factor;
      }
    }
    return empty ? 0 : product;
  }

  [[noreturn]] void overflow() const {
    fail("size_overflow",
         fmt::format("shape {} has more than 2^63 bytes", text_of(field("shape"))));
  }

  static std::string text_of(const json& value) { return shorten(value.dump(-1, ' ', true)); }

  const std::string& name_;
  const json& fields_;
  std::string_view where_;
};

void read_metadata(const json& object, std::string_view where, SafetensorsHeader& header) {
  if (!object.is_object()) {
    throw Error(ExitStatus::bad_data, "invalid_json", "__metadata__ must be an object", where);
  }
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) {
      throw Error(ExitStatus::bad_data, "invalid_json",
                  fmt::format("__metadata__ must hold strings; {} does not", quote(key)), where);
    }
    header.metadata.emplace(key, value.get<std::string>());
  }
}

[[noreturn]] void fail_duplicate(std::string_view name, std::string_view where) {
  throw Error(ExitStatus::bad_data, "duplicate_key",
              fmt::format("the key {} appears twice", quote(name)), where);
}

/// Every byte of the data belongs to exactly one tensor.
void check_tiling(const SafetensorsHeader& header, std::uint64_t data_bytes,
                  std::string_view where) {
  std::uint64_t at = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != at) {
      throw Error(
          ExitStatus::bad_data, "invalid_offset",
          fmt::format("tensor {} begins at {} where {} was expected: tensors {}", quote(entry.name),
                      entry.begin, at, entry.begin < at ? "overlap" : "leave a hole"),
          where);
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    throw Error(
        ExitStatus::bad_data, "file_size_mismatch",
        fmt::format("the header describes {} bytes of data, the file has {}", at, data_bytes),
        where, "download incomplete? fetch the file again");
  }
}

}  // namespace

const SafetensorsEntry* SafetensorsHeader::find(std::string_view name) const {
  const auto at =
      std::lower_bound(by_name.begin(), by_name.end(), name,
                       [this](std::size_t i, std::string_view n) { return entries[i].name < n; });
  return at != by_name.end() && entries[*at].name == name ? &entries[*at] : nullptr;
}

std::uint64_t safetensors_header_length(std::span<const std::byte> first, std::uint64_t file_bytes,
                                        std::string_view where) {
  std::uint64_t length = 0;
  if (file_bytes < sizeof(length) || first.size() < sizeof(length)) {
    throw Error(ExitStatus::bad_data, "header_too_small",
                fmt::format("a safetensors file has at least 8 bytes, this one {}", file_bytes),
                where, "download incomplete? fetch the file again");
  }
  std::memcpy(&length, first.data(), sizeof(length));
  if (length > kMaxHeader) {
    throw Error(ExitStatus::bad_data, "header_too_large",
                fmt::format("the header claims {} bytes, the limit is {}: not a safetensors file?",
                            length, kMaxHeader),
                where);
  }
  if (length > file_bytes - sizeof(length)) {
    throw Error(ExitStatus::bad_data, "invalid_header_length",
                fmt::format("the header claims {} bytes, the file has {} after its first 8", length,
                            file_bytes - sizeof(length)),
                where, "download incomplete? fetch the file again");
  }
  return length;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t file_bytes,
                                           std::string_view where) {
  SafetensorsHeader header;
  header.data_begin = sizeof(std::uint64_t) + text.size();
  bool has_metadata = false;
  // One tensor at a time: the tree of a header of 100 MB would take gigabytes.
  parse_json_members(text, ExitStatus::bad_data, where, kMaxParts,
                     [&](const std::string& name, const json& fields) {
                       if (name != "__metadata__") {
                         header.entries.push_back(EntryReader(name, fields, where).read());
                         return;
                       }
                       if (std::exchange(has_metadata, true)) fail_duplicate(name, where);
                       read_metadata(fields, where, header);
                     });
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  header.by_name.resize(header.entries.size());
  std::iota(header.by_name.begin(), header.by_name.end(), std::size_t{0});
  const auto name_of = [&](std::size_t i) -> const std::string& { return header.entries[i].name; };
  std::ranges::sort(header.by_name, {}, name_of);
  const auto twice = std::ranges::adjacent_find(header.by_name, {}, name_of);
  if (twice != header.by_name.end()) fail_duplicate(name_of(*twice), where);
  check_tiling(header, file_bytes - header.data_begin, where);
  return header;
}

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view where) {
  const std::uint64_t length = safetensors_header_length(file, file.size(), where);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + sizeof(length), length);
  return parse_safetensors_header(text, file.size(), where);
}

}  // namespace toto
