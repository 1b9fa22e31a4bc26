// SPDX-License-Identifier: Apache-2.0
// The same bits in another process. Digests are compared, not the bits themselves: those of every
// mode would be memory that the checks of memory see.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <sstream>

#include "tools/verify/groups.h"
#include "tools/verify/request.h"

namespace toto::verify {
namespace {

std::vector<std::string> bits_of(SuiteState& state, const Variant& variant) {
  Forecaster forecaster = state.forecaster(variant);
  const Request r = request_for(state, patch_of(forecaster.model()));
  return digests_of(forecaster, r, forecaster.forecast(r.series, r.options));
}

/// What bits_of_all() wrote: for each mode its label, a line for each series, an empty line.
std::map<std::string, std::vector<std::string>> read_bits(const std::string& text) {
  std::map<std::string, std::vector<std::string>> all;
  std::istringstream lines(text);
  std::vector<std::string>* mode = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      mode = nullptr;
    } else if (mode == nullptr) {
      mode = &all[line];
    } else {
      mode->push_back(line);
    }
  }
  return all;
}

}  // namespace

std::string bits_of_all(SuiteState& state) {
  std::string text;
  for (const Variant& variant : all_subjects(state)) {
    text += variant.label() + '\n';
    for (const std::string& digest : bits_of(state, variant)) text += digest + '\n';
    text += '\n';
  }
  return text;
}

std::vector<Check> same_in_another_process(SuiteState& state) {
  const auto other = read_bits(state.second_process());
  const Request request = request_for(state, patch_of(state.eager()));
  std::vector<Check> checks;
  for (const Variant& variant : all_subjects(state)) {
    const std::string label = variant.label();
    std::vector<std::string>& mine = state.bits[label];
    if (mine.empty()) mine = bits_of(state, variant);
    const auto its = other.find(label);
    if (its == other.end() || its->second.size() != mine.size() || mine.empty()) {
      Check c = measured(label, "series whose bits differ", std::nan(""), 0, "series",
                         "the other process did not hand over this mode");
      c.verdict = Verdict::could_not_run;
      checks.push_back(std::move(c));
      continue;
    }
    std::size_t different = 0;
    std::string where;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (mine[i] == its->second[i]) continue;
      if (where.empty()) where = fmt::format("first: series '{}'", request.owned[i].id);
      ++different;
    }
    checks.push_back(measured(
        label, "series of which a bit differs: parameters, statistics, trajectories",
        static_cast<double>(different), 0, "series",
        where.empty() ? fmt::format("{} series, the same seed, compared by SHA-256", mine.size())
                      : where));
  }
  return checks;
}

}  // namespace toto::verify
