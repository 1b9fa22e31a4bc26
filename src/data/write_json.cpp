// SPDX-License-Identifier: Apache-2.0
// Forecasts as one JSON object. It is written by hand, not by way of a tree: the text of a large
// run is larger than the memory it deserves, and floats keep their shortest digits.
#include <fmt/format.h>

#include <span>
#include <string>

#include "data/text_writer.h"
#include "toto/tools/output.hpp"

namespace toto::data {
namespace {

void write_numbers(TextWriter& out, double offset, std::span<const float> values) {
  out.raw("[");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out.raw(", ");
    out.number(offset, values[i], "null");
  }
  out.raw("]");
}

void write_variate(TextWriter& out, const std::string& name, const Forecast& forecast,
                   std::size_t variate, double offset) {
  const std::size_t horizon = forecast.horizon;
  const auto part = [&](const std::vector<float>& all, std::size_t row) {
    return std::span(all).subspan(row * horizon, horizon);
  };
  out.raw("        {\"name\": ").json_string(name).raw(",\n         \"mean\": ");
  write_numbers(out, offset, part(forecast.mean, variate));
  if (!forecast.point.empty()) {
    out.raw(",\n         \"point\": ");
    write_numbers(out, offset, part(forecast.point, variate));
  }
  if (!forecast.median.empty()) {
    out.raw(",\n         \"median\": ");
    write_numbers(out, offset, part(forecast.median, variate));
  }
  if (!forecast.std.empty()) {
    out.raw(",\n         \"std\": ");
    write_numbers(out, 0, part(forecast.std, variate));
  }
  if (!forecast.quantiles.empty()) {
    out.raw(",\n         \"quantiles\": {");
    for (std::size_t q = 0; q < forecast.levels.size(); ++q) {
      out.raw(q == 0 ? "\n           " : ",\n           ");
      out.json_string(level_text(forecast.levels[q])).raw(": ");
      write_numbers(out, offset, part(forecast.quantiles, q * forecast.variates + variate));
    }
    out.raw("}");
  }
  out.raw("}");
}

/// What was done beside the model's arithmetic; of a forecast that was made by hand nothing.
void write_applied(TextWriter& out, const TimeSeries& series, const Applied& applied) {
  if (applied.input_scale.size() < series.targets()) return;
  out.raw(",\n     \"input_scale\": [");
  for (std::size_t v = 0; v < series.targets(); ++v) {
    out.raw(v == 0 ? "" : ", ").raw(fmt::format("{}", applied.input_scale[v]));
  }
  out.raw("]");
  if (!series.value_offsets.empty()) {
    out.raw(",\n     \"value_offset\": [");
    for (std::size_t v = 0; v < series.targets(); ++v) {
      out.raw(v == 0 ? "" : ", ").raw(fmt::format("{}", series.value_offsets[v]));
    }
    out.raw("]");
  }
  out.raw(",\n     \"steps_before_context\": ").integer(series.cut);
  out.raw(",\n     \"missing_end\": ").integer(applied.missing_end);
  out.raw(",\n     \"clamped_steps\": ").integer(applied.clamped);
  out.raw(",\n     \"bounded_steps\": ").integer(applied.bounded);
  if (applied.filled > 0) out.raw(",\n     \"filled_by_model\": ").integer(applied.filled);
  if (applied.passes == 1 && applied.views_left_out.empty()) return;
  out.raw(",\n     \"passes\": ").integer(applied.passes);
  out.raw(",\n     \"views_left_out\": ").json_string(applied.views_left_out);
  if (applied.season_period.size() < series.targets()) return;
  out.raw(",\n     \"season_period\": [");
  for (std::size_t v = 0; v < series.targets(); ++v) {
    out.raw(v == 0 ? "" : ", ").integer(applied.season_period[v]);
  }
  out.raw("]");
}

void write_series(TextWriter& out, const TimeSeries& series, const Forecast& forecast) {
  out.raw("    {\"id\": ").json_string(series.id);
  out.raw(",\n     \"interval\": ").json_string(describe(series.interval));
  out.raw(",\n     \"context\": ").integer(series.steps);
  out.raw(",\n     \"horizon\": ").integer(forecast.horizon);
  out.raw(",\n     \"exact_steps\": ").integer(forecast.exact_steps);
  out.raw(",\n     \"num_samples\": ").integer(forecast.num_samples);
  write_applied(out, series, forecast.applied);
  out.raw(",\n     \"ds\": [");
  bool first = true;
  for (const std::int64_t time : future_times(series, forecast.horizon)) {
    out.raw(first ? "" : ", ").json_string(format_time(time, series.style));
    first = false;
  }
  out.raw("],\n     \"variates\": [");
  for (std::size_t v = 0; v < series.targets(); ++v) {
    out.raw(v == 0 ? "\n" : ",\n");
    write_variate(out, series.variates[v], forecast, v, series.offset_of(v));
  }
  out.raw("]}");
}

}  // namespace

void write_json(const TextSink& sink, std::span<const TimeSeries> series,
                std::span<const Forecast> forecasts, std::span<const SeriesError> errors,
                const RunInfo& run, std::string_view counters) {
  check_outputs(series, forecasts);
  TextWriter out(sink);
  const auto computed = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out.raw(",\n  \"").raw(key).raw("\": ").json_string(value);
  };
  out.raw("{\n  \"model\": ").json_string(run.model);
  computed("family", run.family);
  out.raw(",\n  \"synthetic_weights\": ").raw(run.synthetic ? "true" : "false");
  out.raw(",\n  \"seed\": ").integer(run.seed);
  out.raw(",\n  \"decode\": ").json_string(run.decode);
  computed("paths", run.paths);
  computed("tails", run.tails);
  computed("mode", run.mode);
  computed("kv_cache", run.kv_cache);
  computed("type", run.type);
  computed("device", run.device);
  computed("isa", run.isa);
  computed("version", run.version);
  computed("weights", run.weights);
  out.raw(",\n  \"series\": [");
  for (std::size_t i = 0; i < series.size(); ++i) {
    out.raw(i == 0 ? "\n" : ",\n");
    write_series(out, series[i], forecasts[i]);
  }
  out.raw("],\n  \"errors\": [");
  for (std::size_t i = 0; i < errors.size(); ++i) {
    out.raw(i == 0 ? "\n" : ",\n");
    out.raw("    {\"id\": ").json_string(errors[i].id);
    out.raw(", \"code\": ").json_string(errors[i].error.code());
    out.raw(", \"message\": ").json_string(errors[i].error.message());
    out.raw("}");
  }
  out.raw("]");
  if (!counters.empty()) out.raw(",\n  \"counters\": ").raw(counters);
  out.raw("\n}\n");
  out.finish();
}

}  // namespace toto::data
