// SPDX-License-Identifier: Apache-2.0
// What is made of the distribution of every step where it is known by its quantiles
// (statistics/knots.h): statistics, parameters, trajectories. For programs that compute on the
// host.
//
// Mean, deviation and levels follow from the quantiles without sampling. Trajectories draw every
// step on its own: the quantiles say nothing about how steps depend on each other.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "models/executor.h"
#include "models/network.h"

namespace toto {

class KnotResults {
 public:
  /// Sizes of a key, but for its rows: all steps are exact, and their parameters are location and
  /// scale.
  static void size(const MicroBatch& batch, std::int32_t patch, ProgramKey& key);

  /// Starts on the results of a batch, and the stage of prefill. Nothing is allocated the next
  /// time.
  void begin(Executor& executor, const MicroBatch& batch, const ProgramKey& key,
             std::int32_t patch);
  /// One step of a variate of batch.items[item]: `knots` ascending, `loc` and `scale` of its patch.
  void put(std::size_t item, std::int32_t variate, std::int32_t step, std::span<const double> knots,
           double loc, double scale);
  /// After the last step: reports progress, forms statistics of trajectories, ends the stages of
  /// the executor, and shows the quantiles to a probe.
  void finish(Executor& executor);

 private:
  /// What a probe is shown of one patch.
  struct Shown {
    std::vector<double> quantiles, loc, scale;
  };
  void show_step(const Item& item, std::int32_t variate, std::int32_t step,
                 std::span<const double> knots, double loc, double scale);
  void sample_statistics(const Executor& executor);

  const MicroBatch* batch_ = nullptr;
  const ProgramKey* key_ = nullptr;
  std::int32_t patch_ = 0;
  ResultPointers out_;
  Probe* probe_ = nullptr;
  std::vector<std::int64_t> lanes_;  // first of each item
  std::vector<Block> sources_;
  std::map<std::pair<std::size_t, std::int32_t>, Shown> shown_;  // of each series and iteration
};

}  // namespace toto
