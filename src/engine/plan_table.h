// SPDX-License-Identifier: Apache-2.0
// Plans: for each bucket of shapes, where everything lies in memory. All plans share one arena,
// since forecasts take turns; a plan itself is a table of pointers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/network.h"
#include "toto/forecast.hpp"

namespace toto {

class PlanTable {
 public:
  PlanTable(const Network& net, const ForecasterOptions& options);
  ~PlanTable();
  PlanTable(const PlanTable&) = delete;
  PlanTable& operator=(const PlanTable&) = delete;

  /// The memory for a call that needs `need`; valid until the next call of this function. Builds a
  /// plan for the bucket around `need` where none holds it. Throws std::bad_alloc, and nothing has
  /// changed then.
  const Workspace& acquire(const Capacity& need);

  /// Forgets all plans and frees their memory.
  void forget();

  /// Bytes that a call would take, before any rounding up.
  [[nodiscard]] std::size_t bytes_for(const Capacity& need) const;
  [[nodiscard]] std::uint64_t memory_limit() const { return options_.memory_limit; }
  /// At least 1.
  [[nodiscard]] std::size_t max_plans() const { return options_.max_plans; }

  [[nodiscard]] std::uint64_t builds() const { return builds_; }
  [[nodiscard]] std::uint64_t allocations() const { return allocations_; }
  /// Why the newest plan was built; there must be one.
  [[nodiscard]] const std::string& last_reason() const { return reasons_.back(); }
  /// Changes when memory that plans point into has moved.
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  /// Fills what belongs to plans.
  void count(Counters& counters) const;
  void log(Topic topic, std::string_view code, std::string_view message) const;

 private:
  struct Plan {
    std::unique_ptr<Workspace> workspace;
    std::uint64_t used = 0;  // when, by clock_
  };
  const Plan& build(const Capacity& need);
  void ensure_arena(std::size_t bytes);
  void ensure_tables(const Capacity& needed);
  void place(Plan& plan) const;
  [[nodiscard]] std::string describe(const Capacity& capacity, std::size_t bytes) const;
  void evict();
  [[nodiscard]] std::string reason_for(const Capacity& need) const;

  Backend& backend_;
  std::unique_ptr<Program> program_;  // knows the sizes
  ForecasterOptions options_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::uint64_t clock_ = 0;
  std::byte* arena_ = nullptr;
  std::size_t arena_bytes_ = 0;
  // Constants that do not change from forecast to forecast.
  std::byte* tables_ = nullptr;
  Capacity tables_for_;

  std::uint64_t epoch_ = 0;
  std::uint64_t builds_ = 0, hits_ = 0, evictions_ = 0, allocations_ = 0;
  double plan_seconds_ = 0;
  std::string last_;
  std::vector<std::string> reasons_;
};

}  // namespace toto
