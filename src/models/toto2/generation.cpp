// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "models/toto2/rotary.h"
#include "toto/error.hpp"

namespace toto::toto2 {
namespace {

std::int32_t divide_up(std::int32_t a, std::int32_t b) { return (a + b - 1) / b; }

}  // namespace

/// Memory of the backend that goes when this does.
struct Generation::Buffers {
  explicit Buffers(Backend& to) : backend(to) {}
  ~Buffers() {
    for (void* memory : owned) backend.release(memory);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  void* bytes(std::int64_t count) {
    owned.reserve(owned.size() + 1);
    owned.push_back(backend.allocate(static_cast<std::size_t>(count)));
    return owned.back();
  }
  void* elements(std::int64_t count) {
    return bytes(count * static_cast<std::int64_t>(backend.element_size()));
  }
  /// A table of numbers; nullptr where it is empty.
  const void* table(const std::vector<double>& values) {
    if (values.empty()) return nullptr;
    void* memory = elements(static_cast<std::int64_t>(values.size()));
    backend.upload(std::span<const double>(values), memory);
    return memory;
  }

  Backend& backend;
  std::vector<void*> owned;
  SeriesArrays arrays;
  Rotary rotary;
  std::vector<KvCache> kv;
  Toto2Activations activations;
  void* quantiles = nullptr;  // [wanted rows][9][P]
  // On the host: what a call's results are read into.
  std::vector<double> raw, results, loc, scale;
};

Generation::Generation(const Toto2& net, std::span<const Request> requests)
    : net_(net), requests_(requests.begin(), requests.end()) {
  const std::int32_t patch = net.config().patch_size;
  std::int64_t rows = 0;
  std::int64_t wanted = 0;
  for (const Request& r : requests_) {
    check(r);
    Progress p;
    p.context = divide_up(r.steps, patch);
    p.patches = divide_up(r.horizon, patch);
    p.block = r.block <= 0 ? p.patches : std::min(r.block / patch, p.patches);
    single_pass_ = single_pass_ && p.block == p.patches;
    CallSlice& s = p.slice;
    s.variates = r.targets + r.covariates;
    s.targets = r.targets;
    s.lane = lanes_;
    s.patches = p.context + p.patches;
    s.context = p.context;
    s.array = patches_;
    s.fallback = r.fallback;
    s.cap = r.cap;
    lanes_ += s.variates;
    patches_ += std::int64_t{s.variates} * s.patches;
    positions_ = std::max(positions_, s.patches);
    rows += std::int64_t{s.variates} * std::max(p.context + p.block, 2 * p.block);
    wanted += std::int64_t{s.variates} * p.block;
    progress_.push_back(p);
  }
  if (rows > std::numeric_limits<std::int32_t>::max() / (2 * net.inner())) {
    throw Error(ExitStatus::usage, "context_too_long",
                fmt::format("{} tokens in one batch are too many", rows), {},
                "forecast fewer series at a time");
  }
  rows_ = static_cast<std::int32_t>(rows);
  wanted_rows_ = static_cast<std::int32_t>(wanted);

  Backend& be = net.backend();
  memory_ = std::make_shared<Buffers>(be);
  Buffers& m = *memory_;
  m.arrays.patch = patch;
  m.arrays.values = m.elements(patches_ * patch);
  m.arrays.mask = static_cast<std::uint8_t*>(m.bytes(patches_ * patch));
  m.arrays.hidden = static_cast<std::uint8_t*>(m.bytes(patches_));
  m.arrays.loc = m.elements(patches_);
  m.arrays.scale = m.elements(patches_);
  m.arrays.bounds = m.elements(std::int64_t{2} * lanes_);
  m.arrays.groups =
      static_cast<std::int32_t*>(m.bytes(lanes_ * std::int64_t{sizeof(std::int32_t)}));
  stage();  // says how many leading patches nobody reads

  for (Progress& p : progress_) {
    p.slice.slot = slots_;
    p.slice.slots = p.slice.patches - p.slice.first_slot;
    slots_ += std::int64_t{p.slice.variates} * p.slice.slots;
  }
  const HeadShape shape = net.heads();
  const std::int32_t caches = single_pass_ ? std::min(1, net.time_layers()) : net.time_layers();
  for (std::int32_t i = 0; i < caches; ++i) {
    m.kv.push_back({m.elements(slots_ * shape.groups * shape.qk),
                    m.elements(slots_ * shape.groups * shape.v)});
  }
  const RotaryTables tables = rotary_tables(positions_, shape.qk, net.config().use_xpos);
  m.rotary = {m.table(tables.cosine), m.table(tables.sine), m.table(tables.factor), positions_};
  Toto2Activations& a = m.activations;
  const std::int64_t width = net.config().d_model;
  a.inputs = m.elements(rows * 2 * patch);
  a.inner = m.elements(rows * net.inner());
  a.hidden = m.elements(rows * width);
  a.normed = m.elements(rows * width);
  a.qkv = m.elements(rows * shape.row());
  a.attended = m.elements(rows * shape.attended());
  a.wanted = m.elements(wanted * width);
  a.raw = m.elements(wanted * kQuantiles * patch);
  m.quantiles = m.elements(wanted * kQuantiles * patch);
  all_.reserve(requests_.size());
  wanted_.reserve(requests_.size());
  active_.reserve(requests_.size());
}

void Generation::check(const Request& r) const {
  const std::int32_t patch = net_.config().patch_size;
  const auto refuse = [](std::string_view code, const std::string& message) {
    throw Error(ExitStatus::usage, code, message);
  };
  if (r.horizon < 1) refuse("invalid_horizon", "the horizon must be at least 1");
  if (r.steps < 1) refuse("too_short", "the context must have at least one step");
  if (r.block > 0 && r.block % patch != 0) {
    refuse("invalid_block", fmt::format("the block of decoding must be a multiple of the patch "
                                        "size {}, not {}",
                                        patch, r.block));
  }
  const std::int64_t patches =
      (std::int64_t{r.steps} + patch - 1) / patch + (std::int64_t{r.horizon} + patch - 1) / patch;
  if (patches > kToto2MaxPatches) {
    refuse("context_too_long",
           fmt::format("context and horizon have {} patches; the model takes {}", patches,
                       kToto2MaxPatches));
  }
}

/// The arrays of spec B4: left-padded to whole patches by the mask, the last patch of targets
/// observed, covariates after the targets.
void Generation::stage() {
  const std::int32_t patch = net_.config().patch_size;
  std::vector<float> values(static_cast<std::size_t>(patches_ * patch));
  std::vector<std::uint8_t> mask(values.size());
  std::vector<std::uint8_t> hidden(static_cast<std::size_t>(patches_));
  std::vector<std::int32_t> groups(static_cast<std::size_t>(lanes_));
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Request& r = requests_[i];
    Progress& p = progress_[i];
    CallSlice& s = p.slice;
    const std::int32_t pad = p.context * patch - r.steps;
    std::int32_t leading = p.context;  // patches that are hidden in every variate
    for (std::int32_t v = 0; v < s.variates; ++v) {
      const bool target = v < r.targets;
      const std::int32_t e = v - r.targets;
      const std::int32_t steps =
          target ? r.steps : std::min(r.known_steps, s.patches * patch - pad);
      const std::size_t from = static_cast<std::size_t>(target ? v : e) *
                               static_cast<std::size_t>(target ? r.steps : r.known_steps);
      const std::size_t lane = static_cast<std::size_t>(s.array + std::int64_t{v} * s.patches);
      const std::size_t to = lane * static_cast<std::size_t>(patch) + static_cast<std::size_t>(pad);
      const auto copied = static_cast<std::size_t>(steps);
      std::copy_n((target ? r.values : r.known).begin() + static_cast<std::ptrdiff_t>(from), copied,
                  values.begin() + static_cast<std::ptrdiff_t>(to));
      std::copy_n((target ? r.mask : r.known_mask).begin() + static_cast<std::ptrdiff_t>(from),
                  copied, mask.begin() + static_cast<std::ptrdiff_t>(to));
      groups[static_cast<std::size_t>(s.lane + v)] =
          target ? r.groups[static_cast<std::size_t>(v)]
                 : r.known_groups[static_cast<std::size_t>(e)];
      const auto patch_mask = [&](std::int32_t at) {
        return mask.begin() + (static_cast<std::ptrdiff_t>(lane) + at) * patch;
      };
      if (target) std::fill_n(patch_mask(p.context - 1), patch, std::uint8_t{1});
      std::int32_t first = p.context;
      for (std::int32_t at = 0; at < p.context; ++at) {
        const bool none = std::none_of(patch_mask(at), patch_mask(at + 1),
                                       [](std::uint8_t seen) { return seen != 0; });
        hidden[lane + static_cast<std::size_t>(at)] = none ? 1 : 0;
        if (none) p.hides = true;
        if (!none) first = std::min(first, at);
      }
      leading = std::min(leading, first);
    }
    if (net_.trim() && r.has_missing_values) s.first_slot = leading;
  }
  Backend& be = net_.backend();
  const SeriesArrays& a = memory_->arrays;
  be.upload(std::span<const float>(values), a.values);
  be.upload_bytes(mask, a.mask);
  be.upload_bytes(hidden, a.hidden);
  be.upload_bytes(
      {reinterpret_cast<const std::uint8_t*>(groups.data()), groups.size() * sizeof(std::int32_t)},
      const_cast<std::int32_t*>(a.groups));
}

void Generation::next_call() {
  all_.clear();
  wanted_.clear();
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
    all_.push_back(all);
    wanted_.push_back(wanted);
    active_.push_back(i);
  }
  const auto count = static_cast<std::int32_t>(all_.size());
  all_call_ = {all_.data(), count, rows};
  wanted_call_ = {wanted_.data(), count, wanted_rows};
}

void Generation::run(Sink& sink) {
  const Ops2& ops = net_.ops();
  const Buffers& m = *memory_;
  for (std::int32_t index = 0;; ++index) {
    next_call();
    if (all_.empty()) break;
    ops.statistics(all_call_, m.arrays);
    if (index == 0) ops.cap_bounds(all_call_, m.arrays);
    ops.embed_inputs(all_call_, m.arrays, m.activations.inputs);
    const Toto2Observer observer = sink.observer(index, all_call_, wanted_call_);
    net_.forward(all_call_, wanted_call_, m.arrays, m.rotary, m.kv, m.activations, &observer);
    ops.quantiles(wanted_call_, m.arrays, m.activations.raw, m.quantiles);
    deliver(index, sink);
    feed_back();
  }
  for (Progress& p : progress_) p.done = 0;
}

void Generation::deliver(std::int32_t index, Sink& sink) {
  Buffers& m = *memory_;
  const Backend& be = net_.backend();
  const auto of_row =
      static_cast<std::size_t>(kQuantiles) * static_cast<std::size_t>(m.arrays.patch);
  const std::size_t cells = static_cast<std::size_t>(wanted_call_.rows) * of_row;
  m.results.resize(cells);
  be.download(m.quantiles, m.results);
  if (sink.wants_internals()) {
    m.raw.resize(cells);
    m.loc.resize(static_cast<std::size_t>(patches_));
    m.scale.resize(m.loc.size());
    be.download(m.activations.raw, m.raw);
    be.download(m.arrays.loc, m.loc);
    be.download(m.arrays.scale, m.scale);
  }
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const CallSlice& s = wanted_[i];
    const std::size_t at = static_cast<std::size_t>(s.row) * of_row;
    const std::size_t count = static_cast<std::size_t>(s.rows()) * of_row;
    Block block{active_[i],
                index,
                progress_[active_[i]].done,
                s.tokens,
                s.variates,
                {},
                std::span(m.results).subspan(at, count),
                {},
                {}};
    if (sink.wants_internals()) {
      const auto lane = static_cast<std::size_t>(s.array);
      const auto patches =
          static_cast<std::size_t>(s.variates) * static_cast<std::size_t>(s.patches);
      block.raw = std::span(m.raw).subspan(at, count);
      block.loc = std::span(m.loc).subspan(lane, patches);
      block.scale = std::span(m.scale).subspan(lane, patches);
    }
    sink.block(block);
  }
}

void Generation::feed_back() {
  Buffers& m = *memory_;
  net_.ops().feed_back(wanted_call_, m.quantiles, m.arrays);
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Progress& p = progress_[active_[i]];
    const Request& r = requests_[active_[i]];
    if (!r.feedback.empty()) force_feedback(r, p, p.done, wanted_[i].tokens);
    p.done += wanted_[i].tokens;
  }
}

void Generation::force_feedback(const Request& r, const Progress& p, std::int32_t first,
                                std::int32_t count) {
  const std::int32_t patch = net_.config().patch_size;
  const SeriesArrays& a = memory_->arrays;
  const std::size_t size = net_.backend().element_size();
  for (std::int32_t v = 0; v < r.targets; ++v) {
    const std::int64_t to =
        (p.slice.array + std::int64_t{v} * p.slice.patches + p.context + first) * patch;
    const std::size_t from = (static_cast<std::size_t>(v) * static_cast<std::size_t>(p.patches) +
                              static_cast<std::size_t>(first)) *
                             static_cast<std::size_t>(patch);
    net_.backend().upload(
        r.feedback.subspan(from, static_cast<std::size_t>(count) * static_cast<std::size_t>(patch)),
        static_cast<std::byte*>(a.values) + static_cast<std::size_t>(to) * size);
  }
}

}  // namespace toto::toto2
