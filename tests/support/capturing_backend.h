// SPDX-License-Identifier: Apache-2.0
// The CPU as a device that captures: between begin() and end() operations are kept as they are
// called, and carried out when the graph is replayed, on batches that are read then. The two sides
// of a staging buffer are apart, so that what is not copied is not there. Graphs are carried out as
// late as the seam allows, so that what is read too soon is not there either: when somebody waits
// for them, or for the device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/batch_image.h"
#include "backend/graph_capture.h"
#include "models/backend_choice.h"
#include "support/capturing_ops2.h"
#include "support/capturing_paths.h"
#include "support/faulty_backend.h"

namespace toto::test {

class CapturingBackend final : public FaultyBackend, public GraphCapture {
  using Base = FaultyBackend;

 public:
  CapturingBackend() : Base(make_backend({}), {}) {}

  std::function<void()> on_staging;  // called before memory for inputs or results is allocated
  std::function<void()> on_replay;
  std::function<void()> on_finish;  // called where the host begins to wait for a graph
  std::function<void()> on_copy;    // called where it waits for all but the copy of results
  /// The most graphs that were under way at once.
  [[nodiscard]] std::size_t most_under_way() const { return most_under_way_; }
  /// Results that were waited for in parts, and not to the end.
  [[nodiscard]] std::size_t parts() const { return parts_; }
  /// Staging buffers that there are.
  [[nodiscard]] int stagings() const { return stagings_; }

  // --- memory: taken back once everything has ended that may use it ---

  void release(void* memory) noexcept override {
    const std::scoped_lock lock(device_);
    carry_out_all();
    Base::release(memory);
  }
  void reserve_statistics(std::int32_t components, std::int32_t levels,
                          std::int32_t samples) override {
    const std::scoped_lock lock(device_);
    carry_out_all();
    Base::reserve_statistics(components, levels, samples);
  }

  // --- the operations of the seam ---

  [[nodiscard]] const Ops2* ops2() const override { return &ops2_; }
  [[nodiscard]] PathOps* paths() override { return &paths_; }

  void scale(const Batch& batch, const ScalerSpec& spec, const ConstView& x,
             const std::uint8_t* mask, ScalerState* state, const ScalerOutputs& to) const override {
    take([=, this] { Base::scale(now(batch), spec, x, mask, state, to); });
  }
  void repeat_state(const Batch& source, const Batch& batch, const ScalerState* from,
                    ScalerState* to) const override {
    take([=, this] { Base::repeat_state(now(source), now(batch), from, to); });
  }
  void linear(const Matrix& w, const ConstView& x, const View& y,
              Epilogue epilogue) const override {
    take([=, this] { Base::linear(w, now(x), y, epilogue); });
  }
  void rms_norm(const ConstView& x, const ConstView& gain, const View& y) const override {
    take([=, this] { Base::rms_norm(now(x), gain, y); });
  }
  void set_labels(const Batch& batch, const ConstView& labels, const View& hidden) const override {
    take([=, this] { Base::set_labels(now(batch), labels, hidden); });
  }
  void rotary_append(const Batch& batch, const Rotary& rotary, const View& qkv, const KvLayer& kv,
                     std::int32_t heads) const override {
    take([=, this] { Base::rotary_append(now(batch), rotary, qkv, kv, heads); });
  }
  void time_attention(const Batch& batch, const ConstView& qkv, const KvLayer& kv, const View& out,
                      std::int32_t heads, bool last_only) const override {
    take([=, this] { Base::time_attention(now(batch), qkv, kv, out, heads, last_only); });
  }
  void variate_attention(const Batch& batch, const ConstView& qkv, const View& out,
                         std::int32_t heads) const override {
    take([=, this] { Base::variate_attention(now(batch), qkv, out, heads); });
  }
  void gather_last(const Batch& batch, const ConstView& x, const View& y) const override {
    take([=, this] { Base::gather_last(now(batch), x, y); });
  }
  void distribution(const View& raw, bool mixture) const override {
    take([=, this] { Base::distribution(now(raw), mixture); });
  }
  void predict_mean(const Batch& batch, const Batch* shared, const PatchShape& shape,
                    const ConstView& params, const ConstView& loc, const ConstView& scale,
                    const View& y) const override {
    take([=, this, from = copy(shared)] {
      const Batch source = from ? now(*from) : Batch{};
      Base::predict_mean(now(batch), from ? &source : nullptr, shape, params, loc, scale, y);
    });
  }
  void predict_draw(const Batch& batch, const Batch* shared, const PatchShape& shape,
                    const ConstView& params, const ConstView& loc, const ConstView& scale,
                    const View& y) const override {
    take([=, this, from = copy(shared)] {
      const Batch source = from ? now(*from) : Batch{};
      Base::predict_draw(now(batch), from ? &source : nullptr, shape, params, loc, scale, y);
    });
  }
  void inject(const Batch& batch, const PatchShape& shape, const float* covariates,
              const View& y) const override {
    take([=, this] { Base::inject(now(batch), shape, covariates, y); });
  }
  void keep(const Batch& batch, const Batch& source, const PatchShape& shape, const ConstView& y,
            float* kept, const KeptShape& room) const override {
    take([=, this] { Base::keep(now(batch), now(source), shape, y, kept, room); });
  }
  void exact_statistics(const Batch& batch, const PatchShape& shape, const HeadResults& head,
                        const View& params, const ConstView& loc, const ConstView& scale,
                        const Levels& levels, float* out) const override {
    take([=, this] {
      Base::exact_statistics(now(batch), shape, head, params, loc, scale, levels, out);
    });
  }
  void sample_statistics(const Batch& source, const float* kept, const KeptShape& room,
                         std::int32_t first, const Levels& levels, float* out) const override {
    take([=, this] { Base::sample_statistics(now(source), kept, room, first, levels, out); });
  }
  void keep_parameters(const Batch& batch, const Batch& source, const PatchShape& shape,
                       const ConstView& params, const ConstView& loc, const ConstView& scale,
                       float* out, std::int32_t horizon) const override {
    take([=, this] {
      Base::keep_parameters(now(batch), now(source), shape, params, loc, scale, out, horizon);
    });
  }
  [[nodiscard]] StatisticsLimits statistics_limits() const override { return {1000, 32}; }
  void upload(std::span<const double> from, const View& to) const override {
    EXPECT_FALSE(capturing_) << "it would not be in the graph";
    take([&] { Base::upload(from, to); });
  }
  void upload(std::span<const float> from, const View& to) const override {
    EXPECT_FALSE(capturing_) << "it would not be in the graph";
    take([&] { Base::upload(from, to); });
  }
  void download(const ConstView& from, std::span<double> to) const override {
    EXPECT_FALSE(capturing_) << "there is nothing to read yet";
    ++reads_;
    take([&] { Base::download(from, to); });
  }
  [[nodiscard]] std::uint64_t host_reads() const override { return reads_; }

  // --- staging ---

  [[nodiscard]] Staging allocate_staging(std::size_t bytes) override {
    if (on_staging) on_staging();
    ++stagings_;
    return {side(bytes), side(bytes), bytes};
  }
  void release_staging(const Staging& staging) noexcept override {
    if (staging.host == nullptr) return;
    const std::scoped_lock lock(device_);
    carry_out_all();
    --stagings_;
    operator delete(staging.host, kAlignment);
    operator delete(staging.device, kAlignment);
  }
  [[nodiscard]] bool reads_device_batches() const override { return true; }
  void copy_in(const Staging& staging, std::size_t offset, std::size_t bytes) override {
    take([=] { std::memcpy(staging.device + offset, staging.host + offset, bytes); });
  }
  /// In parts that end anywhere.
  void copy_out(const Staging& staging, std::size_t bytes) override {
    constexpr std::size_t kPart = 5003;
    for (std::size_t begin = 0; begin < bytes; begin += kPart) {
      const std::size_t end = std::min(begin + kPart, bytes);
      const auto copy = [=] {
        std::memcpy(staging.host + begin, staging.device + begin, end - begin);
      };
      if (capturing_) {
        copies_.push_back({copy, end});
      } else {
        take(copy);
      }
    }
  }
  void copy_in_and_scale(const Staging& staging, std::size_t bytes, const Batch& batch,
                         const ScalerSpec& spec, const float* x, const std::uint8_t* mask,
                         const View& /*scratch*/, ScalerState* state,
                         const ScalerOutputs& to) override {
    copy_in(staging, 0, bytes);
    scale(batch, spec, view_of(x, batch.all_rows(), spec.patch), mask, state, to);
  }
  [[nodiscard]] std::byte* results(const Staging& staging, std::size_t bytes) const override {
    return bytes < 4096 ? staging.host : staging.device;
  }
  void synchronise() const override {
    EXPECT_FALSE(capturing_);
    ++reads_;
    take([] {});
  }

  // --- capture ---

  [[nodiscard]] GraphCapture* capture() override { return this; }
  void begin() override {
    take([] {});
    capturing_ = true;
    operations_.clear();
    copies_.clear();
  }
  [[nodiscard]] std::unique_ptr<Graph> end() override {
    capturing_ = false;
    return std::make_unique<Operations>(std::move(operations_), std::move(copies_));
  }
  void abandon() noexcept override {
    capturing_ = false;
    operations_.clear();
  }
  void launch(Graph& graph, bool /*timed*/, std::span<const HostResult> results) override {
    if (on_replay) on_replay();
    for_each_word(results, [](float& word) { word = std::bit_cast<float>(kUnwritten); });
    const std::scoped_lock lock(device_);
    auto& operations = static_cast<Operations&>(graph);
    EXPECT_FALSE(operations.under_way);
    operations.under_way = operations.launched = true;
    operations.copied = 0;
    launched_.push_back(&operations);
    ++under_way_;
    most_under_way_ = std::max(most_under_way_, under_way_);
  }
  void await_copy(Graph& graph) override {
    EXPECT_TRUE(static_cast<Operations&>(graph).under_way);
    if (on_copy) on_copy();
  }
  std::size_t await_results(Graph& graph, std::size_t have) override {
    const std::scoped_lock lock(device_);
    auto& operations = static_cast<Operations&>(graph);
    EXPECT_TRUE(operations.under_way);
    while (operations.launched) carry_out_next();
    const std::size_t left = operations.copies.size() - operations.copied;
    if (left < 2) return kAll;  // the last one is finish()'s
    const Copy& next = operations.copies[operations.copied++];
    EXPECT_GT(next.end, have);
    next.carry_out();
    ++parts_;
    return next.end;
  }
  double finish(Graph& graph, bool timed, std::span<const HostResult> results) override {
    if (on_finish) on_finish();
    const std::scoped_lock lock(device_);
    auto& operations = static_cast<Operations&>(graph);
    EXPECT_TRUE(operations.under_way);
    while (operations.launched) carry_out_next();
    while (operations.copied < operations.copies.size()) {
      operations.copies[operations.copied++].carry_out();
    }
    operations.under_way = false;
    --under_way_;
    for_each_word(results,
                  [](float word) { EXPECT_NE(std::bit_cast<std::uint32_t>(word), kUnwritten); });
    return timed ? 1e-6 : 0;
  }

 private:
  using Operation = std::function<void()>;
  struct Copy {
    Operation carry_out;
    std::size_t end;  // bytes of results that there are then
  };
  struct Operations final : Graph {
    Operations(std::vector<Operation> taken, std::vector<Copy> of_results)
        : all(std::move(taken)), copies(std::move(of_results)) {}
    ~Operations() override { EXPECT_FALSE(under_way) << "its results have not been waited for"; }
    [[nodiscard]] std::size_t launches() const override { return all.size(); }
    std::vector<Operation> all;
    std::vector<Copy> copies;  // behind them, when somebody waits for results
    std::size_t copied = 0;    // of these
    bool under_way = false;    // nobody has waited for it yet
    bool launched = false;     // and it has not been carried out
  };
  static constexpr std::align_val_t kAlignment{256};
  static constexpr std::uint32_t kUnwritten = 0xFFFFFFFFU;

  static void for_each_word(std::span<const HostResult> results, const auto& visit) {
    for (const HostResult& r : results) {
      for (std::size_t i = 0; i < r.cells * r.used; ++i) {
        visit(r.first[i / r.used * r.stride + i % r.used]);
      }
    }
  }

  static std::byte* side(std::size_t bytes) {
    auto* const memory = static_cast<std::byte*>(operator new(bytes, kAlignment));
    std::memset(memory, 0, bytes);
    return memory;
  }
  /// The batch as it is when an operation is carried out: always a device batch, whose counts are
  /// upper bounds.
  static Batch now(const Batch& b) {
    EXPECT_NE(b.live, nullptr);
    const LiveBatch& live = *b.live;
    EXPECT_TRUE(live.count <= b.count && live.rows <= b.rows && live.lanes <= b.lanes);
    return {live.blocks, live.ids, live.count, live.rows, live.lanes};
  }
  static Rows now(const Rows& rows) {
    if (rows.live == nullptr) return rows;  // of an operation that has no batch
    EXPECT_LE(*rows.live * rows.times, rows.count);
    return Rows(*rows.live * rows.times);
  }
  template <typename Void>
  static BasicView<Void> now(BasicView<Void> view) {
    view.rows = now(view.rows);
    return view;
  }
  static std::optional<Batch> copy(const Batch* batch) {
    return batch == nullptr ? std::nullopt : std::optional<Batch>(*batch);
  }
  /// Carries an operation out, or keeps it.
  void take(Operation operation) const {
    if (capturing_) {
      operations_.push_back(std::move(operation));
      return;
    }
    const std::scoped_lock lock(device_);
    if (!carrying_out_) carry_out_all();  // else it is a part of an operation
    operation();
  }
  void carry_out_next() const {
    Operations& next = *launched_.front();
    launched_.pop_front();
    carrying_out_ = true;
    for (const auto& operation : next.all) operation();
    carrying_out_ = false;
    next.launched = false;
  }
  void carry_out_all() const {
    while (!launched_.empty()) carry_out_next();
  }

  CapturingOps2 ops2_{*Base::ops2(), [this](Operation operation) { take(std::move(operation)); }};
  CapturingPaths paths_{*Base::paths(),
                        [this](Operation operation) { take(std::move(operation)); }};
  bool capturing_ = false;
  mutable std::vector<Operation> operations_;
  std::vector<Copy> copies_;
  std::size_t parts_ = 0;
  mutable std::recursive_mutex device_;  // of what follows, and of operations
  mutable bool carrying_out_ = false;
  mutable std::deque<Operations*> launched_;
  std::size_t under_way_ = 0, most_under_way_ = 0;
  mutable std::uint64_t reads_ = 0;
  int stagings_ = 0;
};

}  // namespace toto::test
