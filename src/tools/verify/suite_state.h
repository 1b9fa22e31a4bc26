// SPDX-License-Identifier: Apache-2.0
// What the checks of a suite share: `eager`, one other model at a time, the cases, and the results
// of `eager` and float64 for them. Each part is computed when a check first needs it, so that a
// failure counts against that check.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/atomic_file.h"
#include "tools/verify/cases.h"
#include "tools/verify/harness.h"
#include "tools/verify/windows.h"

namespace toto::verify {

class SuiteState {
 public:
  SuiteState(const VerifyOptions& asked, const Harness& given) : options(asked), harness(given) {}

  /// Float32, kept to the end.
  const Model& eager();
  /// Kept until another variant is asked for.
  const Model& model(const Variant& variant);
  /// A forecaster of it, with the memory limit, the number of plans and the plan cache in force.
  /// Throws Error (78) plan_cache_miss as a service would.
  Forecaster forecaster(const Variant& variant);
  [[nodiscard]] Forecaster forecaster(const Model& model, const Variant& variant) const;
  /// Frees the model that model() keeps.
  void unload();
  const std::vector<Case>& cases();
  /// One for each case.
  const std::vector<Record>& eager_records();
  const std::vector<Record>& exact_records();

  const Windows& windows();
  const std::vector<Forecast>& eager_windows();
  const std::vector<Forecast>& exact_windows();

  /// Runs in the background until second_process() is called. Throws what Harness throws.
  void start_second_process();
  const std::string& second_process();
  void wait_for_second_process() const;

  /// Of the kernels, once a model has been loaded.
  [[nodiscard]] std::string isa() const;
  /// The mode and the variant to be deployed.
  [[nodiscard]] Mode mode() const { return options.load.mode.value_or(Mode::reduce_overhead); }
  [[nodiscard]] Variant in_force() const { return {mode(), options.load.precision}; }
  /// The other ways of running that the suite looks at; `eager` float32 is what they are compared
  /// with.
  [[nodiscard]] std::vector<Variant> variants() const;
  /// Those that are judged: options.modes, or the one in force.
  [[nodiscard]] std::vector<Mode> modes() const;
  [[nodiscard]] bool quick() const { return options.suite == Suite::quick; }

  const VerifyOptions& options;
  const Harness& harness;
  /// A digest for each series, of each variant: to be compared with another process.
  std::map<std::string, std::vector<std::string>> bits;
  std::unique_ptr<AtomicFile> record;  // what --record leaves, written but not yet in its place
  bool failed = false;                 // a check that was run so far did not hold
  /// Tables of the report; checks append rows.
  std::map<std::string, VerifyTable> tables;
  std::vector<std::uint64_t> resident_after_unloading;  // bytes

 private:
  void run_exact();

  std::optional<Model> eager_;
  std::optional<Model> model_;
  Variant loaded_;
  std::vector<Case> cases_;
  std::vector<Record> eager_records_, exact_records_;
  Windows windows_;
  std::vector<Forecast> eager_windows_, exact_windows_;
  std::future<std::string> second_;
  std::string second_bits_;
};

/// Types that round more than float32 does, each with how far it may be from `eager` float32 where
/// nothing has been drawn, in units of scale: docs/production.md, "How close modes are".
/// Tf32 is one on a GPU; on a CPU it is float32 and held to be.
[[nodiscard]] constexpr bool is_narrow(Precision type, std::string_view backend) {
  return type == Precision::bfloat16 || type == Precision::int8 ||
         (type == Precision::tf32 && backend == "cuda");
}
struct NarrowBounds {
  double mean, largest;
};
[[nodiscard]] constexpr NarrowBounds narrow_bounds(Precision type) {
  return type == Precision::tf32   ? NarrowBounds{0.002, 0.05}
         : type == Precision::int8 ? NarrowBounds{0.03, 0.8}
                                   : NarrowBounds{0.01, 0.25};
}

/// Steps in a token.
std::size_t patch_of(const Model& model);

/// `mine / its` of two distances; not a number where one is not finite, so that a bound on it
/// cannot hold. Two distances of 0 are alike.
double ratio(double mine, double its);

/// A check with its value and bound; the runner adds group and reproduce.
Check measured(std::string name, std::string measure, double value, double bound,
               std::string unit = {}, std::string why = {});

/// The series of the user, or some that were made: the last `steps` steps of at most `most`.
std::vector<OwnedSeries> own_series(const SuiteState& state, std::size_t steps, std::size_t most);

}  // namespace toto::verify
