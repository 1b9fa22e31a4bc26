// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace toto {
namespace {

constexpr std::size_t kReasons = 32;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Capacity rounded(const Capacity& need) {
  Capacity c = need;
  c.rows = bucket(need.rows);
  c.context_lanes = bucket(need.context_lanes);
  c.lanes = std::max(bucket(need.lanes), c.context_lanes);
  c.kv_elements = bucket(need.kv_elements);
  c.covariates = bucket(need.covariates);
  c.positions = static_cast<std::int32_t>(bucket(std::max(need.positions, 64)));
  return c;
}

std::string describe(const Capacity& c, std::size_t bytes) {
  return fmt::format("rows {}, lanes {}, positions {}{}, {:.1f} MiB", c.rows, c.lanes, c.positions,
                     c.one_patch ? ", one patch" : "", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

std::int64_t bucket(std::int64_t n) {
  if (n <= 4) return n;
  std::int64_t power = 4;
  while (power * 2 < n) power *= 2;
  const std::int64_t quarter = power / 4;
  return power + (n - power + quarter - 1) / quarter * quarter;
}

PlanTable::PlanTable(const Toto1& net, const ForecasterOptions& options)
    : net_(net), options_(options) {
  options_.max_plans = std::max<std::size_t>(options_.max_plans, 1);
}

PlanTable::~PlanTable() {
  Backend& be = net_.backend();
  if (arena_ != nullptr) be.release(arena_);
  if (rotary_memory_ != nullptr) be.release(rotary_memory_);
  if (ones_ != nullptr) be.release(ones_);
}

void PlanTable::forget() {
  plans_.clear();
  if (arena_ != nullptr) net_.backend().release(arena_);
  arena_ = nullptr;
  arena_bytes_ = 0;
  ++epoch_;
}

std::size_t PlanTable::bytes_for(const Capacity& need) const {
  return lay_out(net_, need, nullptr).bytes;
}

const Workspace& PlanTable::acquire(const Capacity& need) {
  // The smallest that holds it: a larger one would do, but its memory may be cold.
  Plan* best = nullptr;
  for (const auto& plan : plans_) {
    if (!plan->workspace.capacity.holds(need)) continue;
    if (best == nullptr || plan->workspace.bytes < best->workspace.bytes) best = plan.get();
  }
  if (best != nullptr) {
    ++hits_;
    best->used = ++clock_;
    return best->workspace;
  }
  return build(need).workspace;
}

const PlanTable::Plan& PlanTable::build(const Capacity& need) {
  const auto start = std::chrono::steady_clock::now();
  std::string reason = reason_for(need);
  Capacity capacity = rounded(need);
  // Rounding up must not be what breaks the limit.
  if (options_.memory_limit != 0 && bytes_for(capacity) > options_.memory_limit) capacity = need;
  auto plan = std::make_unique<Plan>();
  plan->workspace = lay_out(net_, capacity, nullptr);
  ensure_arena(plan->workspace.bytes);
  ensure_tables(capacity.positions, capacity.lanes);
  if (plans_.size() >= options_.max_plans) evict();
  place(plan->workspace);
  plan->used = ++clock_;
  plans_.push_back(std::move(plan));
  const Plan& built = *plans_.back();

  ++builds_;
  build_seconds_ += seconds_since(start);
  last_ = describe(built.workspace.capacity, built.workspace.bytes);
  log(fmt::format("plan built: {} ({})", last_, reason));
  if (reasons_.size() == kReasons) reasons_.erase(reasons_.begin());
  reasons_.push_back(std::move(reason));
  return built;
}

/// Grows the arena; all plans move with it.
void PlanTable::ensure_arena(std::size_t bytes) {
  if (bytes <= arena_bytes_) return;
  ++epoch_;
  Backend& be = net_.backend();
  if (arena_ != nullptr) be.release(arena_);  // first: both at once may not fit
  arena_ = nullptr;
  arena_bytes_ = 0;
  try {
    arena_ = be.allocate(bytes);
  } catch (const std::bad_alloc&) {
    plans_.clear();  // their memory is gone
    throw;
  }
  arena_bytes_ = bytes;
  ++allocations_;
  for (const auto& plan : plans_) place(plan->workspace);
}

/// Grows the tables; all plans find the new ones. Both are there before either of the old ones
/// goes.
void PlanTable::ensure_tables(std::int32_t positions, std::int64_t lanes) {
  const bool longer = positions > rotary_.positions;
  const bool wider = lanes > ones_lanes_;
  if (!longer && !wider) return;
  Backend& be = net_.backend();
  const auto free = [&be](void* memory) { be.release(memory); };
  using Owned = std::unique_ptr<void, decltype(free)>;
  Owned rotary_memory(nullptr, free);
  Owned ones(nullptr, free);
  Rotary rotary = rotary_;
  if (longer) {
    const RotaryTables tables = rotary_tables(positions, net_.config().head_dim());
    const std::size_t bytes = tables.cosine.size() * be.element_size();
    rotary_memory.reset(be.allocate(4 * bytes));
    auto* const memory = static_cast<std::byte*>(rotary_memory.get());
    be.upload(std::span<const double>(tables.cosine), memory);
    be.upload(std::span<const double>(tables.sine), memory + bytes);
    be.upload(std::span<const double>(tables.factor), memory + 2 * bytes);
    rotary = {memory, memory + bytes, memory + 2 * bytes, positions};
  }
  if (wider) {
    const std::vector<std::uint8_t> all(static_cast<std::size_t>(lanes * net_.config().patch_size),
                                        1);
    ones.reset(be.allocate(all.size()));
    be.upload_bytes(all, static_cast<std::uint8_t*>(ones.get()));
  }
  if (longer) {
    if (rotary_memory_ != nullptr) be.release(rotary_memory_);
    rotary_memory_ = rotary_memory.release();
    rotary_ = rotary;
  }
  if (wider) {
    if (ones_ != nullptr) be.release(ones_);
    ones_ = static_cast<std::uint8_t*>(ones.release());
    ones_lanes_ = lanes;
  }
  ++epoch_;
  ++allocations_;
  for (const auto& plan : plans_) place(plan->workspace);
}

void PlanTable::place(Workspace& workspace) const {
  workspace = lay_out(net_, workspace.capacity, arena_);
  workspace.rotary = rotary_;
  workspace.ones = ones_;
}

void PlanTable::evict() {
  const auto oldest = std::min_element(
      plans_.begin(), plans_.end(), [](const auto& a, const auto& b) { return a->used < b->used; });
  log(fmt::format("plan evicted: {}",
                  describe((*oldest)->workspace.capacity, (*oldest)->workspace.bytes)));
  plans_.erase(oldest);
  ++evictions_;
}

std::string PlanTable::reason_for(const Capacity& need) const {
  if (plans_.empty()) return "no plan yet";
  const Capacity& c =
      (*std::max_element(plans_.begin(), plans_.end(), [](const auto& a, const auto& b) {
        return a->used < b->used;
      }))->workspace.capacity;
  std::string reason = "the last plan has too few";
  const auto compare = [&](std::string_view what, std::int64_t wanted, std::int64_t had) {
    if (wanted > had) reason += fmt::format(" {} ({} > {})", what, wanted, had);
  };
  compare("rows", need.rows, c.rows);
  compare("context lanes", need.context_lanes, c.context_lanes);
  compare("lanes", need.lanes, c.lanes);
  compare("cached keys", need.kv_elements, c.kv_elements);
  compare("covariates", need.covariates, c.covariates);
  compare("positions", need.positions, c.positions);
  if (c.one_patch && !need.one_patch) reason += " patches (more than one > 1)";
  return reason;
}

void PlanTable::count(Counters& counters) const {
  counters.plan_builds = builds_;
  counters.plan_hits = hits_;
  counters.plan_evictions = evictions_;
  counters.build_seconds = build_seconds_;
  counters.allocations = allocations_;
  counters.working_bytes = arena_bytes_;
  counters.plan = last_;
  counters.builds = reasons_;
}

void PlanTable::log(std::string_view line) const {
  if (options_.plan_log) options_.plan_log(line);
}

}  // namespace toto
