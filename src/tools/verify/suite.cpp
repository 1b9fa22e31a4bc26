// SPDX-License-Identifier: Apache-2.0
// Runs a suite so that nothing can be left out unseen: an item that throws, or measures nothing, is
// a check that could not run.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <new>

#include "core/closest.h"
#include "core/json.h"
#include "core/stopwatch.h"
#include "models/model_impl.h"
#include "tools/verify/groups.h"

namespace toto {
namespace verify {
namespace {

constexpr const char* kSecondProcess = "another process";

Check could_not_run(const Item& item, std::string_view why) {
  Check c;
  c.name = item.name.empty() ? item.group : item.name;
  c.measure = "nothing: the check could not run";
  c.value = std::nan("");
  c.verdict = Verdict::could_not_run;
  c.why = why;
  return c;
}

std::vector<Check> attempt(const Item& item, SuiteState& state) {
  try {
    std::vector<Check> checks = item.run(state);
    if (checks.empty()) return {could_not_run(item, "nothing was measured")};
    for (Check& c : checks) c.name = item.name.empty() ? c.name : item.name + ": " + c.name;
    return checks;
  } catch (const Error& error) {
    if (error.status() == ExitStatus::interrupted) throw;
    return {could_not_run(item, error.what())};
  } catch (const std::bad_alloc&) {
    return {could_not_run(item, "not enough memory")};
  } catch (const std::exception& error) {
    return {could_not_run(item, error.what())};
  }
}

std::string title_of(const Item& item) {
  return item.name.empty() ? item.group : item.group + ": " + item.name;
}

/// No item is called so, or like so.
Error unknown_check(const std::string& only, const std::vector<Item>& items) {
  std::vector<std::string> titles;  // in the order of the suite; a variant has several of a title
  std::vector<std::string> known;
  for (const Item& item : items) {
    const std::string title = title_of(item);
    if (std::ranges::find(titles, title) == titles.end()) titles.push_back(title);
    known.insert(known.end(), {item.group, item.name, title});
  }
  const std::string_view near = closest(only, known);
  return {ExitStatus::usage, "unknown_check",
          fmt::format("no check of this suite has {} in its name", quote(only)), "--only",
          fmt::format("{}there are: {}", near.empty() ? "" : fmt::format("did you mean {}? ", near),
                      fmt::join(titles, ", "))};
}

std::string now_in_utc() {
  const auto now = std::chrono::system_clock::now();
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

}  // namespace

std::vector<Item> items_of(const SuiteState& state) {
  std::vector<Item> items;
  const auto add = [&](std::string group, std::string name, auto run) {
    items.push_back({std::move(group), std::move(name), std::move(run)});
  };
  const Variant eager{Mode::eager, Precision::float32};
  add("environment", "", environment);
  add("correctness", "eager against float64", eager_is_exact);
  std::vector<Variant> all = state.variants();
  all.insert(all.begin(), eager);
  // What is looked at more closely: what is to be deployed.
  const bool covered = std::find(all.begin(), all.end(), state.in_force()) != all.end();
  const Variant chosen = covered ? state.in_force() : all.back();
  if (!covered) {
    add("environment", "modes judged", [](SuiteState& x) -> std::vector<Check> {
      throw Error(ExitStatus::verification_failed, "not_covered",
                  x.in_force().label() + " is in force, and this run does not judge it", "--modes",
                  "name the mode in force too, or leave --modes out");
    });
  }
  for (const Variant& s : all) {
    const std::string label = s.label();
    if (!(s == eager)) {
      add("correctness", label, [s](SuiteState& x) { return mode_is_eager(x, s); });
    }
    add("determinism", label, [s](SuiteState& x) { return same_bits_again(x, s); });
    add("accuracy", label, [s](SuiteState& x) { return walk_forward(x, s); });
    if (!state.quick() || s == chosen) {
      add("determinism", label, [s](SuiteState& x) { return same_bits_by_threads(x, s); });
    }
    if (s == chosen) add("accuracy", label, [s](SuiteState& x) { return sampling_noise(x, s); });
    if (s.mode != Mode::eager) {
      add("performance", label, [s](SuiteState& x) { return speed(x, s); });
      add("stability", label, [s](SuiteState& x) { return nothing_is_built(x, s); });
    }
    add("stability", label, [s](SuiteState& x) { return odd_inputs(x, s); });
    add("stability", label, [s](SuiteState& x) { return memory_is_flat(x, s); });
    if (!(s == chosen)) continue;
    if (!state.options.against.empty()) {
      add("history", "against", [s](SuiteState& x) { return compare_history(x, s); });
    }
    if (!state.options.record.empty()) {
      add("history", "record", [s](SuiteState& x) { return record_history(x, s); });
    }
  }
  add("determinism", kSecondProcess, same_in_another_process);
  add("stability", "", memory_returns);
  for (const std::string& folder : state.options.golden) {
    add("golden", folder, [folder](SuiteState& x) { return golden(x, folder); });
  }
  if (state.options.suite == Suite::soak) {
    add("stability", state.in_force().label(),
        [s = state.in_force()](SuiteState& x) { return soak(x, s); });
  }
  // Last, when it is known whether all is well.
  if (!state.options.record.empty()) add("history", "record", leave_record);
  return items;
}

VerifyReport run_items(SuiteState& state, const std::vector<Item>& items) {
  const auto begun = std::chrono::steady_clock::now();
  const VerifyOptions& options = state.options;
  VerifyReport report;
  report.suite = options.suite;
  report.command = options.command;
  report.started = now_in_utc();
  describe_environment(state, report);
  if (std::any_of(items.begin(), items.end(),
                  [](const Item& item) { return item.name == kSecondProcess; })) {
    state.start_second_process();  // beside float64, which has one thread
  }
  VerifyTable time{"Where the time went", "Seconds for each item.", {"item", "seconds"}, {}};
  std::size_t done = 0;
  for (const Item& item : items) {
    const std::string title = title_of(item);
    if (options.progress && !options.progress(done++, items.size(), title)) {
      throw Error(ExitStatus::interrupted, "interrupted", "stopped before it was done");
    }
    double seconds = 0;
    std::vector<Check> checks;
    {
      const Stopwatch watch(seconds);
      checks = attempt(item, state);
    }
    time.rows.push_back({title, fmt::format("{:.1f}", seconds)});
    for (Check& check : checks) {
      check.group = item.group;
      state.failed = state.failed || !check.holds();
      check.reproduce = fmt::format("{} --only '{}'", options.command, title);
      report.checks.push_back(std::move(check));
    }
  }
  for (auto& [key, table] : state.tables) report.tables.push_back(std::move(table));
  report.tables.push_back(std::move(time));
  if (const std::string isa = state.isa(); !isa.empty()) {
    report.environment.emplace_back("instruction set", isa);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return report;
}

VerifyReport run_suite(const VerifyOptions& options, const Harness& harness) {
  SuiteState state(options, harness);
  const std::vector<Item> all = items_of(state);
  std::vector<Item> items;
  std::ranges::copy_if(all, std::back_inserter(items), [&](const Item& item) {
    return title_of(item).find(options.only) != std::string::npos;
  });
  if (items.empty()) throw unknown_check(options.only, all);
  VerifyReport report = run_items(state, items);
  report.partial = !options.only.empty();
  return report;
}

}  // namespace verify

namespace {

bool all_hold(const VerifyReport& report) {
  return !report.checks.empty() && std::all_of(report.checks.begin(), report.checks.end(),
                                               [](const Check& c) { return c.holds(); });
}

}  // namespace

bool VerifyReport::holds() const { return !partial && all_hold(*this); }

ExitStatus VerifyReport::status() const {
  if (!all_hold(*this)) return ExitStatus::verification_failed;
  return partial ? ExitStatus::attention : ExitStatus::ok;
}

namespace {

/// What is verified is what would be deployed: the environment counts once, here, and does not
/// change the modes that are compared.
VerifyOptions completed(const VerifyOptions& options) {
  VerifyOptions all = options;
  all.load = complete(options.load);
  return all;
}

}  // namespace

VerifyReport verify_suite(const VerifyOptions& asked) {
  const VerifyOptions options = completed(asked);
  const verify::Harness harness(options);
  return verify::run_suite(options, harness);
}

std::string verify_bits(const VerifyOptions& asked) {
  const VerifyOptions options = completed(asked);
  const verify::Harness harness(options);
  verify::SuiteState state(options, harness);
  return verify::bits_of_all(state);
}

std::string_view word(Suite suite) {
  switch (suite) {
    case Suite::quick:
      return "quick";
    case Suite::full:
      return "full";
    case Suite::soak:
      return "soak";
  }
  return "?";
}

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "holds";
    case Verdict::warning:
      return "warning";
    case Verdict::fails:
      return "fails";
    case Verdict::could_not_run:
      return "could not run";
  }
  return "?";
}

}  // namespace toto
