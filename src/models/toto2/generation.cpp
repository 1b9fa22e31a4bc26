// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "models/toto2/forward_cost.h"
#include "toto/error.hpp"

namespace toto::toto2 {
namespace {

std::int32_t divide_up(std::int32_t a, std::int32_t b) { return (a + b - 1) / b; }

}  // namespace

void Generation::begin(std::span<const Request> requests) {
  const std::int32_t patch = net_.patch();
  requests_.assign(requests.begin(), requests.end());
  progress_.clear();
  lanes_ = patches_ = rows_ = wanted_ = positions_ = 0;
  one_pass_ = true;
  for (const Request& r : requests_) {
    check(r);
    Progress p;
    p.context = divide_up(r.steps, patch);
    p.patches = divide_up(r.horizon, patch);
    p.block = r.block <= 0 ? p.patches : std::min(r.block / patch, p.patches);
    one_pass_ = one_pass_ && p.block == p.patches;
    CallSlice& s = p.slice;
    s.variates = r.targets + r.covariates;
    s.targets = r.targets;
    s.lane = static_cast<std::int32_t>(lanes_);
    s.patches = p.context + p.patches;
    s.context = p.context;
    s.array = s.slot = patches_;
    s.slots = s.patches;
    s.fallback = r.fallback;
    s.cap = r.cap;
    lanes_ += s.variates;
    patches_ += std::int64_t{s.variates} * s.patches;
    positions_ = std::max<std::int64_t>(positions_, s.patches);
    rows_ += std::int64_t{s.variates} * std::max(p.context + p.block, 2 * p.block);
    wanted_ += std::int64_t{s.variates} * p.block;
    progress_.push_back(p);
  }
  if (patches_ * 2 * std::max(net_.inner(), patch) > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ExitStatus::usage, "context_too_long",
                fmt::format("{} patches in one batch are too many", patches_), {},
                "forecast fewer series at a time");
  }
}

Capacity Generation::need() const {
  Capacity c;
  c.of[kRows] = rows_;
  c.of[kWanted] = wanted_;
  c.of[kLanes] = lanes_;
  c.of[kPatches] = patches_;
  c.of[kPositions] = positions_;
  c.of[kCaches] = one_pass_ ? std::min(1, net_.time_layers()) : net_.time_layers();
  return c;
}

void check_sizes(std::int32_t patch, std::int64_t steps, std::int64_t horizon,
                 std::uint64_t block) {
  if (block % static_cast<std::uint64_t>(patch) != 0) {
    throw Error(ExitStatus::usage, "invalid_block",
                fmt::format("the block of decoding must be a multiple of the patch size {}, not {}",
                            patch, block));
  }
  const std::int64_t patches = (steps + patch - 1) / patch + (horizon + patch - 1) / patch;
  if (patches > kToto2MaxPatches) {
    throw Error(ExitStatus::usage, "context_too_long",
                fmt::format("context and horizon have {} patches; the model takes {}", patches,
                            kToto2MaxPatches),
                {}, "shorten context or horizon");
  }
}

void Generation::check(const Request& r) const {
  const auto refuse = [](std::string_view code, const std::string& message) {
    throw Error(ExitStatus::usage, code, message);
  };
  if (r.horizon < 1) refuse("invalid_horizon", "the horizon must be at least 1");
  if (r.steps < 1) refuse("too_short", "the context must have at least one step");
  check_sizes(net_.patch(), r.steps, r.horizon,
              static_cast<std::uint64_t>(std::max<std::int32_t>(r.block, 0)));
}

/// The arrays of spec B4 of one request: left-padded to whole patches by the mask, the last patch
/// of targets observed, covariates after the targets.
void Generation::place(std::size_t index) {
  const std::int32_t patch = net_.patch();
  const Request& r = requests_[index];
  Progress& p = progress_[index];
  CallSlice& s = p.slice;
  const std::int32_t pad = p.context * patch - r.steps;
  std::int32_t leading = p.context;  // patches that are hidden in every variate
  for (std::int32_t v = 0; v < s.variates; ++v) {
    const bool target = v < r.targets;
    const std::int32_t e = target ? v : v - r.targets;
    const std::int32_t each = target ? r.steps : r.known_steps;
    const auto from = std::ptrdiff_t{e} * each;
    const std::ptrdiff_t lane = s.array + std::ptrdiff_t{v} * s.patches;
    const std::ptrdiff_t to = lane * patch + pad;
    const std::int32_t steps = std::min(each, s.patches * patch - pad);
    std::copy_n((target ? r.values : r.known).begin() + from, steps, values_.begin() + to);
    std::copy_n((target ? r.mask : r.known_mask).begin() + from, steps, mask_.begin() + to);
    groups_[static_cast<std::size_t>(std::int64_t{s.lane} + v)] =
        (target ? r.groups : r.known_groups)[static_cast<std::size_t>(e)];
    const auto patch_mask = [&](std::int32_t at) { return mask_.begin() + (lane + at) * patch; };
    if (target) std::fill_n(patch_mask(p.context - 1), patch, std::uint8_t{1});
    std::int32_t first = p.context;
    for (std::int32_t at = 0; at < p.context; ++at) {
      const bool none = std::none_of(patch_mask(at), patch_mask(at + 1),
                                     [](std::uint8_t seen) { return seen != 0; });
      hidden_[static_cast<std::size_t>(lane + at)] = none ? 1 : 0;
      p.hides = p.hides || none;
      if (!none) first = std::min(first, at);
    }
    leading = std::min(leading, first);
  }
  // Leading patches that no variate has observed are seen by nobody who matters.
  if (net_.trim() && r.has_missing_values) s.first_slot = leading;
}

void Generation::stage(const Toto2Workspace& memory) {
  values_.assign(static_cast<std::size_t>(patches_) * static_cast<std::size_t>(net_.patch()), 0.0F);
  mask_.assign(values_.size(), 0);
  hidden_.assign(static_cast<std::size_t>(patches_), 0);
  groups_.assign(static_cast<std::size_t>(lanes_), 0);
  for (std::size_t i = 0; i < requests_.size(); ++i) place(i);
  const Backend& be = net_.backend();
  const SeriesArrays& a = memory.arrays;
  be.upload(std::span<const float>(values_), a.values);
  be.upload_bytes(mask_, a.mask);
  be.upload_bytes(hidden_, a.hidden);
  be.upload_bytes({reinterpret_cast<const std::uint8_t*>(groups_.data()),
                   groups_.size() * sizeof(std::int32_t)},
                  a.groups);
}

void Generation::next_call() {
  all_slices_.clear();
  wanted_slices_.clear();
  active_.clear();
  std::int32_t rows = 0;
  std::int32_t wanted_rows = 0;
  const std::int32_t spare = net_.trim() ? 1 : 0;  // the last placeholder, which nobody reads
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Progress& p = progress_[i];
    if (p.done == p.patches) continue;
    const bool first = p.done == 0;
    const std::int32_t b = std::min(p.block, p.patches - p.done);
    CallSlice all = p.slice;
    all.row = rows;
    all.patch = first ? p.slice.first_slot : p.context + p.done - p.block;
    all.tokens = p.context + p.done + b - all.patch - spare;
    all.ids = first ? all.patch : 0;
    all.centre = (p.context + p.done + b) / 2;
    all.time_mask = p.hides && (requests_[i].has_missing_values || !first);
    all.refed = first ? 0 : p.block;
    rows += all.rows();
    CallSlice wanted = all;
    wanted.row = wanted_rows;
    wanted.patch = p.context + p.done - 1;
    wanted.tokens = b;
    wanted.ids += wanted.patch - all.patch;
    wanted_rows += wanted.rows();
    all_slices_.push_back(all);
    wanted_slices_.push_back(wanted);
    active_.push_back(i);
  }
  const auto count = static_cast<std::int32_t>(all_slices_.size());
  all_call_ = {all_slices_.data(), count, rows};
  wanted_call_ = {wanted_slices_.data(), count, wanted_rows};
}

Cost Generation::run(const Toto2Workspace& memory, Sink& sink) {
  Cost cost;
  stage(memory);
  const Ops2& ops = net_.ops();
  for (std::int32_t index = 0;; ++index) {
    next_call();
    if (all_slices_.empty()) break;
    ops.statistics(all_call_, memory.arrays);
    if (index == 0) ops.cap_bounds(all_call_, memory.arrays);
    ops.embed_inputs(all_call_, memory.arrays, memory.act.inputs);
    const Toto2Observer observer = sink.observer(index, all_call_, wanted_call_);
    net_.forward(all_call_, wanted_call_, memory.arrays, memory.rotary, memory.kv, memory.act,
                 &observer);
    ops.quantiles(wanted_call_, memory.arrays, memory.act.raw, memory.quantiles);
    cost += forward_cost(net_, all_call_, wanted_call_);
    deliver(memory, index, sink);
    feed_back(memory);
  }
  return cost;
}

void Generation::deliver(const Toto2Workspace& memory, std::int32_t index, Sink& sink) {
  const Backend& be = net_.backend();
  const auto of_row = static_cast<std::size_t>(kQuantiles) * static_cast<std::size_t>(net_.patch());
  const std::size_t cells = static_cast<std::size_t>(wanted_call_.rows) * of_row;
  results_.resize(cells);
  be.download(memory.quantiles, results_);
  if (sink.wants_raw()) {
    raw_.resize(cells);
    be.download(memory.act.raw, raw_);
  }
  if (sink.wants_statistics()) {
    loc_.resize(static_cast<std::size_t>(patches_));
    scale_.resize(loc_.size());
    be.download(memory.arrays.loc, loc_);
    be.download(memory.arrays.scale, scale_);
  }
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const CallSlice& s = wanted_slices_[i];
    const std::size_t at = static_cast<std::size_t>(s.row) * of_row;
    const std::size_t count = static_cast<std::size_t>(s.rows()) * of_row;
    Block block;
    block.request = active_[i];
    block.index = index;
    block.first = progress_[active_[i]].done;
    block.patches = s.tokens;
    block.variates = s.variates;
    block.quantiles = std::span(results_).subspan(at, count);
    if (sink.wants_raw()) block.raw = std::span(raw_).subspan(at, count);
    if (sink.wants_statistics()) {
      const auto lane = static_cast<std::size_t>(s.array);
      const std::size_t patches =
          static_cast<std::size_t>(s.variates) * static_cast<std::size_t>(s.patches);
      block.loc = std::span(loc_).subspan(lane, patches);
      block.scale = std::span(scale_).subspan(lane, patches);
    }
    sink.block(block);
  }
}

void Generation::feed_back(const Toto2Workspace& memory) {
  net_.ops().feed_back(wanted_call_, memory.quantiles, memory.arrays);
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Progress& p = progress_[active_[i]];
    const Request& r = requests_[active_[i]];
    if (!r.feedback.empty()) force_feedback(memory, r, p, p.done, wanted_slices_[i].tokens);
    p.done += wanted_slices_[i].tokens;
  }
}

void Generation::force_feedback(const Toto2Workspace& memory, const Request& r, const Progress& p,
                                std::int32_t first, std::int32_t count) {
  const auto patch = static_cast<std::size_t>(net_.patch());
  const auto cells = static_cast<std::size_t>(count) * patch;
  auto* const values = static_cast<std::byte*>(memory.arrays.values);
  for (std::int32_t v = 0; v < r.targets; ++v) {
    const std::int64_t to = p.slice.array + std::int64_t{v} * p.slice.patches + p.context + first;
    const std::int64_t from = std::int64_t{v} * p.patches + first;
    net_.backend().upload(
        r.feedback.subspan(static_cast<std::size_t>(from) * patch, cells),
        values + static_cast<std::size_t>(to) * patch * net_.backend().element_size());
  }
}

void generate(const Toto2& net, std::span<const Request> requests, Sink& sink) {
  Generation generation(net);
  generation.begin(requests);
  const Capacity need = generation.need();
  const Capacity tables_for = tables_of(need);
  Backend& be = net.backend();
  const auto release = [&be](void* memory) { be.release(memory); };
  const std::unique_ptr<void, decltype(release)> tables(be.allocate(table_bytes(net, tables_for)),
                                                        release);
  fill_tables(net, tables_for, static_cast<std::byte*>(tables.get()));
  const std::unique_ptr<void, decltype(release)> memory(
      be.allocate(lay_out(net, need, nullptr, tables_for, nullptr)->bytes), release);
  const auto workspace = lay_out(net, need, static_cast<std::byte*>(memory.get()), tables_for,
                                 static_cast<std::byte*>(tables.get()));
  generation.run(*workspace, sink);
}

}  // namespace toto::toto2
