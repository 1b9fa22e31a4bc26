// SPDX-License-Identifier: Apache-2.0
// The groups of checks. Each function measures one thing and returns its checks; it may throw, and
// is then a check that could not run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/verify/suite_state.h"

namespace toto::verify {

struct Item {
  std::string group;
  std::string name;
  std::function<std::vector<Check>(SuiteState&)> run;
};

/// Every item of the suite, in the order that loads the fewest models.
std::vector<Item> items_of(const SuiteState& state);

/// Runs some. A failure of any kind is a check; only Error interrupted is thrown on.
VerifyReport run_items(SuiteState& state, const std::vector<Item>& items);

/// Runs all of them, or those that the options ask for.
VerifyReport run_suite(const VerifyOptions& options, const Harness& harness);

// correctness.cpp
std::vector<Check> eager_is_exact(SuiteState& state);
std::vector<Check> mode_is_eager(SuiteState& state, const Variant& variant);

// another_process.cpp
std::vector<Check> same_in_another_process(SuiteState& state);
/// Digests of every mode, as a second process hands them over.
std::string bits_of_all(SuiteState& state);

// determinism.cpp
std::vector<Check> same_bits_again(SuiteState& state, const Variant& variant);
std::vector<Check> same_bits_by_threads(SuiteState& state, const Variant& variant);

// performance.cpp
std::vector<Check> speed(SuiteState& state, const Variant& variant);
/// Of the times of one program. `others`: cores that other programs kept busy meanwhile; what is
/// beyond the bound then is no failure.
Check judge_spread(const std::string& name, double spread, double of_eager, double others);
/// Of the fastest times: `slowdown` of the mode over eager. Where other programs kept the machine
/// busy, their share cannot be told from a slow build by the clock. `by_processor` is then the same
/// ratio of the processor time of one thread, to which they add nothing, and decides; not finite:
/// it could not be measured, and a slowdown stays a failure. `times` says what was measured.
Check judge_slowdown(const std::string& name, double slowdown, double by_processor, double others,
                     const std::string& times);
/// Whether so many cores used by others make a time theirs too.
bool is_busy(double others);

// stability.cpp
std::vector<Check> nothing_is_built(SuiteState& state, const Variant& variant);
std::vector<Check> odd_inputs(SuiteState& state, const Variant& variant);
std::vector<Check> memory_is_flat(SuiteState& state, const Variant& variant);
std::vector<Check> memory_returns(SuiteState& state);
std::vector<Check> soak(SuiteState& state, const Variant& variant);

// accuracy.cpp
std::vector<Check> walk_forward(SuiteState& state, const Variant& variant);
std::vector<Check> sampling_noise(SuiteState& state, const Variant& variant);

// environment.cpp
std::vector<Check> environment(SuiteState& state);
void describe_environment(SuiteState& state, VerifyReport& report);

// history_checks.cpp
std::vector<Check> compare_history(SuiteState& state, const Variant& variant);
std::vector<Check> record_history(SuiteState& state, const Variant& variant);
/// Writes what record_history() has made; an earlier record is replaced only where all is well.
std::vector<Check> leave_record(SuiteState& state);

// golden_checks.cpp
std::vector<Check> golden(SuiteState& state, const std::string& folder);

}  // namespace toto::verify
