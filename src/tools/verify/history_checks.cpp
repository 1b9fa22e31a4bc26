// SPDX-License-Identifier: Apache-2.0
// --record and --against: whether this build still says what an earlier one said.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/atomic_file.h"
#include "core/sha256.h"
#include "engine/plan_entry.h"
#include "models/model_impl.h"
#include "tools/verify/groups.h"
#include "tools/verify/history.h"
#include "tools/verify/without_parameters.h"

namespace toto::verify {
namespace {

constexpr double kWarn = 1e-6, kFail = 1e-5;
constexpr std::size_t kContext = 1024, kSeries = 256;

/// `checks`: that a forecast without parameters, which is what a service asks for, says the same.
History history_now(SuiteState& state, const Variant& variant, std::vector<Check>& checks) {
  const Model& model = state.model(variant);
  History now;
  now.program = fmt::format("toto {}", plan_program_version());
  now.model = model.info().name;
  now.model_hash = model.impl().content_hash;
  now.settings = {{"as", variant.label()}, {"isa", std::string(model.impl().net->backend().isa())}};
  for (const SettingLine& line : state.options.settings) {
    if (line.name == "plan-cache-dir") continue;  // a record is handed on, a user's folders are not
    now.settings.emplace_back(line.name, line.value);
  }
  const std::vector<OwnedSeries> owned = own_series(state, kContext, kSeries);
  ForecastOptions options;  // one patch: beyond it parameters depend on draws
  as_reference(options);
  options.horizon = static_cast<std::size_t>(model.info().patch_size);
  options.keep_parameters = true;
  Forecaster forecaster = state.forecaster(variant);
  std::vector<Forecast> forecasts = forecaster.forecast(views(owned), options);
  checks = without_parameters(forecaster, views(owned), options, forecasts, "without parameters");
  for (std::size_t i = 0; i < owned.size(); ++i) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(owned[i].values)));
    hash.update(std::as_bytes(std::span(owned[i].mask)));
    now.series.push_back({owned[i].id,
                          hash.hex(),
                          forecasts[i].variates,
                          forecasts[i].horizon,
                          std::move(forecasts[i].parameters),
                          {}});
    // Without a mixture what is kept of the parameters says nothing of the forecast.
    const std::vector<float>& q = forecasts[i].quantiles;
    if (model.impl().net->components() == 0) now.series.back().quantiles.assign(q.begin(), q.end());
  }
  return now;
}

Check compare_series(const RecordedSeries& now, const RecordedSeries* before) {
  if (before == nullptr || before->input != now.input) {
    Check c = measured(fmt::format("drift of '{}'", now.id), "largest drift of a parameter",
                       std::numeric_limits<double>::quiet_NaN(), kFail, "of scale",
                       before == nullptr ? "this series was not recorded"
                                         : "other values were recorded under this id");
    c.verdict = Verdict::could_not_run;
    return c;
  }
  const Drift d = drift(now, *before);
  Check c = measured(fmt::format("drift of '{}'", now.id), "largest drift of a parameter",
                     d.largest, kFail, "of scale",
                     fmt::format("series '{}', variate {}, step {}; above 1e-06 is a warning",
                                 now.id, d.variate, d.step + 1));
  if (c.holds() && c.value > kWarn) c.verdict = Verdict::warning;
  return c;
}

}  // namespace

std::vector<Check> compare_history(SuiteState& state, const Variant& variant) {
  const History before = read_history(state.options.against);
  std::vector<Check> plain;
  const History now = history_now(state, variant, plain);
  std::vector<Check> checks;
  checks.push_back(measured("model", "whether another checkpoint was recorded",
                            now.model_hash == before.model_hash ? 0 : 1, 0, {},
                            fmt::format("recorded by {} with {} ({:.12})", before.program,
                                        before.model, before.model_hash)));
  for (const RecordedSeries& one : now.series) {
    const auto same = std::find_if(before.series.begin(), before.series.end(),
                                   [&](const RecordedSeries& s) { return s.id == one.id; });
    checks.push_back(compare_series(one, same == before.series.end() ? nullptr : &*same));
  }
  for (Check& c : plain) checks.push_back(std::move(c));
  for (const RecordedSeries& one : before.series) {
    const bool here = std::any_of(now.series.begin(), now.series.end(),
                                  [&](const RecordedSeries& s) { return s.id == one.id; });
    if (here) continue;
    Check c = measured(fmt::format("drift of '{}'", one.id), "largest drift of a parameter",
                       std::numeric_limits<double>::quiet_NaN(), kFail, "of scale",
                       "this series was recorded and is not among the data now");
    c.verdict = Verdict::could_not_run;
    checks.push_back(std::move(c));
  }
  return checks;
}

std::vector<Check> record_history(SuiteState& state, const Variant& variant) {
  std::vector<Check> checks;
  const History now = history_now(state, variant, checks);
  const auto bad = std::count_if(now.series.begin(), now.series.end(), [](const RecordedSeries& s) {
    return !std::isfinite(drift(s, s).largest);
  });
  state.record = std::make_unique<AtomicFile>(state.options.record);
  state.record->write(encode_history(now));
  checks.insert(checks.begin(),
                measured("series", "series with a parameter that is not finite",
                         now.series.empty() ? std::nan("") : static_cast<double>(bad), 0, "series",
                         fmt::format("{} series", now.series.size())));
  return checks;
}

std::vector<Check> leave_record(SuiteState& state) {
  const std::string& path = state.options.record;
  const bool whole = state.options.only.empty();
  std::error_code ignored;
  const bool there = std::filesystem::exists(path, ignored);
  const auto check = [&](bool left, const std::string& why) {
    return measured("file", "whether the record was not left", left ? 0 : 1, 0, {}, why);
  };
  if (state.record == nullptr) return {check(false, "there is nothing to record")};
  if (there && (state.failed || !whole)) {
    return {check(false, fmt::format("{} is kept as it was, since {}", path,
                                     state.failed ? "a check did not hold"
                                                  : "only some checks were asked for"))};
  }
  state.record->commit();
  return {check(
      true, fmt::format("written to {}{}", path,
                        !state.failed && whole ? ""
                                               : "; not by a whole run in which every check "
                                                 "held, so record again before relying on it"))};
}

}  // namespace toto::verify
