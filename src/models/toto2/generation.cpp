// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backend/call_image.h"
#include "backend/share_out.h"
#include "models/toto2/forward_cost.h"
#include "toto/error.hpp"

namespace toto::toto2 {
namespace {

std::int32_t divide_up(std::int32_t a, std::int32_t b) { return (a + b - 1) / b; }

}  // namespace

/// Offsets from the first byte of the program's inputs.
struct Generation::Inputs {
  std::size_t values, mask, hidden, groups;
  std::size_t calls, each;  // images: of all tokens and of the wanted ones by turns
  std::size_t end;

  Inputs(const BatchSizes& room, std::int32_t patch, std::size_t at) {
    Offsets offsets(at);
    const auto patches = static_cast<std::size_t>(room.patches);
    const std::size_t cells = patches * static_cast<std::size_t>(patch);
    values = offsets.take(cells * sizeof(float));
    mask = offsets.take(cells);
    hidden = offsets.take(patches);
    groups = offsets.take(static_cast<std::size_t>(room.lanes) * sizeof(std::int32_t));
    each = CallLayout(room.series).bytes;
    calls = offsets.take(2 * static_cast<std::size_t>(room.calls) * each);
    end = offsets.used();
  }
  [[nodiscard]] std::size_t all(std::int32_t call) const {
    return calls + 2 * static_cast<std::size_t>(call) * each;
  }
  [[nodiscard]] std::size_t wanted(std::int32_t call) const { return all(call) + each; }
};

void Generation::begin(std::span<const Request> requests) {
  start(requests);
  share_out(net_.backend(), requests.size(), [&](std::size_t i) { take(i); });
  add_up();
}

void Generation::start(std::span<const Request> requests) {
  requests_ = requests;
  progress_.resize(requests.size());
}

void Generation::take(std::size_t index) {
  const std::int32_t patch = net_.patch();
  const Request& r = requests_[index];
  check(r);
  Progress& p = progress_[index];
  p = {};
  p.context = divide_up(r.steps, patch);
  p.patches = divide_up(r.horizon, patch);
  p.block = r.block <= 0 ? p.patches : std::min(r.block / patch, p.patches);
  p.variates = r.targets + r.covariates;
  p.coherent = r.coherent;
}

CallSlice Generation::slice_of(std::size_t index) const {
  const Request& r = requests_[index];
  const Progress& p = progress_[index];
  CallSlice s;
  s.variates = p.variates;
  s.targets = r.targets;
  s.lane = p.lane;
  s.array = s.slot = p.array;
  s.patches = s.slots = p.context + p.patches;
  s.first_slot = p.first_slot;
  s.context = p.context;
  s.fallback = r.fallback;
  s.cap = r.cap;
  s.seed = r.seed;
  s.key = r.key;
  s.horizon = r.horizon;
  s.trajectories = r.trajectories;
  s.tails = r.tails;
  s.level_first = r.level_first;
  s.level_count = r.level_count;
  s.request = static_cast<std::int32_t>(index);
  return s;
}

/// Where everything lies, and how much there is.
void Generation::add_up() {
  const std::int32_t patch = net_.patch();
  positions_ = 0;
  one_pass_ = true;
  std::int64_t lanes = 0, patches = 0, rows = 0, wanted = 0;
  sizes_ = {};
  for (Progress& p : progress_) {
    const bool one = p.block == p.patches;
    one_pass_ = one_pass_ && one;
    sizes_.calls = std::max(sizes_.calls, one ? 1 : divide_up(p.patches, p.block));
    p.lane = static_cast<std::int32_t>(lanes);
    p.array = patches;
    const std::int32_t each = p.context + p.patches;
    lanes += p.variates;
    patches += std::int64_t{p.variates} * each;
    positions_ = std::max<std::int64_t>(positions_, each);
    rows += std::int64_t{p.variates} * std::max(p.context + p.block, 2 * p.block);
    wanted += std::int64_t{p.variates} * (p.block + path_tokens(p.coherent, p.context));
  }
  if (patches * 2 * std::max(net_.inner(), patch) > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ExitStatus::usage, "context_too_long",
                fmt::format("{} patches in one batch are too many", patches), {},
                "forecast fewer series at a time");
  }
  sizes_.series = static_cast<std::int32_t>(requests_.size());
  sizes_.lanes = static_cast<std::int32_t>(lanes);
  sizes_.rows = static_cast<std::int32_t>(rows);
  sizes_.wanted = static_cast<std::int32_t>(wanted);
  sizes_.patches = patches;
  sizes_.keys = static_cast<std::int32_t>(positions_);
}

Capacity Generation::need() const {
  Capacity c;
  c.of[kRows] = sizes_.rows;
  c.of[kWanted] = sizes_.wanted;
  c.of[kLanes] = sizes_.lanes;
  c.of[kPatches] = sizes_.patches;
  c.of[kPositions] = positions_;
  c.of[kCaches] = one_pass_ ? std::min(1, net_.time_layers()) : net_.time_layers();
  return c;
}

std::size_t Generation::input_bytes(const BatchSizes& room) const {
  return Inputs(room, net_.patch(), 0).end;
}

void check_sizes(std::int32_t patch, std::int64_t steps, std::int64_t horizon,
                 std::uint64_t block) {
  if (block != 0 && block % static_cast<std::uint64_t>(patch) != 0) {
    throw Error(ExitStatus::usage, "invalid_block",
                fmt::format("the block of decoding must be a multiple of the patch size {}, not {}",
                            patch, block));
  }
  if (steps + horizon <= std::int64_t{kToto2MaxPatches - 2} * patch) return;  // without a division
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
void Generation::place(std::size_t index, const HostArrays& to) {
  const std::int32_t patch = net_.patch();
  const Request& r = requests_[index];
  Progress& p = progress_[index];
  const std::int32_t patches = p.context + p.patches;
  const std::int32_t pad = p.context * patch - r.steps;
  std::int32_t leading = p.context;  // patches that are hidden in every variate
  p.whole = true;
  for (std::int32_t v = 0; v < p.variates; ++v) {
    const bool target = v < r.targets;
    const std::int32_t e = target ? v : v - r.targets;
    const std::int32_t each = target ? r.steps : r.known_steps;
    const auto from = std::ptrdiff_t{e} * each;
    const std::ptrdiff_t lane = p.array + std::ptrdiff_t{v} * patches;
    const std::int32_t steps = std::min(each, patches * patch - pad);
    const std::int32_t after = patches * patch - pad - steps;
    const auto put = [&]<typename T>(std::span<const T> given, T* at) {
      at = std::fill_n(at + lane * patch, pad, T{});
      at = std::copy_n(given.begin() + from, steps, at);
      std::fill_n(at, after, T{});
    };
    put(target ? r.values : r.known, to.values);
    put(target ? r.mask : r.known_mask, to.mask);
    to.groups[p.lane + v] = (target ? r.groups : r.known_groups)[static_cast<std::size_t>(e)];
    const auto patch_mask = [&](std::int32_t at) { return to.mask + (lane + at) * patch; };
    if (target) {
      const std::uint8_t* const last = patch_mask(p.context - 1);
      p.whole = p.whole && std::find(last, last + patch, 0) == last + patch;
      std::fill_n(patch_mask(p.context - 1), patch, std::uint8_t{1});
    }
    std::int32_t first = p.context;
    for (std::int32_t at = 0; at < p.context; ++at) {
      const bool none = std::none_of(patch_mask(at), patch_mask(at + 1),
                                     [](std::uint8_t seen) { return seen != 0; });
      to.hidden[lane + at] = none ? 1 : 0;
      p.hides = p.hides || none;
      if (!none) first = std::min(first, at);
    }
    std::fill_n(to.hidden + lane + p.context, p.patches, std::uint8_t{0});
    leading = std::min(leading, first);
  }
  // Leading patches that no variate has observed are seen by nobody who matters.
  if (net_.trim() && r.has_missing_values) p.first_slot = leading;
}

Cost Generation::stage(const BatchSizes& room, const Staging& in, std::size_t at) {
  const Inputs to(room, net_.patch(), at);
  const HostArrays arrays{reinterpret_cast<float*>(in.host + to.values),
                          reinterpret_cast<std::uint8_t*>(in.host + to.mask),
                          reinterpret_cast<std::uint8_t*>(in.host + to.hidden),
                          reinterpret_cast<std::int32_t*>(in.host + to.groups)};
  share_out(net_.backend(), requests_.size(), [&](std::size_t i) { place(i, arrays); });
  const CallLayout layout(room.series);
  Cost cost;
  for (std::int32_t call = 0; call < sizes_.calls; ++call) {
    const auto image = [&](std::size_t offset) {
      return CallImage(layout, in.host + offset, in.device + offset);
    };
    CallImage all = image(to.all(call)), wanted = image(to.wanted(call));
    cost += next_call(all, wanted);
  }
  return cost;
}

Generation::Tokens Generation::next_tokens(const Progress& p) const {
  const std::int32_t spare = net_.trim() ? 1 : 0;  // the last placeholder, which nobody reads
  const bool first = p.done == 0;
  Tokens t;
  t.predicted = std::min(p.block, p.patches - p.done);
  t.first = first ? p.first_slot : p.context + p.done - p.block;
  t.count = p.context + p.done + t.predicted - t.first - spare;
  t.wanted = p.context + p.done - 1;
  t.wanted_count = t.predicted;
  if (first && p.coherent) {
    t.wanted = std::max(t.wanted - kPathTokens, t.first);
    t.wanted_count = p.context + t.predicted - 1 - t.wanted;
  }
  return t;
}

Cost Generation::next_call(CallImage& all, CallImage& wanted) {
  CallWork of_all, of_wanted;
  for (Progress& p : progress_) {
    p.at = -1;
    if (p.done == p.patches) continue;
    const Tokens t = next_tokens(p);
    p.at = all.count();
    p.row = all.rows();
    p.wanted_row = wanted.rows();
    const auto add = [&](CallImage& to, CallWork& work, std::int32_t first, std::int32_t count) {
      const std::int32_t before = first - p.first_slot;
      to.add(p.variates, count, before + count);
      work.add(p.variates, count, before);
    };
    add(all, of_all, t.first, t.count);
    add(wanted, of_wanted, t.wanted, t.wanted_count);
  }
  share_out(net_.backend(), requests_.size(), [&](std::size_t i) {
    Progress& p = progress_[i];
    if (p.at < 0) return;
    const Tokens t = next_tokens(p);
    const bool first = p.done == 0;
    CallSlice slice = slice_of(i);
    slice.row = p.row;
    slice.patch = t.first;
    slice.tokens = t.count;
    slice.ids = first ? t.first : 0;
    slice.centre = (p.context + p.done + t.predicted) / 2;
    slice.time_mask = p.hides && (requests_[i].has_missing_values || !first);
    slice.refed = first ? 0 : p.block;
    all.slice(p.at) = slice;
    slice.row = p.wanted_row;
    slice.patch = t.wanted;
    slice.tokens = t.wanted_count;
    slice.ids += t.wanted - t.first;
    // A last patch with gaps is taken as observed, but nobody has seen all of it.
    if (first && p.coherent) slice.scored = p.context - (p.whole ? 0 : 1);
    wanted.slice(p.at) = slice;
    p.done += t.predicted;
  });
  all.finish();
  wanted.finish();
  return forward_cost(net_, of_all, of_wanted);
}

void Generation::run(const Toto2Workspace& memory, const BatchSizes& room, const Staging& in,
                     std::size_t at, bool capturing, Sink& sink) {
  Backend& be = net_.backend();
  const Ops2& ops = net_.ops();
  const Inputs from(room, net_.patch(), at);
  const bool on_device = be.reads_device_batches();
  SeriesArrays arrays = memory.arrays;
  const bool staged = !arrays.values;
  if (staged) {  // float32 as it is staged
    arrays.values = {in.device + from.values, ElementType::f32, net_.patch(), room.patches};
  } else {
    be.upload(std::span(reinterpret_cast<const float*>(in.host + from.values),
                        static_cast<std::size_t>(room.patches * net_.patch())),
              arrays.values);
  }
  arrays.mask = reinterpret_cast<std::uint8_t*>(in.device + from.mask);
  arrays.hidden = reinterpret_cast<std::uint8_t*>(in.device + from.hidden);
  arrays.groups = reinterpret_cast<std::int32_t*>(in.device + from.groups);
  const CallLayout layout(room.series);
  const auto call_at = [&](std::size_t image, std::int32_t rows) {
    if (!capturing) return call_of_image(in.host + image, in.device + image, layout, on_device);
    return Call{nullptr,    room.series, rows,
                room.lanes, room.keys,   reinterpret_cast<const LiveCall*>(in.device + image)};
  };
  for (std::int32_t index = 0; index < room.calls; ++index) {
    const std::int32_t rows = index == 0 ? room.rows : std::min(room.rows, 2 * room.wanted);
    const Call all = call_at(from.all(index), rows);
    const Call wanted = call_at(from.wanted(index), room.wanted);
    const View inputs = net_.inputs_of(all, memory.act);
    const bool first = index == 0;
    if (!first || !staged || !ops.copy_in_and_inputs(in, from.end, all, arrays, first, inputs)) {
      if (first) be.copy_in(in, 0, from.end);
      ops.inputs(all, arrays, first, inputs);
    }
    Toto2Observer observer;
    if (!capturing) observer = sink.observer(index, all, wanted);
    net_.forward(all, wanted, arrays, memory.rotary, memory.kv, memory.act, &observer);
    KnotOutputs to = sink.outputs();
    if (ops.quantiles_and_statistics(wanted, arrays, memory.act.raw, memory.quantiles, to)) {
      to.exact = to.parameters = nullptr;
    } else {
      ops.quantiles(wanted, arrays, memory.act.raw, memory.quantiles);
    }
    sink.predicted(index, wanted, arrays, memory.quantiles, to);
    if (sink.wants_blocks()) deliver(memory, arrays, wanted, index, sink);
    if (index + 1 == room.calls) break;
    ops.feed_back(wanted, memory.quantiles, arrays);
    for (std::int32_t i = 0; !capturing && i < wanted.count; ++i) {
      force_feedback(arrays, wanted.slices[i]);
    }
  }
}

void Generation::deliver(const Toto2Workspace& memory, const SeriesArrays& arrays,
                         const Call& wanted, std::int32_t index, Sink& sink) {
  const Backend& be = net_.backend();
  const auto of_row = static_cast<std::size_t>(kQuantiles) * static_cast<std::size_t>(net_.patch());
  const std::size_t cells = static_cast<std::size_t>(wanted.rows) * of_row;
  results_.resize(cells);
  be.download(memory.quantiles, results_);
  if (sink.wants_raw()) {
    raw_.resize(cells);
    be.download(memory.act.raw, raw_);
  }
  if (sink.wants_statistics()) {
    loc_.resize(static_cast<std::size_t>(sizes_.patches));
    scale_.resize(loc_.size());
    be.download(arrays.loc, loc_);
    be.download(arrays.scale, scale_);
  }
  for (std::int32_t i = 0; i < wanted.count; ++i) {
    const CallSlice& s = wanted.slices[i];
    const std::size_t at = static_cast<std::size_t>(s.row) * of_row;
    const std::size_t count = static_cast<std::size_t>(s.rows()) * of_row;
    Block block;
    block.request = static_cast<std::size_t>(s.request);
    block.index = index;
    block.first = s.patch + 1 - s.context;
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

/// Replaces the medians that a slice has fed back, where the request says so.
void Generation::force_feedback(const SeriesArrays& arrays, const CallSlice& slice) {
  const Request& r = requests_[static_cast<std::size_t>(slice.request)];
  if (r.feedback.empty()) return;
  const auto patch = static_cast<std::size_t>(net_.patch());
  const auto cells = static_cast<std::size_t>(slice.tokens) * patch;
  const std::int32_t predicted = slice.patch + 1;
  for (std::int32_t v = 0; v < r.targets; ++v) {
    const std::int64_t to = first_patch_of(slice, v) + predicted;
    const std::int64_t from =
        std::int64_t{v} * (slice.patches - slice.context) + predicted - slice.context;
    net_.backend().upload(r.feedback.subspan(static_cast<std::size_t>(from) * patch, cells),
                          arrays.values.from(to, slice.tokens));
  }
}

void generate(const Toto2& net, std::span<const Request> requests, Sink& sink) {
  Generation generation(net);
  generation.begin(requests);
  const Capacity need = generation.need();
  const Capacity tables_for = tables_of(need);
  Backend& be = net.backend();
  const OnDevice on(be);
  const auto release = [&be](void* memory) { be.release(memory); };
  const std::unique_ptr<void, decltype(release)> tables(be.allocate(table_bytes(net, tables_for)),
                                                        release);
  fill_tables(net, tables_for, static_cast<std::byte*>(tables.get()));
  const std::unique_ptr<void, decltype(release)> memory(
      be.allocate(lay_out(net, need, nullptr, tables_for, nullptr)->bytes), release);
  const auto workspace = lay_out(net, need, static_cast<std::byte*>(memory.get()), tables_for,
                                 static_cast<std::byte*>(tables.get()));
  const auto release_staging = [&be](const Staging* staging) { be.release_staging(*staging); };
  const Staging in = be.allocate_staging(generation.input_bytes(generation.sizes()));
  const std::unique_ptr<const Staging, decltype(release_staging)> owner(&in, release_staging);
  generation.stage(generation.sizes(), in, 0);
  generation.run(*workspace, generation.sizes(), in, 0, false, sink);
  be.synchronise();
}

}  // namespace toto::toto2
