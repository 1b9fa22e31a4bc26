// SPDX-License-Identifier: Apache-2.0
// The groups of checks. Each function measures one thing and returns its checks; it may throw, and
// is then a check that could not run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/verify/experiment.h"

namespace toto::verify {

struct Item {
  std::string group;
  std::string name;
  std::function<std::vector<Check>(Experiment&)> run;
};

/// Every item of the suite, in the order that loads the fewest models.
std::vector<Item> items_of(const Experiment& e);

/// Runs some. A failure of any kind is a check; only Error interrupted is thrown on.
VerifyReport run_items(Experiment& e, const std::vector<Item>& items);

/// Runs all of them, or those that the options ask for.
VerifyReport run_suite(const VerifyOptions& options, const Laboratory& laboratory);

// correctness.cpp
std::vector<Check> eager_is_exact(Experiment& e);
std::vector<Check> mode_is_eager(Experiment& e, const Subject& subject);

// another_process.cpp
std::vector<Check> same_in_another_process(Experiment& e);
/// Digests of every mode, as a second process hands them over.
std::string bits_of_all(Experiment& e);

// determinism.cpp
std::vector<Check> same_bits_again(Experiment& e, const Subject& subject);
std::vector<Check> same_bits_by_threads(Experiment& e, const Subject& subject);

// performance.cpp
std::vector<Check> speed(Experiment& e, const Subject& subject);

// stability.cpp
std::vector<Check> nothing_is_built(Experiment& e, const Subject& subject);
std::vector<Check> odd_inputs(Experiment& e, const Subject& subject);
std::vector<Check> memory_is_flat(Experiment& e, const Subject& subject);
std::vector<Check> memory_returns(Experiment& e);
std::vector<Check> soak(Experiment& e, const Subject& subject);

// accuracy.cpp
std::vector<Check> walk_forward(Experiment& e, const Subject& subject);
std::vector<Check> sampling_noise(Experiment& e, const Subject& subject);

// environment.cpp
std::vector<Check> environment(Experiment& e);
void describe_environment(Experiment& e, VerifyReport& report);

// history_checks.cpp
std::vector<Check> compare_history(Experiment& e, const Subject& subject);
std::vector<Check> record_history(Experiment& e, const Subject& subject);
/// Writes what record_history() has made; an earlier record is replaced only where all is well.
std::vector<Check> leave_record(Experiment& e);

// golden_checks.cpp
std::vector<Check> golden(Experiment& e, const std::string& folder);

}  // namespace toto::verify
