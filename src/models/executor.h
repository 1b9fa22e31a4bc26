// SPDX-License-Identifier: Apache-2.0
// How a program is carried out: its operations at once, or captured into a graph.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "backend/batch_image.h"
#include "core/trace.h"
#include "models/network.h"

namespace toto {

/// Where the time of a forecast goes, in seconds.
struct StageTimes {
  double prepare = 0;  // checking, padding, copying in
  double prefill = 0;  // the network over contexts
  double decode = 0;   // the network over further patches, and draws
  double statistics = 0;
};

class Executor {
 public:
  Executor(Backend& on, const Staging& inputs, std::size_t inputs_at, const Levels& asked,
           const ResultPointers& results, bool capture, Probe* who, StageTimes& times)
      : backend(on),
        in(inputs),
        in_at(inputs_at),
        levels(asked),
        out(results),
        capturing(capture),
        probe(who),
        times_(times) {}

  Backend& backend;
  const Staging& in;  // its inputs are from in_at on; levels lie before
  const std::size_t in_at;
  const Levels levels;
  const ResultPointers out;
  const bool capturing;  // operations are captured, not carried out
  Probe* const probe;    // looks inside; nullptr: nobody does. Never while capturing

  /// Upper bounds of a batch, of which a captured operation makes use.
  struct Bounds {
    std::int32_t series = 0, rows = 0, lanes = 0, variates = 0;
    std::int32_t keys = 0;  // as Batch has them
  };
  /// The batch whose image lies at `at` of the inputs.
  [[nodiscard]] Batch batch(std::size_t at, const Bounds& bounds) const {
    const auto* const image = in.host + at;
    if (!capturing && !backend.reads_device_batches()) return batch_of_image(image);
    Batch b;
    b.live = reinterpret_cast<const LiveBatch*>(in.device + at);
    b.variates = bounds.variates;
    b.keys = bounds.keys;
    if (capturing) {
      b.count = bounds.series;
      b.rows = bounds.rows;
      b.lanes = bounds.lanes;
      return b;
    }
    const auto& head = *reinterpret_cast<const LiveBatch*>(image);
    b.count = head.count;
    b.rows = head.rows;
    b.lanes = head.lanes;
    return b;
  }
  [[nodiscard]] const float* staged(std::size_t at) const {
    return reinterpret_cast<const float*>(in.device + at);
  }

  /// Units of work (a patch of a trajectory) that have been done; may throw to stop.
  void done(std::size_t units) {
    if (!capturing && on_progress) on_progress(units);
  }
  std::function<void(std::size_t units)> on_progress;

  /// Counts the time from here on as that of a stage. Only where operations are carried out.
  void stage(double StageTimes::*next) {
    if (capturing) return;
    const auto now = std::chrono::steady_clock::now();
    if (stage_ != nullptr) times_.*stage_ += std::chrono::duration<double>(now - since_).count();
    span_.reset();
    if (next != nullptr) span_.emplace(name_of(next));
    stage_ = next;
    since_ = now;
  }
  void end() { stage(nullptr); }

 private:
  static const char* name_of(double StageTimes::*stage) {
    return stage == &StageTimes::prefill   ? "prefill"
           : stage == &StageTimes::decode  ? "decode"
           : stage == &StageTimes::prepare ? "prepare"
                                           : "statistics";
  }

  StageTimes& times_;
  double StageTimes::*stage_ = nullptr;
  std::chrono::steady_clock::time_point since_;
  std::optional<Span> span_;  // of the stage
};

}  // namespace toto
