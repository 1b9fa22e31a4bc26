// SPDX-License-Identifier: Apache-2.0
// For those who look inside a program that is executed at once, and for what is fed back through
// the host: forced values, and contexts that are recomputed.
#include <algorithm>

#include "models/toto1/program.h"
#include "models/toto1/run.h"

namespace toto {

void Toto1Program::show_parameters(Run& run, std::int32_t iteration, std::int32_t first_sample,
                                   bool from_context) const {
  const std::int32_t steps = run.shape.steps;
  Probe* const probe = run.ex.probe;
  if (probe == nullptr || !probe->wants_parameters(iteration)) return;
  const Toto1Workspace& w = run.w;
  const Batch& batch = from_context ? last_ : further_;
  const auto patch = static_cast<std::size_t>(patch_);
  const std::int32_t components = net_.config().components;
  const std::size_t stride =
      static_cast<std::size_t>(steps) * 4 * static_cast<std::size_t>(components);
  const auto lanes = static_cast<std::size_t>(batch.lanes);
  std::vector<double> params(lanes * stride), loc(lanes * patch), scale(lanes * patch);
  const Backend& be = run.ex.backend;
  be.download(from_context ? w.context_params : w.act.params, params);
  be.download(from_context ? w.context_loc : w.lane_loc, loc);
  be.download(from_context ? w.context_scale : w.lane_scale, scale);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    if (b.lanes() == 0) continue;
    const PatchView at{run.batch.items[static_cast<std::size_t>(i)].index,
                       iteration,
                       first_sample,
                       b.trajectories,
                       b.variates,
                       patch_,
                       steps,
                       components};
    const auto first = static_cast<std::size_t>(b.lane);
    const auto count = static_cast<std::size_t>(b.lanes());
    probe->parameters(at, std::span(params).subspan(first * stride, count * stride),
                      std::span(loc).subspan(first * patch, count * patch),
                      std::span(scale).subspan(first * patch, count * patch));
  }
}

void Toto1Program::show_values(Run& run, std::int32_t iteration, std::int32_t first_sample) const {
  Probe* const probe = run.ex.probe;
  if (probe == nullptr) return;
  const auto patch = static_cast<std::size_t>(patch_);
  std::vector<double> y(static_cast<std::size_t>(further_.lanes) * patch);
  run.ex.backend.download(run.w.y, y);
  for (std::int32_t i = 0; i < further_.count; ++i) {
    const Block& b = further_.blocks[i];
    if (b.lanes() == 0) continue;
    const PatchView at{run.batch.items[static_cast<std::size_t>(i)].index,
                       iteration,
                       first_sample,
                       b.trajectories,
                       b.variates,
                       patch_,
                       run.shape.steps,
                       net_.config().components};
    probe->values(at, std::span(y).subspan(static_cast<std::size_t>(b.lane) * patch,
                                           static_cast<std::size_t>(b.lanes()) * patch));
  }
}

/// The patch just predicted, for the next call on the context.
void Toto1Program::take_generated(Run& run, std::int32_t iteration) {
  const auto patch = static_cast<std::size_t>(patch_);
  std::vector<double> y(static_cast<std::size_t>(further_.lanes) * patch);
  run.ex.backend.download(run.w.y, y);
  const std::size_t stride = static_cast<std::size_t>(run.key.patches) * patch;
  generated_.resize(static_cast<std::size_t>(further_.lanes) * stride);
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(further_.lanes); ++lane) {
    std::copy_n(
        y.begin() + static_cast<std::ptrdiff_t>(lane * patch), patch,
        generated_.begin() + static_cast<std::ptrdiff_t>(
                                 lane * stride + static_cast<std::size_t>(iteration) * patch));
  }
}

/// Teacher forcing: given values take the place of the patch.
void Toto1Program::force(Run& run, std::int32_t iteration, std::int32_t first_sample) const {
  const auto patch = static_cast<std::size_t>(patch_);
  std::vector<float> y;
  y.reserve(static_cast<std::size_t>(further_.lanes) * patch);
  for (std::int32_t i = 0; i < further_.count; ++i) {
    const Item& item = run.batch.items[static_cast<std::size_t>(i)];
    const Block& b = further_.blocks[i];
    const auto first =
        static_cast<std::size_t>(first_sample) * static_cast<std::size_t>(b.variates);
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(b.lanes()); ++lane) {
      const std::size_t at = ((first + lane) * static_cast<std::size_t>(item.patches) +
                              static_cast<std::size_t>(iteration)) *
                             patch;
      const std::span<const float> from = item.forced.subspan(at, patch);
      y.insert(y.end(), from.begin(), from.end());
    }
  }
  run.ex.backend.upload(std::span<const float>(y), run.w.y);
}

}  // namespace toto
