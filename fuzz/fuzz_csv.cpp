// SPDX-License-Identifier: Apache-2.0
// Any bytes as a table, as they are and once more behind one byte that chooses the options (so that
// the files of tests/data/files are seeds as they stand): refused with an Error, or series that
// keep every promise of toto/data.hpp, go on into the future, take covariates, and are written as
// text that reads the same.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "core/json.h"
#include "toto/tools/output.hpp"

namespace {

using namespace toto::data;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kHorizon = 3;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_error(const toto::Error& error) {
  require(error.status() == toto::ExitStatus::bad_data && !error.code().empty());
  require(std::string_view(error.what()).find('\n') == std::string_view::npos);
}

void check(const TimeSeries& series, std::size_t context) {
  require(series.steps >= 1 && series.times.size() == series.steps);
  // What is missing at the end comes on top of the context.
  std::size_t missing = series.steps;
  for (std::size_t v = 0; v < series.targets(); ++v) {
    std::size_t end = 0;
    while (end < missing && series.mask[(v + 1) * series.steps - 1 - end] == 0) ++end;
    missing = end;
  }
  require(series.steps - missing <= context);
  require(series.targets() >= 1 && !series.id.empty());
  require(series.values.size() == series.variates.size() * series.steps);
  require(series.mask.size() == series.values.size());
  require(series.value_offsets.empty() || series.value_offsets.size() == series.variates.size());
  for (const double offset : series.value_offsets) require(std::isfinite(offset));
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    require(std::isfinite(series.values[i]) && series.mask[i] <= 1);
  }
  for (std::size_t i = 1; i < series.steps; ++i) require(series.times[i - 1] < series.times[i]);
  require(series.view().values.size() == series.values.size());
  require(series.interval.count >= 1 && !describe(series.interval).empty());
}

toto::Forecast made_up(const TimeSeries& series) {
  toto::Forecast forecast;
  forecast.id = series.id;
  forecast.variates = series.variates.size();
  forecast.horizon = kHorizon;
  forecast.num_samples = 1;
  for (std::size_t i = 0; i < forecast.variates * kHorizon; ++i) {
    forecast.mean.push_back(series.values[i % series.values.size()]);
  }
  forecast.levels = {0.5F};
  forecast.median = forecast.quantiles = forecast.samples = forecast.mean;
  return forecast;
}

template <typename Write>
std::string text_of(const Write& write) {
  std::string text;
  write([&](std::string_view piece) { text += piece; });
  return text;
}

/// A few numbers alone may mean something else than among others, so dates with separators only.
void read_back(const TimeSeries& series, const std::string& csv, const toto::Forecast& forecast) {
  using Form = TimeStyle::Form;
  if (series.targets() > 1) return;
  if (series.style.form != Form::date && series.style.form != Form::datetime) return;
  if (series.style.date_separator == '\0' || !series.style.pattern.empty()) return;
  CsvOptions options;
  options.values = {"mean"};
  const double offset = series.offset_of(0);
  options.value_offset = offset != 0;
  options.missing_values = {"none"};  // three values alone would make -9999 one that is missing
  std::istringstream in(csv);
  const Dataset back = read_csv(in, "back.csv", options);
  require(back.series.size() == 1 && back.series[0].id == series.id);
  require(back.series[0].times == future_times(series, kHorizon));
  for (std::size_t t = 0; t < kHorizon; ++t) {
    const double found = back.series[0].values[t], written = forecast.mean[t];
    if (offset == 0) {
      require(found == written);
      continue;
    }
    const double room =
        std::ldexp(std::abs(found) + std::abs(written), -22) + std::ldexp(std::abs(offset), -50);
    require(std::abs(back.series[0].offset_of(0) + found - (offset + written)) <= room);
  }
}

void use(const TimeSeries& series) {
  const std::vector<std::int64_t> future = future_times(series, kHorizon);
  require(future.size() == kHorizon && future[0] > series.times.back());
  for (std::size_t i = 1; i < kHorizon; ++i) require(future[i - 1] < future[i]);

  const toto::Forecast forecast = made_up(series);
  const RunInfo run{"model", true, 1, "cached"};
  const std::string csv = text_of([&](const TextSink& sink) {
    write_csv(sink, {&series, 1}, {&forecast, 1}, run);
  });
  read_back(series, csv, forecast);
  require(!text_of([&](const TextSink& sink) {
             write_samples_csv(sink, {&series, 1}, {&forecast, 1}, run);
           }).empty());
  const std::string json = text_of([&](const TextSink& sink) {
    write_json(sink, {&series, 1}, {&forecast, 1}, {}, run);
  });
  require(toto::parse_json(json, toto::ExitStatus::bad_data, "json")["series"].size() == 1);
}

void use_as_covariates(Dataset data, const std::string& text, Missing missing) {
  std::istringstream in(text);
  const CovariateTable table = read_covariates(in, "covariates.csv");
  const std::size_t all = data.series.size() + data.errors.size();
  add_future(data, table, 1, 2, missing);
  require(data.series.size() + data.errors.size() == all);
  for (const TimeSeries& series : data.series) {
    check(series, series.steps);
    require(series.future_covariates.size() == series.covariates);
  }
}

void read_with(const std::string& text, const CsvOptions& options) {
  try {
    std::istringstream in(text);
    const Dataset data = read_csv(in, "fuzz.csv", options);
    for (const SeriesError& failed : data.errors) check_error(failed.error);
    for (const TimeSeries& series : data.series) {
      check(series, options.context);
      try {
        use(series);
      } catch (const toto::Error& error) {
        require(error.code() == "timestamp_overflow");
      }
    }
    use_as_covariates(data, text, options.missing);
  } catch (const toto::Error& error) {
    check_error(error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string whole(reinterpret_cast<const char*>(bytes), size);
  read_with(whole, {});
  const unsigned choice = bytes[0];
  CsvOptions options;
  options.layout = static_cast<Layout>(choice & 3U);
  if ((choice & 147U) == 19U) options.layout = Layout::rows;  // in place of joint bars
  options.missing = static_cast<Missing>((choice >> 2) & 3U);
  options.joint = (choice & 16U) != 0;
  options.context = (choice & 32U) != 0 ? 3 : 4096;
  options.duplicates = static_cast<Duplicates>((choice >> 5) & 3U);
  if ((choice & 64U) != 0) options.covariates = {"u"};
  if ((choice & 128U) != 0) options.values = {"y"};
  if ((choice & 8U) != 0)
    options.missing_values = {"-9999", "<1", (choice & 4U) != 0 ? "none" : "NA2"};
  read_with(whole.substr(1), options);
  if (size == 1) return 0;
  const unsigned regular = bytes[1];
  CsvOptions steady;
  constexpr const char* kSteps[] = {"", "15s", "1min", "1h", "D", "B", "MS", "QE"};
  constexpr const char* kHow[] = {":sum", ":last", "", ":max"};
  const std::string step = kSteps[regular & 7U];
  if ((regular & 8U) != 0) {
    steady.freq = step;
  } else if (!step.empty()) {
    steady.resample = step + kHow[(regular >> 4) & 3U];
  }
  steady.value_offset = (regular & 128U) == 0;
  steady.rate = (regular & 64U) != 0;
  if ((regular & 128U) != 0) steady.calendar = (regular & 16U) != 0 ? "NYSE" : "24x7";
  read_with(whole.substr(2), steady);
  return 0;
}
