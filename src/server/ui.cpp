// SPDX-License-Identifier: Apache-2.0
#include "server/ui.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "data/value_offset.h"
#include "server/compress.h"
#include "server/errors.h"
#include "server/json_text.h"
#include "server/query.h"
#include "toto/tools/output.hpp"
#include "toto/tools/plot.hpp"

namespace toto::assets {
std::string_view page_html();  // cmake/TotoAssets.cmake
std::string_view page_css();
std::string_view page_js();
std::string_view sunspots_csv();
}  // namespace toto::assets

namespace toto::server {
namespace {

constexpr std::size_t kMaxSeries = 12;  // more are named, not forecast
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A table, and of each series what was held out of it.
struct Table {
  data::Dataset data;
  std::vector<plot::BandLevels> bands;
  std::vector<std::vector<float>> actual;  // [variates of targets][horizon], holdout alone
  std::size_t horizon = 0, left_out = 0;
  std::uint64_t seed = 0;
  bool holdout = false, example = false, synthetic = false;
  std::string model, version;
};

/// Of the bands and the median, sorted.
std::vector<double> levels_of(const std::vector<plot::BandLevels>& bands) {
  std::vector<double> levels = {0.5};
  for (const plot::BandLevels& band : bands) levels.insert(levels.end(), {band.lower, band.upper});
  std::ranges::sort(levels);
  return levels;
}

/// The body, or the example where it is empty.
data::Dataset read_table(const HttpRequest& request, const Query& query, std::size_t context,
                         std::size_t max_text) {
  const bool example = request.body.empty();
  const auto name = query.find("name");
  data::CsvOptions options;
  options.context = context;
  options.max_text = max_text;  // also of a table that is a gzip or zstd file
  std::istringstream text(example ? std::string(assets::sunspots_csv()) : request.body);
  return data::read_csv(text,
                        example               ? "sunspots.csv"
                        : name == query.end() ? "table"
                                              : std::string_view(name->second),
                        options);
}

void require_series(const data::Dataset& data) {
  if (!data.series.empty()) return;
  if (!data.errors.empty()) throw Error(data.errors.front().error);
  throw Error(ExitStatus::bad_data, "no_rows", "no series was found in the table", "body");
}

/// All but the last steps.
data::TimeSeries without_last(const data::TimeSeries& series, std::size_t count) {
  data::TimeSeries out = series;
  out.steps = series.steps - count;
  out.values.clear();
  out.mask.clear();
  for (std::size_t v = 0; v < series.variates.size(); ++v) {
    const auto from = static_cast<std::ptrdiff_t>(v * series.steps);
    const auto to = from + static_cast<std::ptrdiff_t>(out.steps);
    out.values.insert(out.values.end(), series.values.begin() + from, series.values.begin() + to);
    out.mask.insert(out.mask.end(), series.mask.begin() + from, series.mask.begin() + to);
  }
  out.times.edit().resize(out.steps);
  return out;
}

void hold_out(Table& table) {
  std::vector<data::TimeSeries> kept;
  for (data::TimeSeries& series : table.data.series) {
    if (series.steps <= 2 * table.horizon) {
      table.data.errors.push_back(
          {series.id, Error(ExitStatus::bad_data, "too_short",
                            fmt::format("expected more than {} steps to hold {} of them out, found "
                                        "{}",
                                        2 * table.horizon, table.horizon, series.steps))});
      continue;
    }
    const std::size_t first = series.steps - table.horizon;
    std::vector<float> actual;
    for (std::size_t v = 0; v < series.targets(); ++v) {
      for (std::size_t t = first; t < series.steps; ++t) {
        const std::size_t at = v * series.steps + t;
        actual.push_back(series.mask[at] != 0 ? series.values[at] : NAN);
      }
    }
    table.actual.push_back(std::move(actual));
    kept.push_back(without_last(series, table.horizon));
  }
  table.data.series = std::move(kept);
}

/// Values that are differences from an offset, as they are.
std::vector<double> row_of(std::span<const float> all, std::size_t row, std::size_t length,
                           double offset = 0) {
  if (all.empty()) return {};
  return data::plus_offset(all.subspan(row * length, length), offset);
}

std::vector<double> level_row(const Forecast& f, double level, std::size_t variate,
                              double offset = 0) {
  const auto at = std::ranges::find(f.levels, level) - f.levels.begin();
  return row_of(f.quantiles, static_cast<std::size_t>(at) * f.variates + variate, f.horizon,
                offset);
}

plot::Panel panel_of(const Table& table, std::size_t i, std::size_t variate, const Forecast& f) {
  const data::TimeSeries& series = table.data.series[i];
  plot::Panel panel;
  panel.name = series.id;
  const double offset = series.offset_of(variate);
  if (series.targets() > 1) panel.name += " / " + series.variates[variate];
  if (series.style.form != data::TimeStyle::Form::index) {
    panel.history_time = series.times;
    panel.future_time = data::future_times(series, f.horizon);
  }
  panel.history = row_of(series.values, variate, series.steps, offset);
  const auto mask = series.mask.begin() + static_cast<std::ptrdiff_t>(variate * series.steps);
  panel.observed.assign(mask, mask + static_cast<std::ptrdiff_t>(series.steps));
  panel.median = level_row(f, 0.5, variate, offset);
  for (const auto& [level, lower, upper] : table.bands) {
    panel.bands.push_back(
        {level, level_row(f, lower, variate, offset), level_row(f, upper, variate, offset)});
  }
  if (table.holdout) panel.actual = row_of(table.actual[i], variate, f.horizon, offset);
  return panel;
}

/// Coverage of the central 80 %, and mean absolute errors of the median and of the last value, over
/// the mean absolute step of the history (MASE).
void write_measures(JsonText& out, const Table& table, std::size_t i, const Forecast& f) {
  const data::TimeSeries& series = table.data.series[i];
  double error = 0;
  double naive = 0;
  double inside = 0;
  double count = 0;
  double scale = 0;
  double steps = 0;
  for (std::size_t v = 0; v < series.targets(); ++v) {
    const float* const history = series.values.data() + v * series.steps;
    for (std::size_t t = 1; t < series.steps; ++t, ++steps) {
      scale += std::abs(double{history[t]} - history[t - 1]);
    }
    const auto median = level_row(f, 0.5, v);
    const auto lower = level_row(f, 0.1, v);
    const auto upper = level_row(f, 0.9, v);
    for (std::size_t t = 0; t < f.horizon; ++t) {
      const double actual = table.actual[i][v * f.horizon + t];
      if (std::isnan(actual)) continue;
      error += std::abs(median[t] - actual);
      naive += std::abs(history[series.steps - 1] - actual);
      inside += lower[t] <= actual && actual <= upper[t] ? 1 : 0;
      ++count;
    }
  }
  scale /= steps;
  out.key("holdout").open('{').key("coverage_80").number(inside / count);
  out.key("mase").number(error / count / scale);
  out.key("mase_naive").number(naive / count / scale).close('}');
}

/// offset + value.
JsonText& number(JsonText& out, double offset, float value) {
  return offset == 0 ? out.number(value) : out.number(data::with_offset(offset, value));
}

void write_series(JsonText& out, const Table& table, std::size_t i, const Forecast& f) {
  const data::TimeSeries& series = table.data.series[i];
  out.open('{').key("id").string(series.id).key("interval").string(describe(series.interval));
  out.key("steps").whole(series.steps).key("exact_steps").whole(f.exact_steps);
  out.key("observed").whole(static_cast<std::uint64_t>(std::ranges::count(series.mask, 1)));
  out.key("ds").open('[');
  for (const std::int64_t time : data::future_times(series, f.horizon)) {
    out.string(data::format_time(time, series.style));
  }
  out.close(']').key("variates").open('[');
  for (std::size_t v = 0; v < series.targets(); ++v) {
    const double offset = series.offset_of(v);
    out.open('{').key("name").string(series.variates[v]);
    for (const auto& [name, level] : {std::pair("lower", 0.1), {"median", 0.5}, {"upper", 0.9}}) {
      out.key(name).open('[');
      for (const double value : level_row(f, level, v)) {
        number(out, offset, static_cast<float>(value));
      }
      out.close(']');
    }
    out.key("last").open('[');  // for "copy as": a request that can be sent again
    const std::size_t from = series.steps - std::min<std::size_t>(series.steps, 64);
    for (std::size_t t = from; t < series.steps; ++t) {
      const std::size_t at = v * series.steps + t;
      series.mask[at] != 0 ? number(out, offset, series.values[at]) : out.null();
    }
    out.close(']').close('}');
  }
  out.close(']');
  if (table.holdout) write_measures(out, table, i, f);
  out.close('}');
}

void write_reading(JsonText& out, const Table& table) {
  const data::Reading& reading = table.data.reading;
  out.key("read").open('{').key("format").string(reading.format);
  out.key("compression").string(reading.compression).key("rows").whole(reading.rows);
  out.key("time_format").string(reading.time_format).key("order").string(reading.order);
  out.key("columns").open('[');
  for (const auto& column : reading.columns) {
    out.open('{').key("name").string(column.name).key("role").string(column.role);
    out.key("note").string(column.note).close('}');
  }
  out.close(']').key("warnings").open('[');
  for (const std::string& warning : table.data.warnings) out.string(warning);
  out.close(']').key("errors").open('[');
  for (const data::SeriesError& one : table.data.errors) {
    out.open('{').key("id").string(one.id).key("code").string(one.error.code());
    out.key("message").string(one.error.message()).close('}');
  }
  out.close(']').key("series_left_out").whole(table.left_out).close('}');
}

HttpResponse render(const Table& table, const std::vector<Forecast>& forecasts) {
  plot::Figure figure;
  figure.title = fmt::format("{} {} steps", table.holdout ? "The last" : "The next", table.horizon);
  figure.footnote = "Model: " + table.model;
  figure.synthetic = table.synthetic;
  JsonText out;
  out.open('{').key("model").string(table.model).key("seed").whole(table.seed);
  out.key("version").string(table.version).key("horizon").whole(table.horizon);
  out.key("holdout").boolean(table.holdout).key("example").boolean(table.example);
  write_reading(out, table);
  out.key("series").open('[');
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    write_series(out, table, i, forecasts[i]);
    for (std::size_t v = 0; v < table.data.series[i].targets(); ++v) {
      figure.panels.push_back(panel_of(table, i, v, forecasts[i]));
    }
  }
  out.close(']');
  data::RunInfo run;
  run.model = table.model;
  run.synthetic = table.synthetic;
  run.seed = table.seed;
  std::string csv;
  data::write_csv([&csv](std::string_view text) { csv += text; }, table.data.series, forecasts,
                  run);
  out.key("csv").string(csv).key("svg").string(plot::to_svg(figure));
  HttpResponse response;
  response.body = out.close('}').take();
  return response;
}

}  // namespace

std::vector<data::TimeSeries> table_for_anomalies(const HttpRequest& request, const Limits& limits,
                                                  std::size_t max_text, detect::Options& options) {
  const Query query = parse_query(request.query);
  if (const auto text = query.find("threshold"); text != query.end()) {
    options.threshold = read_threshold(text->second);
  }
  data::Dataset data = read_table(request, query, limits.context, max_text);
  require_series(data);
  data.series.resize(std::min(data.series.size(), kMaxSeries));
  return std::move(data.series);
}

RenderScores render_anomalies(const ServedModel& model, double threshold) {
  return
      [info = model.info, name = model.name, threshold](const std::vector<data::TimeSeries>& series,
                                                        const std::vector<detect::Scored>& scored) {
        JsonText out;
        out.open('{').key("model").string(name).key("threshold").number(threshold);
        out.key("series").open('[');
        for (const detect::Scored& one : scored) {
          out.open('{').key("id").string(one.id).key("variate").string(one.variate);
          out.key("scored").whole(one.points.size()).key("anomalies").open('[');
          for (const detect::Point& point : one.points) {
            if (!point.anomaly) continue;
            out.open('{').key("ds").string(data::format_time(point.time, series[one.index].style));
            const double offset = one.value_offset;
            number(out.key("value"), offset, static_cast<float>(point.value - offset));
            number(out.key("median"), offset, static_cast<float>(point.median - offset));
            out.key("p").number(static_cast<float>(point.p)).close('}');
          }
          out.close(']').close('}');
        }
        plot::Figure figure = detect::make_figure(series, scored, info);
        out.close(']').key("svg").string(plot::to_svg(figure));
        HttpResponse response;
        response.body = out.close('}').take();
        return response;
      };
}

std::optional<HttpResponse> page_file(std::string_view path, const HttpRequest& request) {
  HttpResponse response;
  if (path == "/") {
    response.content_type = "text/html; charset=utf-8";
    response.body = assets::page_html();
  } else if (path == "/page.css") {
    response.content_type = "text/css; charset=utf-8";
    response.body = assets::page_css();
  } else if (path == "/page.js") {
    response.content_type = "text/javascript; charset=utf-8";
    response.body = assets::page_js();
  } else {
    return std::nullopt;
  }
  response.headers = {{"content-security-policy", std::string(kPolicy)},
                      {"x-content-type-options", "nosniff"},
                      {"referrer-policy", "no-referrer"},
                      {"cache-control", "no-cache"}};
  if (lists(request.header("accept-encoding"), "gzip")) {
    response.body = gzip(response.body);
    response.headers.push_back({"content-encoding", "gzip"});
    response.headers.push_back({"vary", "accept-encoding"});
  }
  return response;
}

std::string model_of_query(std::string_view query) { return parse_query(query)["model"]; }

ParsedCall parse_table(const HttpRequest& request, const ServedModel& model, const Limits& limits,
                       std::size_t max_text) {
  const Query parameters = parse_query(request.query);
  const auto table = std::make_shared<Table>();
  table->horizon = whole_of(parameters, "horizon", 48, 1);
  require_limit(table->horizon, limits.max_horizon, "steps", "--max-horizon", "horizon");
  table->seed = whole_of(parameters, "seed", 0, 0);
  table->holdout = whole_of(parameters, "holdout", 0, 0) == 1;
  table->example = request.body.empty();
  table->model = model.name;
  table->version = TOTO_VERSION;
  table->synthetic = model.info.synthetic;
  table->bands = plot::default_bands(model.info);
  table->data = read_table(request, parameters,
                           limits.context + (table->holdout ? table->horizon : 0), max_text);
  std::vector<data::TimeSeries>& series = table->data.series;
  if (series.size() > kMaxSeries) {
    table->left_out = series.size() - kMaxSeries;
    series.resize(kMaxSeries);
  }
  if (table->holdout) hold_out(*table);
  require_series(table->data);
  ParsedCall parsed;
  const std::vector<double> levels = levels_of(table->bands);
  for (const data::TimeSeries& one : series) {
    (void)data::future_times(one, table->horizon);  // says now what has no dates
    SeriesInput input;
    input.id = one.id;
    input.steps = one.steps;
    input.targets = one.targets();
    input.past = one.covariates;
    input.values = one.values;
    input.mask = one.mask;
    input.options.horizon = table->horizon;
    input.options.seed = table->seed;
    input.options.levels = levels;
    input.options.select = {.mean = true, .median = true, .std = false};
    parsed.call.inputs.push_back(std::move(input));
  }
  parsed.render = [table](const ForecastCall&, std::vector<Forecast>& forecasts) {
    return render(*table, forecasts);
  };
  return parsed;
}

}  // namespace toto::server
