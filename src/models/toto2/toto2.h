// SPDX-License-Identifier: Apache-2.0
// The Toto 2.0 network on a backend: its weights, folded at load, and its forward pass.
//
// Folded in float64 and rounded once (spec-level identities, exact in real arithmetic):
//   - 1/sqrt(fan_in) of every linear layer, into its weights and bias;
//   - the gains of norms, into the columns of the layer that follows;
//   - softplus(per_dim_scale)/(ln 2 * qk), which takes in the scale of the logits, into the rows of
//     the queries, or where queries are normed into that norm's gain;
//   - the gain of the input and output MLPs' SiLU into their second layer, 1/sqrt(2) into both
//     branches;
//   - tau/sqrt(1 + tau^2) into the last layer of a branch. The other factor, 1/sqrt(1 + tau^2), is
//     carried as one scalar for the whole residual stream: an RMS norm takes it in by its epsilon.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/ops2.h"
#include "models/checkpoint/weights.h"
#include "models/network.h"
#include "models/toto2/config.h"

namespace toto {

namespace toto2 {

/// Two layers beside one: y = second silu(first x) + skip x.
struct ResidualMlp {
  Matrix first;   // 4D x in
  Matrix second;  // out x 4D
  Matrix skip;    // out x in
};

struct Layer {
  bool variate = false;  // attention over variates instead of time
  double epsilon1 = 0;   // of the norm before attention
  double epsilon2 = 0;   // of the norm before the feed-forward
  double factor = 1;     // of the residual stream after the layer
  HeadNorm norm;
  Matrix qkv;      // HeadShape::row() x D
  Matrix out;      // D x H*v
  Matrix mlp_in;   // 2M x D, gate first
  Matrix mlp_out;  // D x M
};

}  // namespace toto2

/// Memory for calls: rows of all tokens and of the wanted ones, of which there is room for so many.
/// Element type: the backend's, unless said otherwise when they are taken as something else.
struct Toto2Activations {
  View inputs;    // [rows][2P] in, of what products take
  View inner;     // [rows][max(4D, M)]: inside the MLPs, of what products take
  View hidden;    // [rows][D]
  View normed;    // [rows][D], of what products take
  View qkv;       // [rows][HeadShape::row()]
  View attended;  // [rows][H*v], of what products take
  View wanted;    // [wanted rows][D]
  View raw;       // [wanted rows][9*P] out
};

/// Sees the hidden rows as the embedding (layer -1) and each layer leave them, and as the final
/// norm leaves them (layer L). `factor`: what they are to be multiplied with; `trimmed`: only the
/// wanted rows are left.
using Toto2Observer =
    std::function<void(std::int32_t layer, const ConstView& rows, double factor, bool trimmed)>;

class Toto2 final : public Network {
 public:
  /// Reads, folds and packs the weights, one tensor at a time. `trim`: after the last layer over
  /// time only the wanted tokens go on. Throws what WeightTable throws, and Error
  /// unsupported_config (78) for a backend without the operations.
  Toto2(const Toto2Config& config, const WeightTable& weights, std::shared_ptr<Backend> backend,
        bool trim = true);
  Toto2(const Toto2&) = delete;
  Toto2& operator=(const Toto2&) = delete;

  /// Spec B6, B7 and the head of B8 over `a.inputs`: writes the keys and values of `all` to `kv`
  /// (one for each time layer, or the same for all where nothing is read again) and leaves the
  /// head's output for the tokens of `wanted` in `a.raw`.
  void forward(const Call& all, const Call& wanted, const SeriesArrays& arrays,
               const Rotary& rotary, std::span<const KvCache> kv, const Toto2Activations& a,
               const Toto2Observer* observer = nullptr) const;

  [[nodiscard]] const Toto2Config& config() const { return config_; }
  [[nodiscard]] Backend& backend() const override { return *backend_; }
  [[nodiscard]] std::int32_t patch() const override { return config_.patch_size; }
  /// Every step has its quantiles: nothing has to be sampled.
  [[nodiscard]] std::int32_t exact_steps(std::int32_t horizon) const override { return horizon; }
  [[nodiscard]] std::unique_ptr<Program> program() const override;
  [[nodiscard]] bool has_paths() const override { return ops_->has_paths(); }
  [[nodiscard]] const Ops2& ops() const { return *ops_; }
  /// What forward() begins with: a.inputs [rows][2P], for the rows of a call.
  [[nodiscard]] View inputs_of(const Call& call, const Toto2Activations& a) const;
  [[nodiscard]] bool trim() const { return trim_; }
  [[nodiscard]] std::int32_t time_layers() const { return time_layers_; }
  [[nodiscard]] HeadShape heads() const {
    return {config_.num_heads, config_.num_groups, config_.qk_dim, config_.v_dim};
  }
  /// Width of Toto2Activations::inner.
  [[nodiscard]] std::int32_t inner() const;
  /// What the final norm multiplies with, which is folded into the head: [D], or empty.
  [[nodiscard]] std::span<const float> out_gain() const { return out_gain_; }
  /// Calls visit(matrix, epilogue) for every matrix that forward() multiplies with.
  void for_each_matrix(const std::function<void(const Matrix&, Epilogue)>& visit) const override;

 private:
  // For the rows of x, hidden; `inner`, `room`: for as many.
  void residual_mlp(const toto2::ResidualMlp& mlp, const ConstView& x, const View& inner,
                    const View& y, const NormRoom& next) const;
  void norm_linear(const ConstView& hidden, double epsilon, const NormRoom& room, const Matrix& w,
                   const View& y, Epilogue epilogue) const;
  [[nodiscard]] bool norms_ahead(Rows rows) const;
  void add_linear(const Matrix& w, const ConstView& x, const View& hidden,
                  const NormRoom& next) const;
  void before_attention(const toto2::Layer& layer, const CallPart& part, bool last,
                        const ConstView& hidden, bool ahead, const Toto2Activations& own,
                        const View& qkv) const;
  void feed_forward(const toto2::Layer& layer, const ConstView& attended, const View& hidden,
                    const Toto2Activations& own) const;

  Toto2Config config_;
  std::shared_ptr<Backend> backend_;
  const Ops2* ops_ = nullptr;
  bool trim_ = true;
  std::vector<std::shared_ptr<void>> vectors_;  // memory of norms
  toto2::ResidualMlp embed_;
  std::vector<toto2::Layer> layers_;
  double out_epsilon_ = 0;
  std::vector<float> out_gain_;
  toto2::ResidualMlp head_;  // of rows q*P + p, unlike the file
  std::int32_t time_layers_ = 0;
  std::int32_t last_time_layer_ = -1;
};

}  // namespace toto
