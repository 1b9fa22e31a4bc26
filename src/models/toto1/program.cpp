// SPDX-License-Identifier: Apache-2.0
// The operations of a forecast, in order, and the sizes of what they need.
#include "models/toto1/program.h"

#include <algorithm>
#include <cassert>

#include "backend/few_keys.h"
#include "backend/path_ops.h"
#include "models/toto1/forward_cost.h"
#include "models/toto1/run.h"
#include "toto/error.hpp"

namespace toto {
namespace {

constexpr std::int32_t kMaxImages = 64;  // of calls that decode
constexpr std::int32_t kMinPositions = 64;

constexpr const char* kDimensions[] = {"rows",       "context lanes", "lanes",   "cached keys",
                                       "covariates", "positions",     "patches", "path rows"};

std::size_t floats(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

std::int32_t bucket32(std::int64_t n, std::int64_t most) {
  return static_cast<std::int32_t>(std::min(bucket(n), most));
}

}  // namespace

Toto1Program::Toto1Program(const Toto1& net)
    : net_(net),
      patch_(net.patch()),
      labels_(net.has_labels() ? 1 : 0),
      share_(net.execution().share_prefix) {}

// --- sizes ---

std::span<const char* const> Toto1Program::dimensions() const { return kDimensions; }

std::int64_t Toto1Program::prefill_tokens(const Item& item, const MicroBatch& batch) const {
  const bool recompute = !share_ && !batch.cached;
  return std::int64_t{item.tokens} + labels_ + (recompute ? item.patches - 1 : 0);
}

std::int64_t Toto1Program::prefill_rows(const Item& item, const MicroBatch& batch) const {
  return item.variates * prefill_tokens(item, batch);
}

std::int64_t Toto1Program::tokens(const Item& item, const MicroBatch& batch) const {
  const std::int64_t trajectories = std::max(item.trajectories, 1);
  const std::int64_t contexts = share_ ? 1 : trajectories;
  const std::int64_t further = std::int64_t{item.variates} * (item.patches - 1);
  const bool drawn = item.trajectories > 0;
  return contexts * prefill_rows(item, batch) + (drawn ? trajectories * further : 0);
}

std::int32_t Toto1Program::at_once(const MicroBatch& batch, const Limits& limits) const {
  std::int64_t prefill = 0;
  for (const Item& item : batch.items) prefill += prefill_rows(item, batch);
  const auto element = static_cast<std::int64_t>(net_.backend().element_size());
  const std::int64_t rows = share_ ? batch.variates : prefill;
  const std::int64_t kept = (share_ ? 0 : prefill) + batch.variates * batch.patches;
  const std::int64_t bytes =
      kept * net_.config().embed_dim * 2 * std::max(net_.time_layers(), 1) * element;
  const std::int64_t fit =
      std::min(limits.rows / rows, limits.kv_bytes / std::max<std::int64_t>(bytes, 1));
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(fit, 1, std::max(batch.trajectories, 1)));
}

/// The reference has no mask for what is known ahead.
void Toto1Program::check(const Item& item) const {
  if (!item.covariate_gaps) return;
  throw Error(ExitStatus::bad_data, "missing_covariate",
              "Toto 1.0 takes no missing value of a covariate in the horizon", "future_exogenous",
              "give a value for every step, or use a model of Toto 2.0");
}

std::int32_t Toto1Program::min_at_once(const MicroBatch& batch) const {
  if (!share_ || batch.patches > kMaxImages) return 1;
  const std::int32_t passes = kMaxImages / batch.patches;
  return (std::max(batch.trajectories, 1) + passes - 1) / passes;
}

Capacity Toto1Program::need(const MicroBatch& batch) const {
  const std::int64_t width = net_.config().embed_dim;
  const std::int64_t contexts = share_ ? 1 : batch.at_once;
  const bool recompute = !share_ && !batch.cached;
  std::int64_t prefill = 0, suffix = 0;
  Capacity c;
  for (const Item& item : batch.items) {
    prefill += prefill_rows(item, batch);
    suffix += std::int64_t{batch.at_once} * item.variates * (item.patches - 1);
    if (item.covariates) {
      c.of[kCovariates] += static_cast<std::int64_t>(item.exogenous) * item.patches * patch_;
    }
    c.of[kPositions] =
        std::max<std::int64_t>(c.of[kPositions], item.tokens + labels_ + item.patches);
  }
  c.of[kPositions] = std::max<std::int64_t>(c.of[kPositions], kMinPositions);
  c.of[kContextLanes] = contexts * batch.variates;
  c.of[kLanes] = batch.at_once * batch.variates;
  c.of[kRows] = std::max(contexts * prefill, c.of[kLanes]);
  c.of[kDecodes] = batch.patches > 1 ? 1 : 0;
  c.of[kPathRows] = batch.coherent ? bucket(prefill) : 0;  // as many as a graph takes, size()
  c.of[kKvElements] = (contexts * prefill + (recompute ? 0 : suffix)) * width;
  return c;
}

std::unique_ptr<Workspace> Toto1Program::lay_out(const Capacity& capacity, std::byte* base,
                                                 const Capacity& tables_for,
                                                 std::byte* tables) const {
  auto workspace = toto::lay_out(net_, capacity, base);
  place_toto1_tables(net_, tables_for, tables, *workspace);
  return workspace;
}

Capacity Toto1Program::tables_of(const Capacity& capacity) const {
  return toto1_tables_of(capacity);
}
std::size_t Toto1Program::table_bytes(const Capacity& tables_for) const {
  return toto1_table_bytes(net_, tables_for);
}
void Toto1Program::fill_tables(const Capacity& tables_for, std::byte* tables) const {
  fill_toto1_tables(net_, tables_for, tables);
}

const char* Toto1Program::uncapturable(const MicroBatch& batch) const {
  if (!share_) return "the context is repeated";
  if (std::max(batch.passes(), 1) * batch.patches > kMaxImages) return "too many patches";
  return nullptr;
}

void Toto1Program::size(const MicroBatch& batch, ProgramKey& key) const {
  std::int64_t prefill = 0;
  bool few = true;  // keys; no other numbers are told apart, so that few graphs do
  for (const Item& item : batch.items) {
    prefill += prefill_rows(item, batch);
    few = few && prefill_tokens(item, batch) <= kFewKeys;
  }
  key.own[0] = few ? kFewKeys : 0;
  const Capacity& plan = key.plan;
  const std::int64_t contexts = share_ ? 1 : batch.at_once;
  key.rows = bucket32(prefill * contexts, plan.of[kRows]);
  key.variates = bucket32(batch.variates, plan.of[kContextLanes]);
  key.series =
      std::min(bucket32(static_cast<std::int64_t>(batch.items.size()), key.variates), key.variates);
  key.lanes = bucket32(batch.variates * batch.at_once, plan.of[kLanes]);
  key.patches = batch.patches;
  key.last_steps =
      bucket32(std::int64_t{batch.horizon} - std::int64_t{batch.patches - 1} * patch_, patch_);
  key.exact_steps = key.patches > 1 ? patch_ : key.last_steps;
  key.passes = batch.passes();
  key.trajectories = batch.trajectories;
  key.levels = static_cast<std::int32_t>(bucket(batch.level_count));
  key.parameter_floats = batch.parameters ? 4 * net_.config().components + 2 : 0;
  key.mean = batch.mean;
  key.coherent = batch.coherent;
  key.exact = batch.exact;
  key.sampled = batch.sampled;
  key.samples = batch.samples;
}

Toto1Program::Inputs Toto1Program::inputs(const ProgramKey& key, std::size_t at) const {
  Inputs to;
  Offsets offsets(at);
  const std::int64_t cells = std::int64_t{key.rows} * patch_;
  const auto image = [](std::int64_t blocks, std::int64_t ids) {
    return BatchLayout(blocks, ids).bytes;
  };
  to.x = offsets.take(floats(cells));
  to.mask = offsets.take(static_cast<std::size_t>(cells));
  to.covariates = offsets.take(floats(key.plan.of[kCovariates]));
  to.context = offsets.take(image(key.series, key.rows));
  to.last = offsets.take(image(key.series, key.lanes));
  to.source = share_ ? to.last : offsets.take(image(key.series, key.variates));
  to.further_images = std::min(kMaxImages, key.passes * key.patches);
  to.further_bytes = image(key.series, key.variates);
  to.further = offsets.take(to.further_bytes * static_cast<std::size_t>(to.further_images));
  to.end = offsets.used();
  return to;
}

std::size_t Toto1Program::input_bytes(const ProgramKey& key) const { return inputs(key, 0).end; }

Cost Toto1Program::take_cost() {
  const Cost cost = cost_;
  cost_ = {};
  return cost;
}

// --- the operations ---

/// The network over the contexts that are staged. Leaves the parameters of the next patch, or if it
/// is to leave them `raw` what they are formed of.
/// With `paths` also how the steps of a patch go together.
void Toto1Program::prefill(Run& run, bool raw, bool observed, bool paths) const {
  Executor& ex = run.ex;
  Backend& be = ex.backend;
  const Toto1Workspace& w = run.w;
  const ProgramKey& key = run.key;
  ex.stage(&StageTimes::prefill);
  const Batch context =
      ex.batch(run.at.context, {key.series, key.rows, key.variates, key.variates, key.own[0]});
  run.last = ex.batch(run.at.last, {key.series, key.variates, key.variates, key.variates});
  be.copy_in_and_scale(ex.in, run.at.end, context, net_.scaler_spec(), ex.staged(run.at.x),
                       reinterpret_cast<const std::uint8_t*>(ex.in.device + run.at.mask), w.x,
                       w.context_state,
                       {w.act.scaled, w.loc, w.scale, w.context_loc, w.context_scale});
  Probe* const probe = observed ? ex.probe : nullptr;
  if (probe != nullptr && probe->wants_statistics()) {
    std::vector<double> loc(static_cast<std::size_t>(context.rows) *
                            static_cast<std::size_t>(patch_));
    std::vector<double> scale(loc.size());
    be.download(w.loc, loc);
    be.download(w.scale, scale);
    probe->statistics(loc, scale);
  }
  LayerObserver observer;
  if (probe != nullptr && probe->wants_layers()) {
    observer = [&](std::int32_t layer, const ConstView& hidden, bool trimmed) {
      const std::int32_t rows = trimmed ? run.last.rows : context.rows;
      std::vector<double> seen(static_cast<std::size_t>(rows) *
                               static_cast<std::size_t>(net_.config().embed_dim));
      be.download(hidden, seen);
      probe->layer(layer, seen, trimmed);
    };
  }
  Activations a = w.act;
  a.params = w.context_params;
  a.keep = key.patches > 1;
  if (paths) {
    a.all_params = w.path_params;
    a.all_unembedded = w.path_unembedded;
  }
  run.early = net_.forward(context, run.last, w.rotary, w.kv, a, run.shape.steps, &observer, raw);
  if (!paths) return;
  PatchShape whole = run.shape;
  whole.steps = patch_;
  be.paths()->neighbours(context, whole, w.path_params, w.loc, w.scale, ex.staged(run.at.x),
                         reinterpret_cast<const std::uint8_t*>(ex.in.device + run.at.mask),
                         w.path_scores, w.rho);
}

/// Stages the contexts of the trajectories from `first_sample` on, with the patches that they have
/// generated: where every trajectory has a context of its own.
void Toto1Program::restage(Run& run, std::int32_t first_sample, std::int32_t generated) {
  const Executor& ex = run.ex;
  run.ex.stage(&StageTimes::prepare);
  ex.backend.synchronise();  // it may still be reading what is written over
  describe_context(run.batch, first_sample, run.batch.at_once, generated);
  assert(sees_at_most(run.key.own[0]));
  stage_values(run.batch, generated, ex.in, run.at);
  write(context_, ex.in, run.at.context, run.key.series, run.key.rows);
  write(last_, ex.in, run.at.last, run.key.series, run.key.lanes);
  cost_ += forward_cost(net_.config(), net_.execution(), context_, run.shape.steps,
                        ex.backend.weight_size());
}

/// Statistics and parameters of the first patch, from the prefill of one trajectory.
void Toto1Program::first_statistics(Run& run) const {
  const Executor& ex = run.ex;
  const Toto1Workspace& w = run.w;
  const ProgramKey& key = run.key;
  run.ex.stage(&StageTimes::statistics);
  if (key.exact) {
    ex.backend.exact_statistics(run.last, run.shape, {net_.raw_output(), run.early},
                                run.params(run.last, true), w.context_loc, w.context_scale,
                                ex.levels, ex.out.exact);
  }
  if (key.parameter_floats > 0) {
    ex.backend.keep_parameters(run.last, run.source, run.shape, run.params(run.last, true),
                               w.context_loc, w.context_scale, ex.out.parameters,
                               key.horizon(patch_));
  }
}

/// The batch that decodes patch `patch` of pass `pass`. Its image has been staged where the program
/// is captured or replayed; otherwise it is written now.
Batch Toto1Program::further_batch(Run& run, std::int32_t pass, std::int32_t patch) {
  const ProgramKey& key = run.key;
  Executor& ex = run.ex;
  const std::int32_t image = run.images++ % std::max(run.at.further_images, 1);
  const std::size_t at = run.at.further + static_cast<std::size_t>(image) * run.at.further_bytes;
  if (!ex.capturing) {
    // The device may still be reading what is to be written over.
    if (run.images > run.at.further_images && image == 0) ex.backend.synchronise();
    describe_further(run.batch, patch, pass * run.batch.at_once);
    sequences_ = 0;
    for (const Block& b : further_blocks_) sequences_ += b.trajectories;
    write(further_, ex.in, at, key.series, key.variates);
    ex.backend.copy_in(ex.in, at, run.at.further_bytes);
    if (patch > 0) {
      cost_ += forward_cost(net_.config(), net_.execution(), further_, run.shape.steps,
                            ex.backend.weight_size());
    }
  }
  return ex.batch(at, {key.series, key.lanes, key.lanes, key.variates});
}

void Toto1Program::predict(Run& run, const Batch& further, bool from_context) const {
  const Executor& ex = run.ex;
  const Backend& be = ex.backend;
  const Toto1Workspace& w = run.w;
  const ProgramKey& key = run.key;
  const PatchShape& shape = run.shape;
  const Batch* const shared = from_context && share_ ? &run.last : nullptr;
  const ConstView params = run.params(shared == nullptr ? further : *shared, from_context);
  const ConstView loc = from_context ? w.context_loc : w.lane_loc;
  const ConstView scale = from_context ? w.context_scale : w.lane_scale;
  if (key.coherent) {
    ex.backend.paths()->draw(further, shared, run.source, shape, params, loc, scale, w.rho, w.y);
  } else if (key.mean) {
    be.predict_mean(further, shared, shape, params, loc, scale, w.y);
  } else {
    be.predict_draw(further, shared, shape, params, loc, scale, w.y);
  }
  if (key.plan.of[kCovariates] > 0) {
    be.inject(further, shape, ex.staged(run.at.covariates), w.y);
  }
}

void Toto1Program::run(Executor& ex, const MicroBatch& batch, const ProgramKey& key,
                       const Workspace& workspace) {
  const auto& w = static_cast<const Toto1Workspace&>(workspace);
  Backend& be = ex.backend;
  Run run{ex, batch, key, w, inputs(key, ex.in_at)};
  const std::int32_t first_steps = key.patches > 1 ? patch_ : key.last_steps;
  run.shape = {patch_, net_.config().components, first_steps};
  run.source = ex.batch(run.at.source, {key.series, key.variates, key.variates, key.variates});
  const bool recompute = !share_ && !batch.cached;
  const KeptShape room{key.horizon(patch_), key.trajectories};

  const bool first =
      share_ || key.exact || key.parameter_floats > 0 || key.passes == 0 || key.coherent;
  if (first) {  // staged with one trajectory
    prefill(run, key.exact, true, key.coherent);
    first_statistics(run);
    if (share_ || key.passes == 0) show_parameters(run, 0, 0, true);
  }
  for (std::int32_t pass = 0; pass < key.passes; ++pass) {
    const std::int32_t first_sample = pass * batch.at_once;
    if (!share_) {
      restage(run, first_sample, 0);
      prefill(run, false, pass == 0 && !first, false);
      show_parameters(run, 0, first_sample, true);
    }
    for (std::int32_t patch = 0; patch < key.patches; ++patch) {
      ex.stage(&StageTimes::decode);
      const std::int32_t steps = patch + 1 < key.patches ? patch_ : key.last_steps;
      run.shape.steps = steps;
      const bool from_context = patch == 0 || recompute;
      if (patch > 0 && recompute) {
        restage(run, first_sample, patch);
        prefill(run, false, false, false);
        ex.stage(&StageTimes::decode);
      }
      const Batch further = further_batch(run, pass, patch);
      if (patch == 0) {
        be.repeat_state(share_ ? run.last : further, further, w.context_state, w.state);
      } else if (!recompute) {
        be.scale(further, net_.scaler_spec(), w.y, w.ones, w.state,
                 {w.act.scaled, w.loc, w.scale, w.lane_loc, w.lane_scale});
        net_.forward(further, further, w.rotary, w.kv, w.act, steps);
      }
      if (patch > 0) {
        if (pass == 0 && key.parameter_floats > 0) {
          be.keep_parameters(further, run.source, run.shape, run.params(further, from_context),
                             from_context ? w.context_loc : w.lane_loc,
                             from_context ? w.context_scale : w.lane_scale, ex.out.parameters,
                             room.horizon);
        }
        show_parameters(run, patch, first_sample, from_context);
      }
      if (ex.probe != nullptr && !batch.items.front().forced.empty()) {
        force(run, patch, first_sample);
      } else {
        predict(run, further, from_context);
      }
      be.keep(further, run.source, run.shape, w.y, ex.out.kept, room);
      if (recompute) take_generated(run, patch);
      show_values(run, patch, first_sample);
      if (!ex.capturing) ex.done(static_cast<std::size_t>(sequences_));
    }
    run.shape.steps = first_steps;
  }
  if (!ex.capturing && key.passes == 0) ex.done(batch.items.size());
  ex.stage(&StageTimes::statistics);
  if (key.sampled) {
    be.sample_statistics(run.source, ex.out.kept, room, key.exact ? key.exact_steps : 0, ex.levels,
                         ex.out.sampled);
  }
  ex.end();
}

}  // namespace toto
