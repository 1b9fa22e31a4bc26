// SPDX-License-Identifier: Apache-2.0
// What is made of the distribution of every step where it is known by its quantiles
// (statistics/knots.h): statistics, parameters, trajectories.
//
// Mean, deviation and levels follow from the quantiles without sampling. The quantiles say nothing
// about how steps depend on each other: trajectories draw every step on its own, or of scores that
// a program has left (Ops2::knot_chains).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "backend/ops2.h"
#include "models/executor.h"
#include "models/network.h"
#include "statistics/knots.h"

namespace toto {

[[nodiscard]] constexpr KnotTails knot_tails(Tails tails) {
  switch (tails) {
    case Tails::automatic:  // nobody has chosen
    case Tails::clamp:
      return KnotTails::clamped;
    case Tails::exponential:
      return KnotTails::exponential;
    case Tails::normal:
      break;
  }
  return KnotTails::normal;
}

class KnotResults {
 public:
  /// Sizes of a key, but for its rows: all steps are exact, and their parameters are location and
  /// scale.
  static void size(const MicroBatch& batch, std::int32_t patch, ProgramKey& key);
  /// Of a staging buffer, and what is written there from `at` on.
  [[nodiscard]] static std::size_t input_bytes(const ProgramKey& key);
  void stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in, std::size_t at);

  /// Starts on the results of a batch, and the stage of prefill; `at` as for stage(). Looks at the
  /// batch only where somebody looks inside. Nothing is allocated the next time.
  void begin(Executor& executor, const MicroBatch& batch, const ProgramKey& key, std::int32_t patch,
             std::size_t at);
  /// Where Ops2::knot_results puts what is wanted of every step.
  [[nodiscard]] KnotOutputs outputs() const;
  /// One step of a variate of batch.items[item], for a program that computes on the host: `knots`
  /// ascending, `loc` and `scale` of its patch.
  void put(std::size_t item, std::int32_t variate, std::int32_t step, std::span<const double> knots,
           double loc, double scale);
  /// Shows such a step to the probe, if there is one.
  void show(std::size_t item, std::int32_t variate, std::int32_t step,
            std::span<const double> knots, double loc, double scale);
  /// After the last step: reports progress, forms statistics of trajectories, ends the stages of
  /// the executor, and shows the quantiles to a probe.
  void finish(Executor& executor);

 private:
  /// What a probe is shown of one patch.
  struct Shown {
    std::vector<double> quantiles, loc, scale;
  };

  const MicroBatch* batch_ = nullptr;
  const ProgramKey* key_ = nullptr;
  std::int32_t patch_ = 0;
  std::size_t at_ = 0;  // of the image of sources
  ResultPointers out_;
  Levels levels_;
  Probe* probe_ = nullptr;
  std::vector<CallSlice> items_;  // what put() needs of each item
  std::vector<Block> sources_;
  std::map<std::pair<std::size_t, std::int32_t>, Shown> shown_;  // of each series and iteration
};

}  // namespace toto
