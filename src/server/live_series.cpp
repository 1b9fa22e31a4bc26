// SPDX-License-Identifier: Apache-2.0
#include "server/live_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/json.h"
#include "server/errors.h"
#include "server/json_text.h"
#include "server/options.h"
#include "server/unread.h"

namespace toto::server {
namespace {

constexpr std::size_t kMaxIdBytes = 200;

/// "values" as time-major rows.
Points read_points(const JsonField& values, const Limits& limits) {
  SeriesInput input;
  read_values(values, limits, input);
  Points points;
  points.variates = input.targets;
  points.univariate = input.univariate;
  points.rows.resize(input.steps * input.targets);
  for (std::size_t v = 0; v < input.targets; ++v) {
    for (std::size_t t = 0; t < input.steps; ++t) {
      const std::size_t from = v * input.steps + t;
      points.rows[t * input.targets + v] =
          input.mask[from] != 0 ? input.values[from] : std::numeric_limits<float>::quiet_NaN();
    }
  }
  return points;
}

}  // namespace

void LiveSeries::append(const std::vector<float>& more, std::size_t context) {
  rows.insert(rows.end(), more.begin(), more.end());
  count += more.size() / variates;
  if (steps() > context) {
    rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(context * variates));
  }
}

void check_series_id(const std::string& id) {
  const bool control =
      std::ranges::any_of(id, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  std::string bare = id;  // without what has a meaning of its own in JSON
  std::erase_if(bare, [](char c) { return c == '"' || c == '\\'; });
  const bool utf8 = nlohmann::json::accept('"' + bare + '"');
  if (id.empty() || id.size() > kMaxIdBytes || control || !utf8) {
    throw invalid_request(fmt::format("expected a name of 1 to {} bytes of UTF-8", kMaxIdBytes),
                          "id");
  }
}

LiveSeries parse_series(const std::string& id, const std::string& body, const Limits& limits) {
  check_series_id(id);
  LiveSeries series;
  series.id = id;
  const JsonTree tree{parse_json(body.empty() ? "{}" : body, ExitStatus::usage, "body")};
  const JsonField root(tree.root, "");
  require_known(root, {"values", "variates", "frequency", "start"});
  if (const auto frequency = root.find("frequency")) {
    series.frequency = frequency->text();
    if (!parse_frequency(series.frequency)) {
      frequency->fail("a frequency: s, min, h, D, W, M, Q, Y, 15min");
    }
  }
  if (const auto start = root.find("start")) {
    series.start = start->text();
    if (series.frequency.empty()) start->fail("a frequency beside it");
    (void)make_axis(series.start, series.frequency, start->path());
  }
  if (const auto variates = root.find("variates")) {
    series.variates = variates->whole(1, std::numeric_limits<std::int32_t>::max());
    require_limit(series.variates, limits.max_variates, "variates", "--max-variates",
                  variates->path());
    series.univariate = false;
  }
  if (const auto values = root.find("values")) {
    const bool given = !series.univariate;
    const Points points = read_points(*values, limits);
    if (given && points.variates != series.variates) {
      values->fail(fmt::format("rows of {} numbers", series.variates));
    }
    series.variates = points.variates;
    series.univariate = points.univariate;
    series.append(points.rows, limits.context);
  }
  return series;
}

Points parse_points(const std::string& body, const Limits& limits) {
  const JsonTree tree{parse_json(body, ExitStatus::usage, "body")};
  const JsonField root(tree.root, "");
  require_known(root, {"values", "at"});
  Points points = read_points(root.at("values"), limits);
  if (const auto at = root.find("at")) {
    points.at = at->whole(0, std::numeric_limits<std::int64_t>::max());
  }
  return points;
}

SeriesInput input_of(const LiveSeries& series, std::size_t context,
                     const ForecastOptions& options) {
  const std::size_t all = series.steps();
  const std::size_t steps = std::min(all, context);
  SeriesInput input;
  input.id = series.id;
  input.options = options;
  input.steps = steps;
  input.targets = series.variates;
  input.univariate = series.univariate;
  input.frequency = series.frequency;
  for (std::size_t v = 0; v < series.variates; ++v) {
    std::vector<float> row(steps);
    std::vector<bool> missing(steps);
    for (std::size_t t = 0; t < steps; ++t) {
      const float value = series.rows[(all - steps + t) * series.variates + v];
      missing[t] = std::isnan(value);
      row[t] = missing[t] ? 0 : value;
    }
    append_row(input, std::move(row), missing);
  }
  if (!series.start.empty()) {
    input.axis = make_axis(series.start, series.frequency, "start");
    input.axis->skip(series.count - steps);
  }
  return input;
}

std::string describe(const LiveSeries& series, std::size_t last) {
  JsonText out;
  out.open('{').key("id").string(series.id).key("count").whole(series.count);
  out.key("kept").whole(series.steps()).key("variates").whole(series.variates);
  out.key("frequency");
  series.frequency.empty() ? out.null() : out.string(series.frequency);
  out.key("start");
  series.start.empty() ? out.null() : out.string(series.start);
  out.key("values").open('[');
  const std::size_t first = series.steps() - std::min(last, series.steps());
  for (std::size_t t = first; t < series.steps(); ++t) {
    if (series.univariate) {
      out.number(series.rows[t]);
      continue;
    }
    out.open('[');
    for (std::size_t v = 0; v < series.variates; ++v) {
      out.number(series.rows[t * series.variates + v]);
    }
    out.close(']');
  }
  return out.close(']').close('}').take();
}

}  // namespace toto::server
