// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/safetensors_writer.h"

#include <fmt/format.h>

#include "core/json.h"

namespace toto {

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::span<const Tensor> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(path) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const Tensor& tensor : tensors) {
    std::uint64_t bytes = bytes_of(tensor.type);
    for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
    header[tensor.name] = {{"dtype", name_of(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8,
              ' ');  // data begins at a multiple of 8, as others write it
  const std::uint64_t length = text.size();
  file_bytes_ = sizeof(length) + length + at;
  write(std::as_bytes(std::span(&length, 1)));
  write(std::as_bytes(std::span(text)));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  written_ += bytes.size();
}

void SafetensorsWriter::sync() {
  if (written_ != file_bytes_) {
    throw Error(ExitStatus::internal, "internal",
                fmt::format("{} bytes written where the header promises {}", written_, file_bytes_),
                file_.path());
  }
  file_.sync();
}

void SafetensorsWriter::commit() {
  sync();
  file_.commit();
}

}  // namespace toto
