// SPDX-License-Identifier: Apache-2.0
#include "server/options.h"

#include <fmt/format.h>

#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "server/errors.h"
#include "server/json_text.h"

namespace toto::server {
namespace {

template <typename T>
T choice(const JsonField& field, std::initializer_list<std::pair<std::string_view, T>> choices) {
  const std::string& word = field.text();
  std::string expected;
  for (const auto& [text, value] : choices) {
    if (word == text) return value;
    expected += fmt::format("{}\"{}\"", expected.empty() ? "" : " or ", text);
  }
  field.fail(expected);
}

void require_length(const JsonField& field, std::size_t expected, std::string_view of) {
  if (field.size() == expected) return;
  field.fail(fmt::format("{} numbers, one for each step of the {}", expected, of));
}

}  // namespace

SharedOptions read_options(const JsonField& options, const Limits& limits, ForecastCall& call) {
  SharedOptions shared;
  ForecastOptions& forecast = shared.forecast;
  forecast.select = {.mean = true, .median = false, .std = false};
  forecast.levels.clear();
  shared.context = limits.context;
  options.object();
  if (const auto seed = options.find("seed")) {
    forecast.seed = seed->whole(0, std::numeric_limits<std::uint64_t>::max());
  }
  if (const auto samples = options.find("num_samples")) {
    forecast.num_samples = samples->whole(1, 65'536);
    require_limit(forecast.num_samples, limits.max_samples, "samples", "--max-samples",
                  samples->path());
  }
  if (const auto mean = options.find("mean_only")) forecast.mean_only = mean->boolean();
  if (const auto keep = options.find("return_samples")) shared.samples = keep->boolean();
  forecast.keep_samples = shared.samples;
  if (const auto context = options.find("context")) {
    shared.context = std::min<std::size_t>(limits.context, context->whole(1, 1'000'000'000));
  }
  if (const auto from = options.find("quantiles_from")) {
    forecast.quantiles_from = choice<QuantilesFrom>(
        *from, {{"auto", QuantilesFrom::automatic}, {"samples", QuantilesFrom::samples}});
  }
  if (const auto decode = options.find("decode")) {
    forecast.decode =
        choice<Decode>(*decode, {{"cached", Decode::cached}, {"uncached", Decode::uncached}});
  }
  if (const auto align = options.find("align")) {
    forecast.align = choice<Align>(*align, {{"pad", Align::pad}, {"trim", Align::trim}});
  }
  if (const auto paths = options.find("paths")) {
    forecast.paths = choice<Paths>(*paths, {{"auto", Paths::automatic},
                                            {"independent", Paths::independent},
                                            {"coherent", Paths::coherent}});
  }
  if (const auto tails = options.find("tails")) {
    forecast.tails = choice<Tails>(*tails, {{"auto", Tails::automatic},
                                            {"clamp", Tails::clamp},
                                            {"exponential", Tails::exponential},
                                            {"normal", Tails::normal}});
  }
  if (const auto views = options.find("views")) forecast.views = parse_views(views->text());
  if (const auto timeout = options.find("timeout_ms")) {
    call.timeout_seconds = timeout->number(0.001, 86'400'000) / 1000;
  }
  if (const auto priority = options.find("priority")) {
    call.priority = static_cast<int>(priority->integer(-100, 100));
  }
  return shared;
}

std::size_t read_horizon(const JsonField& field, const Limits& limits) {
  const auto& value = field.value();
  const bool whole =
      value.is_number_unsigned() ||
      (value.is_number_float() && value.get<double>() >= 1 && value.get<double>() < 1e15);
  if (!whole || (value.is_number_unsigned() && value.get<std::uint64_t>() == 0)) {
    throw Error(ExitStatus::usage, "invalid_horizon",
                fmt::format("expected a whole number from 1 to {}, found {}", limits.max_horizon,
                            value.is_number() ? value.dump() : std::string("no number")),
                field.path());
  }
  const std::uint64_t horizon = field.whole(1, std::numeric_limits<std::uint64_t>::max());
  require_limit(horizon, limits.max_horizon, "steps", "--max-horizon", field.path());
  return horizon;
}

void read_values(const JsonField& field, const Limits& limits, SeriesInput& input) {
  input.steps = field.size();
  if (input.steps == 0) field.fail("at least one value");
  std::vector<bool> missing;
  if (!field.value()[0].is_array()) {
    input.univariate = true;
    input.targets = 1;
    std::vector<float> row = field.floats(&missing);
    append_row(input, std::move(row), missing);
    return;
  }
  const std::size_t variates = field[0].size();
  input.targets = variates;
  if (variates == 0) field[0].fail("at least one variate");
  require_limit(variates, limits.max_variates, "variates", "--max-variates", field.path());
  std::vector<float> all(input.steps * variates);
  std::vector<bool> gaps(all.size());
  for (std::size_t t = 0; t < input.steps; ++t) {
    const nlohmann::json& row = field.value()[t];
    if (!row.is_array() || row.size() != variates) {
      field[t].fail(fmt::format("{} numbers, as in the first step", variates));
    }
    const JsonField step(row, "");
    for (std::size_t v = 0; v < variates; ++v) {
      if (!row[v].is_number() && !row[v].is_null()) field[t][v].fail("a number or null");
      const bool far = row[v].is_number() && !(std::abs(row[v].get<double>()) <=
                                               double{std::numeric_limits<float>::max()});
      const JsonField& named = far ? field[t] : step;
      gaps[v * input.steps + t] = named.float_or_null(v, all[v * input.steps + t]);
    }
  }
  for (std::size_t v = 0; v < variates; ++v) {
    const auto from = static_cast<std::ptrdiff_t>(v * input.steps);
    const auto to = from + static_cast<std::ptrdiff_t>(input.steps);
    append_row(input, {all.begin() + from, all.begin() + to},
               {gaps.begin() + from, gaps.begin() + to});
  }
}

void read_covariates(const std::optional<JsonField>& past, const std::optional<JsonField>& future,
                     const Limits& limits, SeriesInput& input) {
  std::set<std::string> ahead;
  if (future) {
    for (const auto& [name, unused] : future->object().value().items()) ahead.insert(name);
  }
  const std::size_t horizon = input.options.horizon;
  // What is known ahead has its past among the others.
  const std::size_t columns = past ? past->object().value().size() : ahead.size();
  require_limit(input.targets + columns, limits.max_variates, "variates and covariates",
                "--max-variates", past ? past->path() : "covariates");
  if (past) {
    for (const auto& [name, unused] : past->value().items()) {
      if (ahead.contains(name)) continue;
      const JsonField column = past->at(name);
      require_length(column, input.steps, "series");
      std::vector<bool> missing;
      std::vector<float> row = column.floats(&missing);
      append_row(input, std::move(row), missing);
      ++input.past;
    }
  }
  for (const std::string& name : ahead) {
    const JsonField future_column = future->at(name);
    require_length(future_column, horizon, "horizon");
    const auto column = past ? past->find(name) : std::nullopt;
    if (!column) {
      throw Error(ExitStatus::usage, "missing_covariate",
                  "expected the past of a covariate that is known ahead", future_column.path(),
                  "add it to the past covariates under the same name");
    }
    require_length(*column, input.steps, "series");
    std::vector<bool> gaps;
    std::vector<float> row = column->floats(&gaps);
    std::vector<bool> future_gaps;
    const std::vector<float> rest = future_column.floats(&future_gaps);
    row.insert(row.end(), rest.begin(), rest.end());
    gaps.insert(gaps.end(), future_gaps.begin(), future_gaps.end());
    // Filled in as the values of a series are.
    SeriesInput one;
    append_row(one, std::move(row), gaps);
    input.ahead.insert(input.ahead.end(), one.values.begin(), one.values.end());
    input.ahead_mask.insert(input.ahead_mask.end(), one.mask.begin(), one.mask.end());
    ++input.known;
  }
}

void write_rows(JsonText& out, std::span<const float> values, std::size_t variates,
                std::size_t horizon, bool univariate) {
  if (univariate) {
    out.numbers(values.subspan(0, horizon));
    return;
  }
  out.open('[');
  for (std::size_t t = 0; t < horizon; ++t) {
    out.open('[');
    for (std::size_t v = 0; v < variates; ++v) out.number(values[v * horizon + t]);
    out.close(']');
  }
  out.close(']');
}

}  // namespace toto::server
