// SPDX-License-Identifier: Apache-2.0
// From the backend's memory to the sink, series by series.
#include "core/stopwatch.h"
#include "engine/engine.h"

namespace toto {

void Engine::emit_parameters(const Chunk& chunk, std::int32_t iteration, std::int32_t first_sample,
                             std::int32_t trajectories, Kind from, Sink& sink) {
  const Stopwatch watch(emit_seconds_);
  const Backend& be = net_.backend();
  const Workspace& w = *memory_;
  const auto lanes = static_cast<std::size_t>(trajectories * chunk.variates);
  const std::int32_t components = net_.config().components;
  const std::size_t stride =
      static_cast<std::size_t>(steps_) * 4 * static_cast<std::size_t>(components);
  const auto patch = static_cast<std::size_t>(patch_);
  params_.resize(lanes * stride);
  loc_.resize(lanes * patch);
  scale_.resize(lanes * patch);
  const bool context = from == Kind::context;
  be.download(context ? w.context_params : w.act.params, params_);
  be.download(context ? w.context_loc : w.lane_loc, loc_);
  be.download(context ? w.context_scale : w.lane_scale, scale_);
  std::size_t lane = 0;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    const std::int32_t variates = prepared_[i].variates;
    const PatchView at{chunk.first + i, iteration, first_sample, trajectories,
                       variates,        patch_,    steps_,       components};
    const std::size_t count =
        static_cast<std::size_t>(trajectories) * static_cast<std::size_t>(variates);
    sink.parameters(at, std::span(params_).subspan(lane * stride, count * stride),
                    std::span(loc_).subspan(lane * patch, count * patch),
                    std::span(scale_).subspan(lane * patch, count * patch));
    lane += count;
  }
}

void Engine::emit_values(const Chunk& chunk, std::int32_t iteration, std::int32_t first_sample,
                         std::int32_t trajectories, Sink& sink) {
  const Stopwatch watch(emit_seconds_);
  const auto patch = static_cast<std::size_t>(patch_);
  const auto lanes = static_cast<std::size_t>(trajectories * chunk.variates);
  y_.resize(lanes * patch);
  net_.backend().download(memory_->y, y_);
  if (again_) {  // the next call on the context takes it in
    const std::size_t stride = static_cast<std::size_t>(patches_) * patch;
    generated_.resize(lanes * stride);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      std::copy_n(
          y_.begin() + static_cast<std::ptrdiff_t>(lane * patch), patch,
          generated_.begin() + static_cast<std::ptrdiff_t>(
                                   lane * stride + static_cast<std::size_t>(iteration) * patch));
    }
  }
  std::size_t lane = 0;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    const std::int32_t variates = prepared_[i].variates;
    const PatchView at{chunk.first + i, iteration, first_sample, trajectories,
                       variates,        patch_,    steps_,       net_.config().components};
    const std::size_t count =
        static_cast<std::size_t>(trajectories) * static_cast<std::size_t>(variates);
    sink.values(at, std::span(y_).subspan(lane * patch, count * patch));
    lane += count;
  }
}

}  // namespace toto
