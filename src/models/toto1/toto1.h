// SPDX-License-Identifier: Apache-2.0
// The Toto 1.0 network on a backend: its weights and its forward pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "models/checkpoint/weights.h"
#include "models/network.h"
#include "models/toto1/config.h"

namespace toto {

/// How the forward pass is carried out. All of them compute the same function (spec C3).
struct Execution {
  bool fold_head = true;     // unembedding and head as one matrix, multiplied once at load
  bool trim = true;          // after the last time layer only the last token goes on
  bool share_prefix = true;  // one pass over the context for all trajectories
  bool operator==(const Execution&) const = default;

  /// The reference's order of operations.
  static constexpr Execution eager() { return {false, false, false}; }
};

/// Memory for calls: shapes in rows (tokens) and lanes (trajectory, variate), of which there is
/// room for so many. Element type: the backend's, unless said otherwise when they are taken as
/// something else.
struct Activations {
  View scaled;          // [rows][P] in
  View hidden;          // [rows][D]
  View normed;          // [rows][D + 1] scratch of Backend::norm_linear()
  View qkv;             // [rows][3*H*d]
  View attended;        // [rows][D], of what products take
  View gated;           // [rows][M], of what products take
  View last;            // [lanes][D]: hidden of the last tokens
  View unembedded;      // [lanes][P*D], only where the head is not folded
  View params;          // [lanes][steps*4*K] out
  View all_params;      // [rows][P*4*K] out, of all tokens; or nothing: not wanted
  View all_unembedded;  // [1][P*D] of one row, only where they are and the head is not folded
  bool keep = true;     // whether calls follow that read the keys and values of this one
};

/// Sees the hidden rows after every layer; `trimmed`: only the last tokens are left.
using LayerObserver =
    std::function<void(std::int32_t layer, const ConstView& hidden, bool trimmed)>;

class Toto1 final : public Network {
 public:
  /// Reads, checks and packs the weights, one tensor at a time. Throws what WeightTable throws.
  Toto1(const Toto1Config& config, const WeightTable& weights, std::shared_ptr<Backend> backend,
        const Execution& execution);
  Toto1(const Toto1&) = delete;
  Toto1& operator=(const Toto1&) = delete;

  /// Spec A5-A8 and A10 over `a.scaled`: appends keys and values to `kv` (one entry for each time
  /// layer), unless none is to be kept, and leaves the parameters of the first `steps` steps of the
  /// next patch in `a.params`, or if it is to leave them `raw` what they are formed of, which may
  /// be read early as it returns. `last` describes the last tokens of `all` (same blocks and lanes,
  /// one token each, with their ids).
  EarlyResults forward(const Batch& all, const Batch& last, const Rotary& rotary,
                       const std::vector<KvLayer>& kv, const Activations& a, std::int32_t steps,
                       const LayerObserver* observer = nullptr, bool raw = false) const;
  /// What it leaves then.
  [[nodiscard]] HeadOutput raw_output() const {
    return config_.head == HeadKind::mixture ? HeadOutput::mixture : HeadOutput::single;
  }

  [[nodiscard]] const Toto1Config& config() const { return config_; }
  [[nodiscard]] const Execution& execution() const { return execution_; }
  [[nodiscard]] Backend& backend() const override { return *backend_; }
  [[nodiscard]] std::int32_t patch() const override { return config_.patch_size; }
  [[nodiscard]] std::int32_t exact_steps(std::int32_t horizon) const override {
    return std::min(horizon, config_.patch_size);
  }
  [[nodiscard]] std::int32_t components() const override { return config_.components; }
  [[nodiscard]] std::unique_ptr<Program> program() const override;
  [[nodiscard]] bool has_paths() const override { return backend().paths() != nullptr; }
  [[nodiscard]] std::int32_t time_layers() const { return time_layers_; }
  [[nodiscard]] bool has_labels() const { return static_cast<bool>(labels_); }
  [[nodiscard]] ScalerSpec scaler_spec() const;
  /// Calls visit(matrix, epilogue) for every matrix that forward() multiplies with.
  void for_each_matrix(const std::function<void(const Matrix&, Epilogue)>& visit) const override;

 private:
  void load_layers(const WeightTable& weights);
  void load_head(const WeightTable& weights);
  void load_labels(const WeightTable& weights);
  /// [rows][values / rows]
  ConstView upload_vector(std::span<const float> values, std::int32_t rows = 1);
  /// The product that follows the layers: the head, or the first part of one that is not folded.
  [[nodiscard]] const Matrix& after_layers() const {
    return execution_.fold_head ? head_ : unembed_;
  }
  bool stack_of_all(const Activations& a, const Batch& all, const Rotary& rotary,
                    const std::vector<KvLayer>& kv, const View& first) const;
  void head_of_all(const Activations& a, const Batch& all) const;
  void distribution_of_all(const Activations& a, const Batch& all) const;
  /// What there is of the head after that product.
  void finish_head(const Activations& a, const Batch& all, std::int32_t steps, bool raw) const;

  Toto1Config config_;
  Execution execution_;
  std::shared_ptr<Backend> backend_;
  std::vector<std::shared_ptr<void>> vectors_;  // memory of norms and labels
  Matrix embed_;                                // D x P
  std::vector<LayerWeights> layers_;
  /// Up to after_layers() as one operation, where there is one.
  const PreparedStack* stack_ = nullptr;
  Matrix unembed_;    // P*D x D, where the head is not folded
  Matrix head_;       // 4K x D; folded: P*4K x D
  ConstView labels_;  // [2][D], unit length; or nothing
  std::int32_t time_layers_ = 0;
  std::int32_t last_time_layer_ = -1;
};

/// cos, sin and xPos tables (spec A8), formed from float32 angles; 64-bit values to be uploaded.
struct RotaryTables {
  std::vector<double> cosine, sine, factor;
};
RotaryTables rotary_tables(std::int32_t positions, std::int32_t head_dim);

}  // namespace toto
