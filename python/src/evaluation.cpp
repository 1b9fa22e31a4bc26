// SPDX-License-Identifier: Apache-2.0
#include "evaluation.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "arrays.h"
#include "errors.h"
#include "model.h"
#include "toto/tools/backtest.hpp"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

namespace toto::python {
namespace {

/// A symbol from arrays: values [V][T] where NaN is missing, times in ms since 1970, or an index.
backtest::Symbol symbol_of(const nb::handle given) {
  backtest::Symbol s;
  s.name = nb::cast<std::string>(given["name"]);
  s.targets = nb::cast<std::vector<std::string>>(given["targets"]);
  const FloatArray values = float_array(given["values"], 2, "values", Digits::all);
  s.bars = values.shape[values.rank - 1];
  s.values.resize(values.size());
  const auto mask = mask_array(given["mask"], s.values.size(), "mask");
  s.mask.assign(mask.values.begin(), mask.values.end());
  if (values.data != nullptr) std::copy_n(values.data, values.size(), s.values.begin());
  for (std::size_t v = 0; values.wide != nullptr && v < s.targets.size(); ++v) {
    s.value_offsets.push_back(data::keep_digits({values.wide + v * s.bars, s.bars}, s.mask_of(v),
                                                std::span(s.values).subspan(v * s.bars, s.bars)));
  }
  if (std::ranges::all_of(s.value_offsets, [](double x) { return x == 0; })) {
    s.value_offsets.clear();
  }
  s.times = nb::cast<std::vector<std::int64_t>>(given["times"]);
  using Form = data::TimeStyle::Form;
  s.style.form = nb::cast<bool>(given["dated"]) ? Form::datetime : Form::index;
  const auto unit = nb::cast<std::string>(given["unit"]);
  using Unit = data::Interval::Unit;
  s.interval.unit = unit == "fixed"      ? Unit::milliseconds
                    : unit == "business" ? Unit::business_day
                    : unit == "months"   ? Unit::month
                                         : Unit::index;
  s.interval.count = nb::cast<std::int64_t>(given["count"]);
  s.hours = backtest::TradingHours::always;
  return s;
}

template <typename Enum, typename Word>
Enum by_word(const std::string& given, std::initializer_list<Enum> all, const char* where,
             const Word& word) {
  for (const Enum one : all) {
    if (word(one) == given) return one;
  }
  refuse("invalid_choice", "unknown word \"" + given + "\"", where);
}

backtest::Options options_of(const nb::dict& given) {
  backtest::Options o;
  o.horizon = nb::cast<std::size_t>(given["horizon"]);
  o.stride = nb::cast<std::size_t>(given["stride"]);
  o.windows = nb::cast<std::size_t>(given["windows"]);
  o.season = nb::cast<std::size_t>(given["season"]);
  o.joint = nb::cast<bool>(given["joint"]);
  o.seed = nb::cast<std::uint64_t>(given["seed"]);
  o.parameters.context = nb::cast<std::size_t>(given["context"]);
  o.parameters.samples = nb::cast<std::size_t>(given["num_samples"]);
  o.parameters.aggregate = nb::cast<std::string>(given["aggregate"]);
  o.parameters.input_scale = nb::cast<double>(given["input_scale"]);
  using backtest::Rolling;
  using backtest::Transform;
  o.parameters.transform = by_word(nb::cast<std::string>(given["transform"]),
                                   {Transform::none, Transform::pct, Transform::log_return},
                                   "transform", [](Transform t) { return backtest::word(t); });
  o.rolling =
      by_word(nb::cast<std::string>(given["rolling"]), {Rolling::multi_step, Rolling::one_step},
              "rolling", [](Rolling r) { return backtest::word(r); });
  return o;
}

/// Everything that a run gives, as the files of `toto backtest` have it.
nb::dict backtest_of(ModelHandle& handle, const nb::list& symbols,
                     const std::vector<std::string>& inputs, const nb::dict& options,
                     nb::object progress) {
  const auto loaded = handle.loaded();
  backtest::Options o = options_of(options);
  backtest::Market market;
  for (const nb::handle symbol : symbols) market.symbols.push_back(symbol_of(symbol));
  Watcher watcher(std::move(progress));
  o.progress = std::ref(watcher);
  std::string forecasts, metrics_table, summary, report;
  const auto into = [](std::string& text) {
    return [&text](std::string_view part) { text += part; };
  };
  std::vector<std::string> problems;
  try {
    const nb::gil_scoped_release free;
    if (!inputs.empty()) {
      backtest::MarketOptions files;
      files.inputs = inputs;
      market = backtest::read_market(files);
    }
    o.warning = [&problems](std::string_view line) { problems.emplace_back(line); };
    const std::lock_guard lock(loaded->turn);
    const backtest::Result result = backtest::run(market, loaded->forecaster, o);
    const auto metrics = backtest::measure(result, o);
    const auto trades = backtest::simulate(result, std::nullopt);
    backtest::RunDescription run;
    const ModelInfo& info = loaded->model.info();
    run.model = info.name;
    run.synthetic = info.synthetic;
    run.mode = word(loaded->settings.mode.value);
    run.precision = word(loaded->settings.precision.value);
    run.decode = "cached";
    run.defaults = info.defaults;
    backtest::write_forecasts(into(forecasts), result, o);
    backtest::write_metrics(into(metrics_table), metrics);
    backtest::write_summary(into(summary), result, metrics, trades, o, run);
    backtest::write_report(into(report), result, metrics, trades, o, run);
    for (const data::SeriesError& error : result.errors) {
      problems.push_back(error.id + ": " + error.error.what());
    }
  } catch (const Error&) {
    watcher.rethrow();
    throw;
  }
  nb::dict out;
  out["forecasts"] = forecasts;
  out["metrics"] = metrics_table;
  out["summary"] = summary;
  out["report"] = report;
  out["problems"] = problems;
  return out;
}

}  // namespace

void bind_evaluation(nb::module_& module) {
  module.def("backtest", &backtest_of, "model"_a, "symbols"_a, "inputs"_a, "options"_a,
             "progress"_a.none());
}

}  // namespace toto::python
