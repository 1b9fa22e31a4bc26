// SPDX-License-Identifier: Apache-2.0
// The requests that every way of running is compared on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/verify/record.h"
#include "toto/tools/verify.hpp"

namespace toto::verify {

/// A series that owns its memory.
struct OwnedSeries {
  std::string id;
  std::size_t variates = 1;
  std::vector<float> values;  // [V][T]
  std::vector<std::uint8_t> mask;
  std::vector<std::int32_t> groups;
  std::size_t exogenous = 0;
  std::vector<float> future;
  [[nodiscard]] Series view() const;
};

/// The last `steps` steps before `end` of a series, targets only.
OwnedSeries cut(const Series& series, std::size_t end, std::size_t steps);

/// Two seasons, a trend and noise by formula: something like data where the user gave none. No two
/// `which` are alike.
OwnedSeries made_series(std::size_t which, std::size_t steps, std::size_t variates = 1);

struct Case {
  std::string name;
  std::vector<OwnedSeries> series;
  std::size_t horizon = 0;
  bool cached = true;
  std::int32_t trajectories = 1;
  /// Teacher forcing: what takes the place of predictions, [trajectories][V][R*P] of each series.
  /// Empty: means are fed back.
  std::vector<std::vector<float>> forced;
  /// The longest and the widest case are held against `eager` alone in the quick suite: in float64
  /// they would take as long as all others.
  bool with_float64 = true;
};

/// `eager` says what teacher forcing feeds back: its own mean trajectory, and one beside it.
std::vector<Case> make_cases(const VerifyOptions& options, const Model& eager);

/// With the memory limit and the number of plans that are given.
Record run_case(const Model& model, const Case& one, const ForecasterOptions& limits);
/// For a model on the reference backend, which needs no turns: may be called from several threads.
Record run_case_beside_others(const Model& exact, const Case& one);

std::vector<Series> views(const std::vector<OwnedSeries>& owned);

}  // namespace toto::verify
