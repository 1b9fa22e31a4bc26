// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "data/text_writer.h"
#include "toto/error.hpp"
#include "toto/tools/horizon.hpp"

namespace toto::data {
namespace {

/// Of one trajectory, in data units.
double aggregate_of(std::span<const float> path, HorizonAggregate how, double offset) {
  if (how == HorizonAggregate::max)
    return offset + static_cast<double>(*std::ranges::max_element(path));
  if (how == HorizonAggregate::min)
    return offset + static_cast<double>(*std::ranges::min_element(path));
  double sum = 0;
  for (const float y : path) sum += static_cast<double>(y);
  const auto steps = static_cast<double>(path.size());
  return how == HorizonAggregate::mean ? offset + sum / steps : offset * steps + sum;
}

/// Linear between the values, which are ascending.
double quantile_of(const std::vector<double>& values, double level) {
  const double at = level * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double share = at - static_cast<double>(below);
  return values[below] + share * (values[above] - values[below]);
}

/// Shares of trajectories for which crosses(y) holds: anywhere, and of each step.
template <typename Crosses>
double count_crossings(const Forecast& f, std::size_t variate, const Crosses& crosses,
                       std::vector<double>& steps) {
  steps.assign(f.horizon, 0);
  std::size_t anywhere = 0;
  for (std::size_t n = 0; n < f.num_samples; ++n) {
    bool any = false;
    for (std::size_t t = 0; t < f.horizon; ++t) {
      const float y = f.samples[(n * f.variates + variate) * f.horizon + t];
      if (!crosses(static_cast<double>(y))) continue;
      steps[t] += 1;
      any = true;
    }
    if (any) ++anywhere;
  }
  const auto count = static_cast<double>(f.num_samples);
  for (double& share : steps) share /= count;
  return static_cast<double>(anywhere) / count;
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : std::string();
}

/// Calls each(step, name, value) for all numbers of an answer; step < 0: of the whole horizon.
template <typename Each>
void for_each_number(const HorizonAnswer& answer, const HorizonQuestion& question,
                     const Each& each) {
  if (question.aggregate != HorizonAggregate::none) {
    const std::string name(word(question.aggregate));
    each(-1, name, answer.mean);
    for (std::size_t q = 0; q < question.levels.size(); ++q) {
      each(-1, fmt::format("{}_q{}", name, level_text(question.levels[q])), answer.quantiles[q]);
    }
  }
  const auto crossing = [&](const std::string& name, double anywhere,
                            const std::vector<double>& steps) {
    each(-1, name + "_anywhere", anywhere);
    for (std::size_t t = 0; t < steps.size(); ++t) {
      each(static_cast<std::ptrdiff_t>(t), name, steps[t]);
    }
  };
  if (question.above) crossing("above", answer.above_anywhere, answer.above);
  if (question.below) crossing("below", answer.below_anywhere, answer.below);
}

std::vector<std::string> times_of(const TimeSeries& series, std::size_t horizon) {
  std::vector<std::string> texts;
  for (const std::int64_t time : future_times(series, horizon)) {
    texts.push_back(format_time(time, series.style));
  }
  return texts;
}

void write_answer(TextWriter& out, const HorizonAnswer& answer, const HorizonQuestion& question) {
  const auto list = [&](const std::vector<double>& values) {
    out.raw("[");
    for (std::size_t i = 0; i < values.size(); ++i) {
      out.raw(i == 0 ? "" : ", ").raw(number(values[i]));
    }
    out.raw("]");
  };
  if (question.aggregate != HorizonAggregate::none) {
    out.raw(", \"mean\": ").raw(number(answer.mean)).raw(", \"quantiles\": {");
    for (std::size_t q = 0; q < question.levels.size(); ++q) {
      out.raw(q == 0 ? "" : ", ").json_string(level_text(question.levels[q])).raw(": ");
      out.raw(number(answer.quantiles[q]));
    }
    out.raw("}");
  }
  const auto crossing = [&](std::string_view name, double anywhere,
                            const std::vector<double>& steps) {
    out.raw(fmt::format(", \"{}_anywhere\": {}, \"{}\": ", name, number(anywhere), name));
    list(steps);
  };
  if (question.above) crossing("above", answer.above_anywhere, answer.above);
  if (question.below) crossing("below", answer.below_anywhere, answer.below);
}

}  // namespace

std::string_view word(HorizonAggregate aggregate) {
  constexpr std::string_view kWords[] = {"", "sum", "mean", "max", "min"};
  return kWords[static_cast<std::size_t>(aggregate)];
}

HorizonAnswer over_horizon(const Forecast& forecast, std::size_t variate,
                           const HorizonQuestion& question, double offset) {
  if (forecast.samples.empty()) {
    throw Error(ExitStatus::usage, "no_samples",
                "what is asked of the whole horizon needs trajectories", forecast.id,
                "set keep_samples, and leave out mean_only");
  }
  HorizonAnswer answer;
  if (question.aggregate != HorizonAggregate::none) {
    std::vector<double> values;
    for (std::size_t n = 0; n < forecast.num_samples; ++n) {
      const auto path =
          std::span(forecast.samples)
              .subspan((n * forecast.variates + variate) * forecast.horizon, forecast.horizon);
      values.push_back(aggregate_of(path, question.aggregate, offset));
      answer.mean += values.back();
    }
    answer.mean /= static_cast<double>(values.size());
    std::ranges::sort(values);
    for (const double level : question.levels) {
      answer.quantiles.push_back(quantile_of(values, level));
    }
  }
  if (question.above) {
    answer.above_anywhere = count_crossings(
        forecast, variate, [&](double y) { return offset + y > *question.above; }, answer.above);
  }
  if (question.below) {
    answer.below_anywhere = count_crossings(
        forecast, variate, [&](double y) { return offset + y < *question.below; }, answer.below);
  }
  return answer;
}

void write_horizon_csv(const TextSink& sink, std::span<const TimeSeries> series,
                       std::span<const Forecast> forecasts, const HorizonQuestion& question) {
  check_outputs(series, forecasts);
  TextWriter out(sink);
  const bool several = std::ranges::any_of(series, [](const auto& s) { return s.targets() > 1; });
  out.raw(several ? "unique_id,variate,ds,statistic,value\n" : "unique_id,ds,statistic,value\n");
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::vector<std::string> times = times_of(series[i], forecasts[i].horizon);
    for (std::size_t v = 0; v < series[i].targets(); ++v) {
      const HorizonAnswer answer = over_horizon(forecasts[i], v, question, series[i].offset_of(v));
      for_each_number(
          answer, question, [&](std::ptrdiff_t step, const std::string& name, double value) {
            out.csv_field(series[i].id);
            if (several) out.raw(",").csv_field(series[i].variates[v]);
            out.raw(",").raw(step < 0 ? std::string() : times[static_cast<std::size_t>(step)]);
            out.raw(",").raw(name).raw(",").raw(number(value)).raw("\n");
          });
    }
  }
  out.finish();
}

void write_horizon_json(const TextSink& sink, std::span<const TimeSeries> series,
                        std::span<const Forecast> forecasts, const HorizonQuestion& question) {
  check_outputs(series, forecasts);
  TextWriter out(sink);
  out.raw("{");
  const char* comma = "\n  ";
  const auto key = [&](std::string_view name) -> TextWriter& {
    out.raw(comma).json_string(name).raw(": ");
    comma = ",\n  ";
    return out;
  };
  if (question.aggregate != HorizonAggregate::none) {
    key("aggregate").json_string(word(question.aggregate));
  }
  if (question.above) key("above").raw(number(*question.above));
  if (question.below) key("below").raw(number(*question.below));
  key("series").raw("[");
  for (std::size_t i = 0; i < series.size(); ++i) {
    out.raw(i == 0 ? "\n" : ",\n").raw("    {\"id\": ").json_string(series[i].id);
    out.raw(",\n     \"ds\": [");
    const std::vector<std::string> times = times_of(series[i], forecasts[i].horizon);
    for (std::size_t t = 0; t < times.size(); ++t) {
      out.raw(t == 0 ? "" : ", ").json_string(times[t]);
    }
    out.raw("],\n     \"variates\": [");
    for (std::size_t v = 0; v < series[i].targets(); ++v) {
      out.raw(v == 0 ? "\n" : ",\n").raw("        {\"name\": ");
      out.json_string(series[i].variates[v]);
      write_answer(out, over_horizon(forecasts[i], v, question, series[i].offset_of(v)), question);
      out.raw("}");
    }
    out.raw("]}");
  }
  out.raw("]\n}\n");
  out.finish();
}

}  // namespace toto::data
