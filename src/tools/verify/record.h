// SPDX-License-Identifier: Apache-2.0
// Everything a run of the engine says, patch by patch and in units that can be compared, and the
// distance between two such records.
#pragma once

#include <map>
#include <vector>

#include "models/network.h"

namespace toto::verify {

/// Parameters of the mixtures or quantiles, the scaler's statistics and, where values are fed back,
/// those values, in scaled units. Trajectory 0 of the first patch, which all share; all of them
/// beyond.
struct Record {
  std::vector<std::vector<double>> patches;
};

class RecordProbe final : public Probe {
 public:
  /// `values`: record what is predicted as well.
  explicit RecordProbe(bool values) : values_(values) {}
  [[nodiscard]] bool wants_parameters(std::int32_t) const override { return true; }
  void parameters(const PatchView& at, std::span<const double> params, std::span<const double> loc,
                  std::span<const double> scale) override;
  void quantiles(const PatchView& at, std::span<const double> quantiles,
                 std::span<const double> loc, std::span<const double> scale) override;
  void values(const PatchView& at, std::span<const double> y) override;

  Record record;

 private:
  std::vector<double>& patch(std::int32_t iteration);
  bool values_;
  std::map<std::size_t, std::vector<double>> scale_;  // of each series, trajectory 0
};

/// |a - b| / (1 + |b|) over all numbers; infinite where records do not fit or a number is not
/// finite.
struct Distance {
  double mean = 0;
  double largest = 0;
  std::size_t patch = 0;  // where the largest is
};
Distance distance(const Record& a, const Record& b);

}  // namespace toto::verify
