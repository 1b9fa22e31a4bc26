// SPDX-License-Identifier: Apache-2.0
// --record and --against: whether this build still says what an earlier one said.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/atomic_file.h"
#include "core/hash.h"
#include "model/model_impl.h"
#include "plan/plan_entry.h"
#include "verify/groups.h"
#include "verify/history.h"

namespace toto::verify {
namespace {

constexpr double kWarn = 1e-6, kFail = 1e-5;
constexpr std::size_t kContext = 1024, kSeries = 256;

History history_now(Experiment& e, const Subject& subject) {
  const Model& model = e.model(subject);
  History now;
  now.program = fmt::format("toto {}", plan_program_version());
  now.model = model.info().name;
  now.model_hash = model.impl().content_hash;
  now.settings = {{"as", subject.label()}, {"isa", std::string(model.impl().net->backend().isa())}};
  for (const SettingLine& line : e.options.settings) {
    now.settings.emplace_back(line.name, line.value);
  }
  const std::vector<OwnedSeries> owned = own_series(e, kContext, kSeries);
  ForecastOptions options;  // one patch: beyond it parameters depend on draws
  options.horizon = static_cast<std::size_t>(model.info().patch_size);
  options.keep_parameters = true;
  std::vector<Forecast> forecasts = Forecaster(model).forecast(views(owned), options);
  for (std::size_t i = 0; i < owned.size(); ++i) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(owned[i].values)));
    hash.update(std::as_bytes(std::span(owned[i].mask)));
    now.series.push_back({owned[i].id, hash.hex(), forecasts[i].variates, forecasts[i].horizon,
                          std::move(forecasts[i].parameters)});
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

std::vector<Check> compare_history(Experiment& e, const Subject& subject) {
  const History before = read_history(e.options.against);
  const History now = history_now(e, subject);
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

std::vector<Check> record_history(Experiment& e, const Subject& subject) {
  const History now = history_now(e, subject);
  AtomicFile file(e.options.record);
  file.write(encode_history(now));
  file.commit();
  return {measured("recorded", "series that could not be recorded", 0, 0, "series",
                   fmt::format("{} series in {}", now.series.size(), e.options.record))};
}

}  // namespace toto::verify
