// SPDX-License-Identifier: Apache-2.0
// A backend that does what another one does, to put faults into; and the faults.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace toto::test {

/// What is wrong. Everything empty: nothing.
struct Faults {
  double bias = 0;               ///< added to the biases of one matrix
  int rotary_centre = 0;         ///< added to the centre of calls that decode
  bool stale_keys = false;       ///< what the second patch appends is written over by the next
  int draw_sample = 0;           ///< added to the sample a draw is addressed by
  bool only_in_batches = false;  ///< the same, where there is more than one series
  bool one_seed = false;         ///< every seed draws what seed 0 draws
  double outlier = 0;            ///< added to one probability of each distribution
  bool not_finite = false;
  std::function<void()> on_linear;        ///< called in every product
  std::function<void()> once_a_forecast;  ///< called when trajectories start
  std::function<void(std::size_t bytes)> on_allocate;
  std::function<void()> on_release;
};

class FaultyBackend : public Backend {
 public:
  FaultyBackend(std::shared_ptr<Backend> inner, Faults faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}

  [[nodiscard]] std::string_view name() const override { return inner_->name(); }
  [[nodiscard]] ElementType element_type() const override { return inner_->element_type(); }
  [[nodiscard]] ElementType operand_type(const Matrix& w) const override {
    return inner_->operand_type(w);
  }
  [[nodiscard]] const Ops2* ops2() const override { return inner_->ops2(); }
  [[nodiscard]] PathOps* paths() override { return inner_->paths(); }
  [[nodiscard]] double weight_size() const override { return inner_->weight_size(); }
  [[nodiscard]] int workers() const override { return inner_->workers(); }
  void for_each_share(std::int64_t count, ShareWork work, const void* context) const override {
    inner_->for_each_share(count, work, context);
  }
  [[nodiscard]] std::uint64_t thread_parks() const override { return inner_->thread_parks(); }
  [[nodiscard]] void* allocate(std::size_t bytes) override {
    if (faults_.on_allocate) faults_.on_allocate(bytes);
    return inner_->allocate(bytes);
  }
  void release(void* memory) noexcept override {
    if (faults_.on_release) faults_.on_release();
    inner_->release(memory);
  }
  void upload(std::span<const double> from, const View& to) const override {
    inner_->upload(from, to);
  }
  void upload(std::span<const float> from, const View& to) const override {
    inner_->upload(from, to);
  }
  void download(const ConstView& from, std::span<double> to) const override {
    inner_->download(from, to);
  }
  [[nodiscard]] Matrix upload_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                     std::int32_t in, std::span<const float> bias,
                                     Epilogue use) override {
    std::vector<float> changed(bias.begin(), bias.end());
    if (!bias.empty() && ++matrices_ == 2) {
      for (float& b : changed) b += static_cast<float>(faults_.bias);
    }
    return inner_->upload_matrix(std::move(take), out, in, changed, use);
  }
  [[nodiscard]] Matrix upload_exact_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                           std::int32_t in, std::span<const float> bias,
                                           Epilogue use) override {
    return inner_->upload_exact_matrix(std::move(take), out, in, bias, use);
  }
  [[nodiscard]] int product_candidates() const override { return inner_->product_candidates(); }
  void choose_product(const Matrix& w, int candidate) override {
    inner_->choose_product(w, candidate);
  }
  [[nodiscard]] std::string_view isa() const override { return inner_->isa(); }
  void scale(const Batch& batch, const ScalerSpec& spec, const ConstView& x,
             const std::uint8_t* mask, ScalerState* state, const ScalerOutputs& to) const override {
    inner_->scale(batch, spec, x, mask, state, to);
  }
  void repeat_state(const Batch& source, const Batch& batch, const ScalerState* from,
                    ScalerState* to) const override {
    if (faults_.once_a_forecast) faults_.once_a_forecast();
    inner_->repeat_state(source, batch, from, to);
  }
  void linear(const Matrix& w, const ConstView& x, const View& y,
              Epilogue epilogue) const override {
    if (faults_.on_linear) faults_.on_linear();
    inner_->linear(w, x, y, epilogue);
  }
  void rms_norm(const ConstView& x, const ConstView& gain, const View& y) const override {
    inner_->rms_norm(x, gain, y);
  }
  void set_labels(const Batch& batch, const ConstView& labels, const View& hidden) const override {
    inner_->set_labels(batch, labels, hidden);
  }
  void rotary_append(const Batch& batch, const Rotary& rotary, const View& qkv, const KvLayer& kv,
                     std::int32_t heads) const override {
    if (faults_.rotary_centre == 0 && !faults_.stale_keys) {
      inner_->rotary_append(batch, rotary, qkv, kv, heads);
      return;
    }
    std::vector<Block> blocks(batch.blocks, batch.blocks + batch.count);
    for (Block& b : blocks) {
      if (b.position > 0) b.centre += faults_.rotary_centre;
      if (faults_.stale_keys && b.prefix > 0 && b.suffix > 0) --b.suffix;
    }
    Batch changed = batch;
    changed.blocks = blocks.data();
    inner_->rotary_append(changed, rotary, qkv, kv, heads);
  }
  void time_attention(const Batch& batch, const ConstView& qkv, const KvLayer& kv, const View& out,
                      std::int32_t heads, bool last_only) const override {
    inner_->time_attention(batch, qkv, kv, out, heads, last_only);
  }
  void variate_attention(const Batch& batch, const ConstView& qkv, const View& out,
                         std::int32_t heads) const override {
    inner_->variate_attention(batch, qkv, out, heads);
  }
  void gather_last(const Batch& batch, const ConstView& x, const View& y) const override {
    inner_->gather_last(batch, x, y);
  }
  void distribution(const View& raw, bool mixture) const override {
    inner_->distribution(raw, mixture);
    const std::int32_t components = raw.width / 4;
    if (faults_.outlier != 0) {
      typed<float>(raw)[3 * components] += static_cast<float>(faults_.outlier);
    }
    if (faults_.not_finite) {
      typed<float>(raw)[components] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  void predict_mean(const Batch& batch, const Batch* shared, const PatchShape& shape,
                    const ConstView& params, const ConstView& loc, const ConstView& scale,
                    const View& y) const override {
    inner_->predict_mean(batch, shared, shape, params, loc, scale, y);
  }
  void predict_draw(const Batch& batch, const Batch* shared, const PatchShape& shape,
                    const ConstView& params, const ConstView& loc, const ConstView& scale,
                    const View& y) const override {
    std::vector<Block> blocks(batch.blocks, batch.blocks + batch.count);
    for (Block& b : blocks) {
      if (!faults_.only_in_batches || batch.count > 1) b.first_sample += faults_.draw_sample;
      if (faults_.one_seed) b.seed = 0;
    }
    Batch changed = batch;
    changed.blocks = blocks.data();
    inner_->predict_draw(changed, shared, shape, params, loc, scale, y);
  }
  void inject(const Batch& batch, const PatchShape& shape, const float* covariates,
              const View& y) const override {
    inner_->inject(batch, shape, covariates, y);
  }
  void reserve_statistics(std::int32_t components, std::int32_t levels,
                          std::int32_t samples) override {
    inner_->reserve_statistics(components, levels, samples);
  }
  void keep(const Batch& batch, const Batch& source, const PatchShape& shape, const ConstView& y,
            float* kept, const KeptShape& room) const override {
    inner_->keep(batch, source, shape, y, kept, room);
  }
  void exact_statistics(const Batch& batch, const PatchShape& shape, const HeadResults& head,
                        const View& params, const ConstView& loc, const ConstView& scale,
                        const Levels& levels, float* out) const override {
    if (head.output != HeadOutput::parameters) {  // by way of the faults
      distribution(params.shaped(batch.all_lanes(shape.steps), 4 * shape.components),
                   head.output == HeadOutput::mixture);
    }
    inner_->exact_statistics(batch, shape, HeadOutput::parameters, params, loc, scale, levels, out);
  }
  void sample_statistics(const Batch& source, const float* kept, const KeptShape& room,
                         std::int32_t first, const Levels& levels, float* out) const override {
    inner_->sample_statistics(source, kept, room, first, levels, out);
  }
  void keep_parameters(const Batch& batch, const Batch& source, const PatchShape& shape,
                       const ConstView& params, const ConstView& loc, const ConstView& scale,
                       float* out, std::int32_t horizon) const override {
    inner_->keep_parameters(batch, source, shape, params, loc, scale, out, horizon);
  }

 private:
  std::shared_ptr<Backend> inner_;
  Faults faults_;
  int matrices_ = 0;
};

}  // namespace toto::test
