// SPDX-License-Identifier: Apache-2.0
// The CPU as a device that records: operations are kept as they are called and carried out when the
// recording is played, on batches that are read then. Its memory is beside the host's, so that what
// is not copied is not there.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/cuda/runtime/live.h"
#include "backend/recorder.h"
#include "models/backend_choice.h"
#include "statistics/mixture.h"
#include "statistics/statistics.h"
#include "support/faulty_backend.h"

namespace toto::test {

class RecordingBackend final : public FaultyBackend, public Recorder {
  using Base = FaultyBackend;

 public:
  RecordingBackend() : Base(make_backend({}), {}) {}

  std::function<void()> on_mirror;  // called before memory for inputs or results is allocated
  std::function<void()> on_play;
  [[nodiscard]] int mirrors() const { return mirrors_; }

  // --- the operations of the seam ---

  void scale(const Batch& batch, const ScalerSpec& spec, const void* x, const std::uint8_t* mask,
             ScalerState* state, const ScalerOutputs& to) const override {
    take([=, this] { Base::scale(now(batch), spec, x, mask, state, to); });
  }
  void repeat_state(const Batch& source, const Batch& batch, const ScalerState* from,
                    ScalerState* to) const override {
    take([=, this] { Base::repeat_state(now(source), now(batch), from, to); });
  }
  void linear(const Matrix& w, const void* x, void* y, Rows rows,
              Epilogue epilogue) const override {
    take([=, this] { Base::linear(w, x, y, now(rows), epilogue); });
  }
  void rms_norm(const void* x, const void* scale, void* y, Rows rows,
                std::int32_t dim) const override {
    take([=, this] { Base::rms_norm(x, scale, y, now(rows), dim); });
  }
  void set_labels(const Batch& batch, const void* labels, void* hidden,
                  std::int32_t dim) const override {
    take([=, this] { Base::set_labels(now(batch), labels, hidden, dim); });
  }
  void rotary_append(const Batch& batch, const Rotary& rotary, void* qkv, const KvLayer& kv,
                     std::int32_t heads, std::int32_t d) const override {
    take([=, this] { Base::rotary_append(now(batch), rotary, qkv, kv, heads, d); });
  }
  void time_attention(const Batch& batch, const void* qkv, const KvLayer& kv, void* out,
                      std::int32_t heads, std::int32_t d, bool last_only) const override {
    take([=, this] { Base::time_attention(now(batch), qkv, kv, out, heads, d, last_only); });
  }
  void variate_attention(const Batch& batch, const void* qkv, void* out, std::int32_t heads,
                         std::int32_t d) const override {
    take([=, this] { Base::variate_attention(now(batch), qkv, out, heads, d); });
  }
  void gather_last(const Batch& batch, const void* x, void* y, std::int32_t dim) const override {
    take([=, this] { Base::gather_last(now(batch), x, y, dim); });
  }
  void distribution(void* raw, Rows rows, std::int32_t components, bool mixture) const override {
    take([=, this] { Base::distribution(raw, now(rows), components, mixture); });
  }
  void predict_mean(const Batch& batch, const Batch* shared, const PatchShape& shape,
                    const void* params, const void* loc, const void* scale,
                    void* y) const override {
    take([=, this, from = copy(shared)] {
      const Batch source = from ? now(*from) : Batch{};
      Base::predict_mean(now(batch), from ? &source : nullptr, shape, params, loc, scale, y);
    });
  }
  void predict_draw(const Batch& batch, const Batch* shared, const PatchShape& shape,
                    std::uint64_t seed, const void* params, const void* loc, const void* scale,
                    void* y) const override {
    take([=, this, from = copy(shared)] {
      const Batch source = from ? now(*from) : Batch{};
      const std::uint64_t seed_now = batch.live == nullptr ? seed : batch.live->seed;
      Base::predict_draw(now(batch), from ? &source : nullptr, shape, seed_now, params, loc, scale,
                         y);
    });
  }
  void inject(const Batch& batch, const PatchShape& shape, const void* covariates,
              void* y) const override {
    take([=, this] { Base::inject(now(batch), shape, covariates, y); });
  }
  void upload(std::span<const double> from, void* to) const override {
    EXPECT_FALSE(recording_) << "it would not be of the recording";
    Base::upload(from, to);
  }
  void upload(std::span<const float> from, void* to) const override {
    EXPECT_FALSE(recording_) << "it would not be of the recording";
    Base::upload(from, to);
  }
  void download(const void* from, std::span<double> to) const override {
    EXPECT_FALSE(recording_) << "there is nothing to read yet";
    ++reads_;
    Base::download(from, to);
  }
  [[nodiscard]] std::uint64_t host_reads() const override { return reads_; }

  // --- recording ---

  [[nodiscard]] Recorder* recorder() override { return this; }

  [[nodiscard]] Mirror allocate_mirror(std::size_t bytes) override {
    if (on_mirror) on_mirror();
    ++mirrors_;
    return {side(bytes), side(bytes), bytes};
  }
  void release_mirror(const Mirror& mirror) noexcept override {
    if (mirror.host == nullptr) return;
    --mirrors_;
    operator delete(mirror.host, kAlignment);
    operator delete(mirror.device, kAlignment);
  }
  [[nodiscard]] std::size_t live_bytes(std::int64_t blocks, std::int64_t ids) const override {
    return cuda::LiveLayout(blocks, ids).bytes;
  }
  void write_live(const Batch& batch, std::uint64_t seed, const Mirror& mirror, std::size_t at,
                  std::int64_t blocks, std::int64_t ids) const override {
    cuda::write_image(batch, seed, cuda::LiveLayout(blocks, ids), mirror.host + at,
                      mirror.device + at);
  }
  void begin() override {
    recording_ = true;
    operations_.clear();
  }
  [[nodiscard]] std::unique_ptr<Recording> end() override {
    recording_ = false;
    return std::make_unique<Operations>(std::move(operations_));
  }
  void abandon() noexcept override {
    recording_ = false;
    operations_.clear();
  }
  double play(const Recording& recording, bool timed, std::span<const Awaited> awaited) override {
    if (on_play) on_play();
    const auto for_each_word = [&](const auto& visit) {
      for (const Awaited& a : awaited) {
        for (std::size_t i = 0; i < a.cells * a.used; ++i) {
          visit(a.first[i / a.used * a.stride + i % a.used]);
        }
      }
    };
    static constexpr std::uint32_t kUnwritten = 0xFFFFFFFFU;
    for_each_word([](float& word) { word = std::bit_cast<float>(kUnwritten); });
    playing_ = true;
    for (const auto& operation : static_cast<const Operations&>(recording).all) operation();
    playing_ = false;
    for_each_word([](float word) { EXPECT_NE(std::bit_cast<std::uint32_t>(word), kUnwritten); });
    return timed ? 1e-6 : 0;
  }
  void copy_in(const Mirror& mirror, std::size_t bytes) override {
    take([=] { std::memcpy(mirror.device, mirror.host, bytes); });
  }
  void copy_in_and_scale(const Mirror& mirror, std::size_t bytes, const Batch& batch,
                         const ScalerSpec& spec, const void* x, const std::uint8_t* mask,
                         ScalerState* state, const ScalerOutputs& to) override {
    copy_in(mirror, bytes);
    scale(batch, spec, x, mask, state, to);
  }
  void copy_out(const Mirror& mirror, std::size_t bytes) override {
    take([=] { std::memcpy(mirror.host, mirror.device, bytes); });
  }
  void keep(const Batch& batch, const Batch& source, const PatchShape& shape, const void* y,
            float* kept, std::int32_t horizon, std::int32_t samples) override {
    take([=, this] {
      const Batch b = now(batch);
      for (std::int32_t i = 0; i < b.count; ++i) {
        const std::int32_t first = now(source).blocks[i].lane;
        keep_block(b.blocks[i], first, shape, static_cast<const float*>(y), kept, horizon, samples);
      }
    });
  }
  [[nodiscard]] std::byte* results(const Mirror& mirror, std::size_t bytes) const override {
    return bytes < 4096 ? mirror.host : mirror.device;
  }
  void exact_statistics(const Batch& batch, const PatchShape& shape, HeadOutput head, void* params,
                        const void* loc, const void* scale, const Levels& levels,
                        float* out) override {
    take([=, this] {
      if (head != HeadOutput::parameters) {
        Base::distribution(params, now(batch).lanes * shape.steps, shape.components,
                           head == HeadOutput::mixture);
      }
      const std::size_t each = 4 * static_cast<std::size_t>(shape.components);
      const std::int32_t cells = now(batch).lanes * shape.steps;
      for (std::int32_t i = 0; i < cells; ++i) {
        const std::int32_t at = i / shape.steps * shape.patch + i % shape.steps;
        const float* const p =
            static_cast<const float*>(params) + std::int64_t{i} * 4 * shape.components;
        put_exact({p, each}, static_cast<const float*>(loc)[at],
                  static_cast<const float*>(scale)[at], levels,
                  out + std::int64_t{i} * (2 + levels.most));
      }
    });
  }
  void sample_statistics(const Batch& source, const float* kept, std::int32_t horizon,
                         std::int32_t first, std::int32_t samples, const Levels& levels,
                         float* out) override {
    take([=, this] {
      const std::int32_t left = horizon - first;
      std::vector<float> column(static_cast<std::size_t>(samples));
      for (std::int32_t i = 0; i < now(source).lanes * left; ++i) {
        const std::int64_t cell = std::int64_t{i / left} * horizon + first + i % left;
        const Samples all{kept + cell * samples, column.size(), 1};
        float* const to = out + std::int64_t{i} * (2 + levels.most);
        to[0] = sample_mean(all);
        to[1] = sample_std(all);
        const std::span<const float> sorted = sort_samples(all, column);
        for (std::int32_t q = 0; q < *levels.count; ++q) {
          to[2 + q] = interpolated_quantile(sorted, static_cast<float>(levels.values[q]));
        }
      }
    });
  }
  [[nodiscard]] std::int32_t most_samples() const override { return 1000; }

 private:
  using Operation = std::function<void()>;
  struct Operations final : Recording {
    explicit Operations(std::vector<Operation> taken) : all(std::move(taken)) {}
    [[nodiscard]] std::size_t launches() const override { return all.size(); }
    std::vector<Operation> all;
  };
  static constexpr std::align_val_t kAlignment{256};

  static std::byte* side(std::size_t bytes) {
    auto* const memory = static_cast<std::byte*>(operator new(bytes, kAlignment));
    std::memset(memory, 0, bytes);
    return memory;
  }
  /// The batch as it is when an operation is carried out. What is recorded may not point to the
  /// host's, which is another one when it is played.
  Batch now(const Batch& b) const {
    EXPECT_EQ(b.live != nullptr, playing_);
    if (b.live == nullptr) return b;
    const LiveBatch& live = *b.live;
    EXPECT_TRUE(live.count <= b.count && live.rows <= b.rows && live.lanes <= b.lanes);
    return {live.blocks, live.ids, live.count, live.rows, live.lanes};
  }
  Rows now(const Rows& rows) const {
    EXPECT_EQ(rows.live != nullptr, playing_);
    if (rows.live == nullptr) return rows;
    EXPECT_LE(*rows.live * rows.times, rows.count);
    return Rows(*rows.live * rows.times);
  }
  static std::optional<Batch> copy(const Batch* batch) {
    return batch == nullptr ? std::nullopt : std::optional<Batch>(*batch);
  }
  /// Carries an operation out, or keeps it.
  void take(Operation operation) const {
    if (recording_) {
      operations_.push_back(std::move(operation));
    } else {
      operation();
    }
  }

  static void keep_block(const Block& b, std::int32_t variate, const PatchShape& shape,
                         const float* y, float* kept, std::int32_t horizon, std::int32_t samples) {
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const std::int64_t row = std::int64_t{variate + lane % b.variates} * horizon;
      const std::int32_t sample = b.first_sample + lane / b.variates;
      for (std::int32_t t = 0; t < shape.steps && b.first_step + t < horizon; ++t) {
        kept[(row + b.first_step + t) * samples + sample] =
            y[std::int64_t{b.lane + lane} * shape.patch + t];
      }
    }
  }
  static void put_exact(std::span<const float> params, double loc, double scale,
                        const Levels& levels, float* to) {
    const std::vector<double> wide(params.begin(), params.end());
    const std::size_t k = params.size() / 4;
    const auto part = [&](std::size_t i) { return std::span(wide).subspan(i * k, k); };
    Mixture mixture(k);
    mixture.assign(part(0), part(1), part(2), part(3));
    std::vector<double> found(static_cast<std::size_t>(*levels.count));
    mixture.quantiles({levels.values, found.size()}, found);
    *to++ = static_cast<float>(mixture.mean() * scale + loc);
    *to++ = static_cast<float>(std::sqrt(mixture.variance()) * scale);
    for (const double q : found) *to++ = static_cast<float>(q * scale + loc);
  }

  bool recording_ = false;
  bool playing_ = false;
  mutable std::vector<Operation> operations_;
  mutable std::uint64_t reads_ = 0;
  int mirrors_ = 0;
};

}  // namespace toto::test
