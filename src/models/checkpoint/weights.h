// SPDX-License-Identifier: Apache-2.0
// Where weights come from: one interface over a safetensors file and a synthetic generator. Tensors
// are read one at a time into memory of the caller, so that a backend can pack each one and let it
// go.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace toto {

enum class DType { f32, f16, bf16 };

struct TensorInfo {
  std::string name;                 // as stored
  std::vector<std::int64_t> shape;  // row-major; empty for rank 0
  DType dtype = DType::f32;
  [[nodiscard]] std::int64_t elements() const;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// Every floating-point tensor, in the order of storage.
  [[nodiscard]] virtual std::span<const TensorInfo> tensors() const = 0;
  /// nullptr where there is none of that name.
  [[nodiscard]] virtual const TensorInfo* find(std::string_view name) const = 0;
  /// Reads a whole tensor, converted to float32; `out` has exactly `elements()` elements.
  /// Throws Error: missing_tensor, invalid_dtype, nonfinite_weight (65, with the index),
  /// read_failed (74).
  virtual void read(std::string_view name, std::span<float> out) const = 0;
  /// Names the source for people.
  [[nodiscard]] virtual const std::string& description() const = 0;
  [[nodiscard]] virtual bool synthetic() const { return false; }
  /// The stored type of a tensor that exists but cannot be read as float32, such as "I64"; empty
  /// for all others.
  [[nodiscard]] virtual std::string_view unreadable_type(std::string_view /*name*/) const {
    return {};
  }
  /// Names of the tensors that tensors() leaves out: derived constants, and types that cannot be
  /// read.
  [[nodiscard]] virtual std::vector<std::string> left_out() const { return {}; }
  /// Bytes of the files; 0 for weights that lie in none.
  [[nodiscard]] virtual std::uint64_t file_bytes() const { return 0; }
  /// 64 hexadecimal digits that tell weights apart. Of one file its SHA-256, of several that of
  /// their hashes; of synthetic weights what they are made from. Reads the files whole.
  [[nodiscard]] virtual std::string content_hash() const = 0;
};

/// The amplitude and base of the hash weights of a tensor (checkpoint/synthetic.h).
struct SyntheticScale {
  double amplitude = 0.4;
  double base = 0.0;
};

/// A tensor a model needs: the published name, the shape, and another name it may have, such as
/// that in a file of another layout; empty where there is none.
struct ExpectedTensor {
  std::string name;         // e.g. model.transformer.layers.0.mlp.0.w12.weight
  std::string alternative;  // e.g. model.transformer.layers.0.mlp.0.weight
  std::vector<std::int64_t> shape;
  SyntheticScale scale = {};
};

/// What a model needs of a checkpoint.
struct TensorList {
  std::vector<ExpectedTensor> tensors;   // every one of them, in state order
  std::vector<ExpectedTensor> together;  // all of these or none
  bool strict = false;                   // whether any other tensor is an error
};

/// Maps published names to the names of a source and checks every shape, before any weight is read.
/// Throws Error (65): missing_tensor and unexpected_tensor (all of them listed), invalid_dtype,
/// config_tensor_mismatch.
class WeightTable {
 public:
  WeightTable(std::shared_ptr<const WeightSource> source, const TensorList& list);
  /// Reads by published name; errors as for WeightSource::read.
  void read(std::string_view name, std::span<float> out) const;
  /// The tensors of TensorList::together are there.
  [[nodiscard]] bool has_together() const { return has_together_; }
  [[nodiscard]] const WeightSource& source() const { return *source_; }
  /// Elements of all tensors in the table.
  [[nodiscard]] std::uint64_t parameters() const { return parameters_; }
  /// Tensors of the source that the model does not use, by stored name.
  [[nodiscard]] const std::vector<std::string>& unused() const { return unused_; }

 private:
  void refuse_unexpected() const;

  std::shared_ptr<const WeightSource> source_;
  std::vector<std::pair<std::string, std::string>> names_;  // published -> stored, sorted
  bool has_together_ = false;
  std::uint64_t parameters_ = 0;
  std::vector<std::string> unused_;
};

/// Opens a checkpoint: a .safetensors file, or the shards of one. The whole header is checked, and
/// every size compared with the real size of the file, before anything is allocated. Tensors of
/// derived constants (spec A2: rotary tables and the like) and of other than floating-point types
/// are legal and not listed by tensors(). Throws the Errors of model/safetensors.h, and
/// duplicate_key (65) where two shards hold one name.
std::shared_ptr<const WeightSource> open_safetensors(const std::string& path);
std::shared_ptr<const WeightSource> open_safetensors(std::span<const std::string> shards);

}  // namespace toto
