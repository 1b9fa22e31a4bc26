// SPDX-License-Identifier: Apache-2.0
// What every part of a run of Toto1Program looks at.
#pragma once

#include "models/toto1/program.h"

namespace toto {

struct Toto1Program::Run {
  Executor& ex;
  const MicroBatch& batch;  // not to be looked at while capturing
  const ProgramKey& key;
  const Toto1Workspace& w;
  Inputs at;
  Batch last = {};    // last tokens of the context call
  Batch source = {};  // one trajectory of each series: its lanes are the variates
  PatchShape shape = {};
  EarlyResults early = {};  // of the last prefill
  std::int32_t images = 0;  // of calls that decode, written so far

  /// [lanes][steps*4*K]: parameters of the next patch of these lanes.
  [[nodiscard]] View params(const Batch& lanes_of, bool from_context) const {
    return (from_context ? w.context_params : w.act.params)
        .shaped(lanes_of.all_lanes(), std::int64_t{shape.steps} * 4 * shape.components);
  }
};

}  // namespace toto
