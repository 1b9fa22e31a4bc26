// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/log.h"
#include "core/stopwatch.h"
#include "settings/presets.h"

namespace toto {
namespace {

constexpr std::size_t kReasons = 32;

Capacity rounded(const Capacity& need) {
  Capacity c;
  for (std::size_t i = 0; i < Capacity::kDimensions; ++i) c.of[i] = bucket(need.of[i]);
  return c;
}

}  // namespace

std::string PlanTable::describe(const Capacity& c, std::size_t bytes) const {
  std::string text;
  const auto names = program_->dimensions();
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += fmt::format("{} {}, ", names[i], c.of[i]);
  }
  return text + fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

PlanTable::PlanTable(const Network& net, const ForecasterOptions& options)
    : backend_(net.backend()), program_(net.program()), options_(options) {
  if (options_.max_plans == 0) options_.max_plans = kDefaultMaxPlans;
}

PlanTable::~PlanTable() {
  if (arena_ != nullptr) backend_.release(arena_);
  if (tables_ != nullptr) backend_.release(tables_);
}

void PlanTable::forget() {
  plans_.clear();
  if (arena_ != nullptr) backend_.release(arena_);
  arena_ = nullptr;
  arena_bytes_ = 0;
  ++epoch_;
}

std::size_t PlanTable::bytes_for(const Capacity& need) const {
  return program_->lay_out(need, nullptr, {}, nullptr)->bytes;
}

const Workspace& PlanTable::acquire(const Capacity& need) {
  // The smallest that holds it: a larger one would do, but its memory may be cold.
  Plan* best = nullptr;
  for (const auto& plan : plans_) {
    if (!plan->workspace->capacity.holds(need)) continue;
    if (best == nullptr || plan->workspace->bytes < best->workspace->bytes) best = plan.get();
  }
  if (best != nullptr) {
    ++hits_;
    best->used = ++clock_;
    return *best->workspace;
  }
  return *build(need).workspace;
}

const PlanTable::Plan& PlanTable::build(const Capacity& need) {
  const Stopwatch watch(plan_seconds_, "plan");
  std::string reason = reason_for(need);
  Capacity capacity = rounded(need);
  // Rounding up must not be what breaks the limit.
  if (options_.memory_limit != 0 && bytes_for(capacity) > options_.memory_limit) capacity = need;
  auto plan = std::make_unique<Plan>();
  plan->workspace = program_->lay_out(capacity, nullptr, {}, nullptr);
  ensure_arena(plan->workspace->bytes);
  ensure_tables(program_->tables_of(capacity));
  if (plans_.size() >= options_.max_plans) evict();
  place(*plan);
  plan->used = ++clock_;
  plans_.push_back(std::move(plan));
  const Plan& built = *plans_.back();

  ++builds_;
  last_ = describe(built.workspace->capacity, built.workspace->bytes);
  log(Topic::plans, "plan_built", fmt::format("plan built: {} ({})", last_, reason));
  if (reasons_.size() == kReasons) reasons_.erase(reasons_.begin());
  reasons_.push_back(std::move(reason));
  return built;
}

/// Grows the arena; all plans move with it.
void PlanTable::ensure_arena(std::size_t bytes) {
  if (bytes <= arena_bytes_ && arena_ != nullptr) return;
  ++epoch_;
  if (arena_ != nullptr) backend_.release(arena_);  // first: both at once may not fit
  arena_ = nullptr;
  arena_bytes_ = 0;
  try {
    arena_ = static_cast<std::byte*>(backend_.allocate(std::max<std::size_t>(bytes, 1)));
  } catch (const std::bad_alloc&) {
    plans_.clear();  // their memory is gone
    throw;
  }
  arena_bytes_ = bytes;
  ++allocations_;
  for (const auto& plan : plans_) place(*plan);
  log(Topic::memory, "memory_grown",
      fmt::format("working memory grew to {:.1f} MiB", static_cast<double>(bytes) / (1 << 20)));
}

/// Grows the tables; all plans find the new ones, which are there before the old ones go.
void PlanTable::ensure_tables(const Capacity& needed) {
  if (tables_for_.holds(needed)) return;
  Capacity larger;
  for (std::size_t i = 0; i < Capacity::kDimensions; ++i) {
    larger.of[i] = std::max(needed.of[i], tables_for_.of[i]);
  }
  const auto free = [this](std::byte* memory) { backend_.release(memory); };
  std::unique_ptr<std::byte, decltype(free)> tables(
      static_cast<std::byte*>(backend_.allocate(program_->table_bytes(larger))), free);
  program_->fill_tables(larger, tables.get());
  if (tables_ != nullptr) backend_.release(tables_);
  tables_ = tables.release();
  tables_for_ = larger;
  ++epoch_;
  ++allocations_;
  for (const auto& plan : plans_) place(*plan);
  log(Topic::memory, "memory_grown", "the tables of plans grew");
}

void PlanTable::place(Plan& plan) const {
  plan.workspace = program_->lay_out(plan.workspace->capacity, arena_, tables_for_, tables_);
}

void PlanTable::evict() {
  const auto oldest = std::min_element(
      plans_.begin(), plans_.end(), [](const auto& a, const auto& b) { return a->used < b->used; });
  log(Topic::plans, "plan_evicted",
      fmt::format("plan evicted: {}",
                  describe((*oldest)->workspace->capacity, (*oldest)->workspace->bytes)));
  plans_.erase(oldest);
  ++evictions_;
}

std::string PlanTable::reason_for(const Capacity& need) const {
  if (plans_.empty()) return "no plan yet";
  const Capacity& had =
      (*std::max_element(plans_.begin(), plans_.end(), [](const auto& a, const auto& b) {
        return a->used < b->used;
      }))->workspace->capacity;
  std::string reason = "the last plan has too few";
  const auto names = program_->dimensions();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (need.of[i] > had.of[i]) {
      reason += fmt::format(" {} ({} > {})", names[i], need.of[i], had.of[i]);
    }
  }
  return reason;
}

void PlanTable::count(Counters& counters) const {
  counters.plan_builds = builds_;
  counters.plan_hits = hits_;
  counters.plan_evictions = evictions_;
  counters.plan_seconds = plan_seconds_;
  counters.allocations = allocations_;
  counters.working_bytes = arena_bytes_;
  counters.plan = last_;
  counters.builds = reasons_;
}

void PlanTable::log(Topic topic, std::string_view code, std::string_view message) const {
  log_info(options_.log, topic, code, message);
}

}  // namespace toto
