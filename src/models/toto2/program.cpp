// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/program.h"

#include <algorithm>
#include <limits>

#include "backend/share_out.h"
#include "models/toto2/forward_cost.h"

namespace toto {
namespace {

using toto2::Toto2Workspace;

constexpr std::int32_t kMaxCalls = 64;  // of a captured forecast

constexpr const char* kNames[] = {"rows",      "wanted rows",         "lanes",     "patches",
                                  "positions", "layers with a cache", "path lanes"};

/// Patches that are predicted at a time.
std::int32_t block_of(const Item& item, std::int32_t patch) {
  if (item.decoding.decode_block_size == 0) return item.patches;
  const std::size_t block = item.decoding.decode_block_size / static_cast<std::size_t>(patch);
  return block == 0 || block > static_cast<std::size_t>(item.patches)
             ? item.patches
             : static_cast<std::int32_t>(block);
}

}  // namespace

std::int32_t Toto2Program::calls_of(const MicroBatch& batch) const {
  std::int32_t calls = 1;
  for (const Item& item : batch.items) {
    const std::int32_t block = block_of(item, net_.patch());
    if (block < item.patches) calls = std::max(calls, (item.patches + block - 1) / block);
  }
  return calls;
}

std::unique_ptr<Program> Toto2::program() const { return std::make_unique<Toto2Program>(*this); }

// --- sizes ---

void Toto2Program::check(const Item& item) const {
  toto2::check_sizes(net_.patch(), std::int64_t{item.tokens} * net_.patch(), item.horizon,
                     item.decoding.decode_block_size);
}

std::int64_t Toto2Program::prefill_rows(const Item& item, const MicroBatch& /*batch*/) const {
  const std::int32_t block = block_of(item, net_.patch());
  return std::int64_t{item.variates} * std::max(item.tokens + block, 2 * block);
}

std::int64_t Toto2Program::wanted_of(const Item& item, const MicroBatch& batch) const {
  return std::int64_t{item.variates} *
         (block_of(item, net_.patch()) + toto2::path_tokens(batch.coherent, item.tokens));
}

/// Context and horizon, and each block after the first twice: as a prediction, as what was
/// observed.
std::int64_t Toto2Program::tokens(const Item& item, const MicroBatch& /*batch*/) const {
  const std::int32_t block = block_of(item, net_.patch());
  return std::int64_t{item.variates} * (item.tokens + 2 * item.patches - block);
}

/// Trajectories are drawn from what one pass leaves: all of them at once.
std::int32_t Toto2Program::at_once(const MicroBatch& batch, const Limits& /*limits*/) const {
  return std::max(batch.trajectories, 1);
}

Capacity Toto2Program::need(const MicroBatch& batch) const {
  Capacity c;
  bool one_pass = true;
  for (const Item& item : batch.items) {
    const std::int32_t block = block_of(item, net_.patch());
    one_pass = one_pass && block == item.patches;
    c.of[toto2::kRows] += prefill_rows(item, batch);
    c.of[toto2::kWanted] += wanted_of(item, batch);
    c.of[toto2::kLanes] += item.variates;
    c.of[toto2::kPatches] += std::int64_t{item.variates} * (item.tokens + item.patches);
    c.of[toto2::kPositions] =
        std::max<std::int64_t>(c.of[toto2::kPositions], item.tokens + item.patches);
  }
  c.of[toto2::kPathLanes] = batch.coherent ? c.of[toto2::kLanes] : 0;
  c.of[toto2::kCaches] = one_pass ? std::min(1, net_.time_layers()) : net_.time_layers();
  return c;
}

std::span<const char* const> Toto2Program::dimensions() const { return kNames; }

std::unique_ptr<Workspace> Toto2Program::lay_out(const Capacity& capacity, std::byte* base,
                                                 const Capacity& tables_for,
                                                 std::byte* tables) const {
  return toto2::lay_out(net_, capacity, base, tables_for, tables);
}
Capacity Toto2Program::tables_of(const Capacity& capacity) const {
  return toto2::tables_of(capacity);
}
std::size_t Toto2Program::table_bytes(const Capacity& tables_for) const {
  return toto2::table_bytes(net_, tables_for);
}
void Toto2Program::fill_tables(const Capacity& tables_for, std::byte* tables) const {
  toto2::fill_tables(net_, tables_for, tables);
}

const char* Toto2Program::uncapturable(const MicroBatch& batch) const {
  return calls_of(batch) > kMaxCalls ? "too many blocks" : nullptr;
}

void Toto2Program::size(const MicroBatch& batch, ProgramKey& key) const {
  KnotResults::size(batch, net_.patch(), key);
  std::int64_t rows = 0, wanted = 0, patches = 0;
  for (const Item& item : batch.items) {
    rows += prefill_rows(item, batch);
    wanted += wanted_of(item, batch);
    patches += std::int64_t{item.variates} * (item.tokens + item.patches);
  }
  const auto most = [&](std::int64_t n, std::size_t dimension) {
    return static_cast<std::int32_t>(std::min(bucket(n), key.plan.of[dimension]));
  };
  key.rows = most(rows, toto2::kRows);
  key.own[0] = most(wanted, toto2::kWanted);
  key.own[1] = most(patches, toto2::kPatches);
  key.own[2] = calls_of(batch);
  std::int64_t keys = 0;
  for (const Item& item : batch.items) {
    keys = std::max<std::int64_t>(keys, item.tokens + item.patches);
  }
  key.own[3] = most(keys, toto2::kPositions);
}

toto2::BatchSizes Toto2Program::room(const ProgramKey& key) {
  return {key.series, key.lanes, key.rows, key.own[0], key.own[2], key.own[1], key.own[3]};
}

std::size_t Toto2Program::input_bytes(const ProgramKey& key) const {
  return generation_.input_bytes(room(key)) + KnotResults::input_bytes(key);
}

Cost Toto2Program::take_cost() {
  const Cost cost = cost_;
  cost_ = {};
  return cost;
}

// --- requests ---

void Toto2Program::take(const Item& item, bool coherent, Held& held, toto2::Request& r) const {
  const Prepared& s = *item.prepared;
  r = {};
  r.covariates = item.covariates ? item.exogenous : 0;  // unknown ahead: forecast like targets
  r.targets = item.variates - r.covariates;
  r.steps = s.tokens * net_.patch();
  const std::size_t cells = static_cast<std::size_t>(r.targets) * static_cast<std::size_t>(r.steps);
  r.values = std::span(s.values).first(cells);
  r.mask = std::span(s.mask).first(cells);
  held.groups.resize(static_cast<std::size_t>(item.variates));
  for (std::size_t v = 0; v < held.groups.size(); ++v) {  // that of the newest patch
    held.groups[v] = s.ids[(v + 1) * static_cast<std::size_t>(s.tokens) - 1];
  }
  r.groups = std::span(held.groups).first(static_cast<std::size_t>(r.targets));
  r.horizon = item.horizon;
  r.block = block_of(item, net_.patch()) * net_.patch();
  r.has_missing_values = item.decoding.has_missing_values;
  r.fallback = static_cast<std::int32_t>(std::min<std::size_t>(
      item.decoding.scaler_fallback_min_obs, std::numeric_limits<std::int32_t>::max()));
  r.cap = item.decoding.quantile_real_cap_k;
  r.seed = item.seed;
  r.key = s.key;
  r.trajectories = item.trajectories;
  r.tails = knot_tails(item.tails);
  r.coherent = coherent;
  r.level_first = item.level_first;
  r.level_count = item.level_count;
  if (r.covariates > 0) take_covariates(item, held, r);
  if (item.forced.empty()) return;
  // The first trajectory of the targets, in the place of medians.
  const auto first = item.forced.first(static_cast<std::size_t>(r.targets) *
                                       static_cast<std::size_t>(item.patches) *
                                       static_cast<std::size_t>(net_.patch()));
  held.feedback.assign(first.begin(), first.end());
  r.feedback = held.feedback;
}

/// Context and future of the covariates side by side, as the model takes them.
void Toto2Program::take_covariates(const Item& item, Held& held, toto2::Request& r) const {
  const Prepared& s = *item.prepared;
  const std::ptrdiff_t patch = net_.patch();
  const std::ptrdiff_t steps = r.steps;
  const std::ptrdiff_t all = steps + item.horizon;
  r.known_steps = static_cast<std::int32_t>(all);
  held.known.resize(static_cast<std::size_t>(r.covariates * all));
  held.known_mask.resize(held.known.size());
  for (std::ptrdiff_t e = 0; e < r.covariates; ++e) {
    const std::ptrdiff_t from = (r.targets + e) * steps;
    std::copy_n(s.values.begin() + from, steps, held.known.begin() + e * all);
    std::copy_n(s.mask.begin() + from, steps, held.known_mask.begin() + e * all);
    std::fill_n(held.known_mask.begin() + e * all + steps, item.horizon, std::uint8_t{1});
    for (std::ptrdiff_t t = 0; t < item.horizon; ++t) {
      const auto to = static_cast<std::size_t>(e * all + steps + t);
      const auto cell =
          static_cast<std::size_t>((t / patch * r.covariates + e) * patch + t % patch);
      held.known[to] = s.covariates[cell];
      if (!s.covariate_mask.empty()) held.known_mask[to] = s.covariate_mask[cell];
    }
  }
  r.known = held.known;
  r.known_mask = held.known_mask;
  r.known_groups = std::span(held.groups).subspan(static_cast<std::size_t>(r.targets));
}

/// The image of sources comes first, so that everything before the network's inputs is copied in
/// with them.
void Toto2Program::stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in,
                         std::size_t at, bool /*replay*/) {
  if (held_.size() < batch.items.size()) held_.resize(batch.items.size());
  requests_.resize(batch.items.size());
  generation_.start(requests_);
  share_out(net_.backend(), batch.items.size(), [&](std::size_t i) {
    take(batch.items[i], batch.coherent, held_[i], requests_[i]);
    generation_.take(i);
  });
  generation_.add_up();
  results_.stage(batch, key, in, at);
  cost_ += generation_.stage(room(key), in, at + KnotResults::input_bytes(key));
}

// --- the operations ---

void Toto2Program::run(Executor& ex, const MicroBatch& batch, const ProgramKey& key,
                       const Workspace& workspace) {
  memory_ = &static_cast<const Toto2Workspace&>(workspace);
  batch_ = &batch;
  probed_ = ex.probe != nullptr;
  results_.begin(ex, batch, key, net_.patch(), ex.in_at);
  generation_.run(*memory_, room(key), ex.in, ex.in_at + KnotResults::input_bytes(key),
                  ex.capturing, *this);
  results_.finish(ex);
}

/// The first call has all requests, and with coherent paths the forecasts of their contexts.
void Toto2Program::predicted(std::int32_t index, const Call& wanted, const SeriesArrays& arrays,
                             const ConstView& quantiles, const KnotOutputs& to) {
  const Ops2& ops = net_.ops();
  KnotOutputs rest = to;
  if (to.coherent && calls_of(*batch_) == 1 && ops.knot_paths(wanted, arrays, quantiles, to)) {
    rest.kept = nullptr;
  } else if (to.coherent && index == 0) {
    float* const rho = typed<float>(memory_->rho);
    ops.knot_neighbours(wanted, arrays, quantiles, typed<double>(memory_->scores), rho);
    ops.knot_chains(wanted, arrays, rho, to);
  }
  ops.knot_results(wanted, arrays, quantiles, rest);
}

/// For those who look inside.
void Toto2Program::block(const toto2::Block& b) {
  const Item& item = batch_->items[b.request];
  const std::int32_t patch = net_.patch();
  const std::size_t patches = b.loc.size() / static_cast<std::size_t>(b.variates);  // of a lane
  double knots[kQuantiles];
  for (std::int32_t v = 0; v < b.variates; ++v) {
    for (std::int32_t p = 0; p < b.patches; ++p) {
      const std::int32_t first = (b.first + p) * patch;
      if (first < 0) continue;
      const auto row = static_cast<std::size_t>(v * b.patches + p) * kQuantiles;
      const std::size_t at = static_cast<std::size_t>(v) * patches +
                             static_cast<std::size_t>(item.tokens + b.first + p);
      for (std::int32_t t = 0; t < std::min(patch, item.horizon - first); ++t) {
        for (std::size_t q = 0; q < kQuantiles; ++q) {
          knots[q] = b.quantiles[(row + q) * static_cast<std::size_t>(patch) +
                                 static_cast<std::size_t>(t)];
        }
        results_.show(b.request, v, first + t, knots, b.loc[at], b.scale[at]);
      }
    }
  }
}

}  // namespace toto
