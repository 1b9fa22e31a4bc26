// SPDX-License-Identifier: Apache-2.0
// The names of the operations of the seam, as a trace (`--trace`) and a profiler show them.
#pragma once

#include <array>
#include <cstdint>

#include "core/trace.h"

namespace toto {

enum class Operation : std::uint8_t {
  copy_in,
  copy_in_and_scale,
  copy_out,
  scale,
  repeat_state,
  linear,
  linear_silu,
  rms_norm,
  norm_linear,
  stack,
  set_labels,
  rotary_append,
  time_attention,
  append_and_attend,
  variate_attention,
  gather_last,
  gather,
  distribution,
  predict_mean,
  predict_draw,
  inject,
  keep,
  exact_statistics,
  sample_statistics,
  keep_parameters,
  inputs,
  quantiles,
  knot_results,
  feed_back,
  knot_neighbours,
  knot_chains,
  neighbours,
  draw,
};

/// In the order of Operation. Each is the name of a function of Backend, PathOps or Ops2.
inline constexpr std::array kOperationNames = {
    "copy_in",
    "copy_in_and_scale",
    "copy_out",
    "scale",
    "repeat_state",
    "linear",
    "linear_silu",
    "rms_norm",
    "norm_linear",
    "stack",
    "set_labels",
    "rotary_append",
    "time_attention",
    "append_and_attend",
    "variate_attention",
    "gather_last",
    "gather",
    "distribution",
    "predict_mean",
    "predict_draw",
    "inject",
    "keep",
    "exact_statistics",
    "sample_statistics",
    "keep_parameters",
    "inputs",
    "quantiles",
    "knot_results",
    "feed_back",
    "knot_neighbours",
    "knot_chains",
    "neighbours",
    "draw",
};
static_assert(kOperationNames.size() == static_cast<std::size_t>(Operation::draw) + 1);

/// An operation as a span. On a device it lasts until the operation is in the stream, not until it
/// has been carried out; a profiler knows which kernels belong to it.
class OperationSpan : public Span {
 public:
  explicit OperationSpan(Operation operation)
      : Span(kOperationNames[static_cast<std::size_t>(operation)]) {}
};

}  // namespace toto
