// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/engine.h"
#include "models/model_impl.h"

namespace toto::verify {
namespace {

constexpr std::size_t kLengths[] = {1, 16, 32, 48, 64, 100, 512, 1000, 4096};
constexpr std::size_t kBatches[] = {1, 2, 7, 64};
constexpr std::size_t kPatches = 8;

Case context_case(std::size_t steps, std::size_t patch) {
  Case c{fmt::format("context {}", steps), {}, patch, true, 1, {}, true};
  c.series.push_back(made_series(steps, steps));
  return c;
}

Case batch_case(std::size_t batch, std::size_t patch) {
  Case c{fmt::format("batch {}", batch), {}, patch, true, 1, {}, true};
  for (std::size_t i = 0; i < batch; ++i) {
    c.series.push_back(made_series(100 + i, batch > 8 ? patch : 1 + (i * 37) % (3 * patch)));
  }
  return c;
}

/// Every fifth value missing, and a whole patch of one variate.
Case mask_case(std::size_t patch) {
  Case c{"masks", {made_series(200, 4 * patch, 3)}, 2 * patch, true, 1, {}, true};
  OwnedSeries& s = c.series.front();
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    const bool gap = i >= 5 * patch && i < 6 * patch;  // the second patch of variate 1
    s.mask.push_back(i % 5 != 3 && !gap ? 1 : 0);
  }
  return c;
}

Case group_case(std::size_t patch) {
  Case c{"groups", {made_series(201, 3 * patch, 4)}, 2 * patch, true, 1, {}, true};
  c.series.front().groups = {0, 1, 0, 1};
  return c;
}

Case covariate_case(std::size_t patch) {
  Case c{"covariates", {made_series(202, 4 * patch, 3)}, 2 * patch, true, 1, {}, true};
  OwnedSeries& s = c.series.front();
  s.exogenous = 1;
  const OwnedSeries more = made_series(203, 2 * patch);
  s.future = more.values;
  return c;
}

/// Eight patches, each conditioned on the same earlier ones in every mode.
Case forced_case(const Model& eager, bool cached, std::size_t steps) {
  const auto patch = static_cast<std::size_t>(eager.info().patch_size);
  Case c{fmt::format("autoregressive, {} patches, {}", kPatches, cached ? "cached" : "uncached"),
         {made_series(300, steps, 1)},
         kPatches * patch,
         cached,
         2,
         {},
         true};
  ForecastOptions options;
  as_reference(options);
  options.horizon = c.horizon;
  options.mean_only = true;
  options.decode = cached ? Decode::cached : Decode::uncached;
  const std::vector<Series> series = views(c.series);
  const Forecast mean = Forecaster(eager).forecast(series, options).front();
  std::vector<float>& forced = c.forced.emplace_back(mean.mean);
  const auto [low, high] =
      std::minmax_element(c.series[0].values.begin(), c.series[0].values.end());
  const float spread = (*high - *low) / 8;
  for (std::size_t t = 0; t < c.horizon; ++t) {
    forced.push_back(mean.mean[t] + spread * std::sin(static_cast<float>(t) * 1.7F));
  }
  return c;
}

Record run(const Model& model, const Case& one, const ForecasterOptions& limits) {
  const Network& net = *model.impl().net;
  RecordProbe probe(one.forced.empty());
  Generation g;
  g.mean = one.forced.empty();
  g.cached = one.cached;
  g.probe = &probe;
  const std::vector<Series> series = views(one.series);
  std::vector<SeriesRequest> requests;
  for (std::size_t i = 0; i < series.size(); ++i) {
    SeriesRequest r;
    r.series = &series[i];
    r.horizon = one.horizon;
    r.trajectories = one.trajectories;
    if (!one.forced.empty()) {
      r.forced = one.forced[i];
      // Whoever could predict several patches at once is to be fed all the same.
      r.decoding.decode_block_size = static_cast<std::size_t>(net.patch());
    }
    requests.push_back(r);
  }
  PlanTable plans(net, limits);
  NoResults nobody;
  Engine(net, plans).run(requests, g, {}, nobody);
  return std::move(probe.record);
}

}  // namespace

Series OwnedSeries::view() const {
  Series s;
  s.id = id;
  s.variates = variates;
  s.steps = values.size() / variates;
  s.values = values;
  s.mask = mask;
  s.groups = groups;
  s.exogenous = exogenous;
  s.future_exogenous = future;
  return s;
}

OwnedSeries cut(const Series& series, std::size_t end, std::size_t steps) {
  OwnedSeries s;
  s.id = series.id;
  s.variates = series.variates - series.exogenous;
  const std::size_t first = end - std::min(steps, end);
  for (std::size_t v = 0; v < s.variates; ++v) {
    for (std::size_t t = first; t < end; ++t) {
      s.values.push_back(series.values[v * series.steps + t]);
      if (!series.mask.empty()) s.mask.push_back(series.mask[v * series.steps + t]);
    }
  }
  return s;
}

OwnedSeries made_series(std::size_t which, std::size_t steps, std::size_t variates) {
  OwnedSeries s;
  s.id = fmt::format("made-{}", which);
  s.variates = variates;
  std::uint32_t state = static_cast<std::uint32_t>(which) * 2654435761U + 1;
  for (std::size_t v = 0; v < variates; ++v) {
    const double phase = static_cast<double>(which % 97) * 0.7 + static_cast<double>(v);
    double level = 50 + 3 * phase;
    for (std::size_t t = 0; t < steps; ++t) {
      state = state * 1664525U + 1013904223U;
      const double noise = static_cast<double>(state >> 8) / (1 << 24) - 0.5;
      const auto x = static_cast<double>(t);
      level += 0.3 * noise;
      s.values.push_back(static_cast<float>(level + 4 * std::sin(x * 0.26 + phase) +
                                            2 * std::sin(x * 0.037 + phase) + noise));
    }
  }
  return s;
}

std::vector<Series> views(const std::vector<OwnedSeries>& owned) {
  std::vector<Series> series;
  series.reserve(owned.size());
  for (const OwnedSeries& s : owned) series.push_back(s.view());
  return series;
}

std::vector<Case> make_cases(const VerifyOptions& options, const Model& eager) {
  const auto patch = static_cast<std::size_t>(eager.info().patch_size);
  const bool quick = options.suite == Suite::quick;
  std::vector<Case> cases;
  Case single{"single pass", {made_series(0, 8 * patch)}, patch, true, 1, {}, true};
  cases.push_back(std::move(single));
  for (const std::size_t steps : kLengths) {
    cases.push_back(context_case(steps, patch));
    cases.back().with_float64 = !quick || steps != kLengths[std::size(kLengths) - 1];
  }
  for (const std::size_t batch : kBatches) {
    cases.push_back(batch_case(batch, patch));
    cases.back().with_float64 = !quick || batch != kBatches[std::size(kBatches) - 1];
  }
  cases.push_back(mask_case(patch));
  cases.push_back(group_case(patch));
  cases.push_back(covariate_case(patch));
  for (const bool cached : {true, false}) {
    cases.push_back(forced_case(eager, cached, (quick ? 3 : 8) * patch));
  }
  if (!options.data.empty()) {
    Case own{"your series", {}, patch, true, 1, {}, true};
    const std::size_t most = quick ? 8 : 64;
    for (const Series& s : options.data.first(std::min(most, options.data.size()))) {
      own.series.push_back(cut(s, s.steps, quick ? 256 : 4096));
    }
    cases.push_back(std::move(own));
  }
  return cases;
}

Record run_case_beside_others(const Model& exact, const Case& one) { return run(exact, one, {}); }

Record run_case(const Model& model, const Case& one, const ForecasterOptions& limits) {
  const std::scoped_lock turn(model.impl().turn);
  return run(model, one, limits);
}

}  // namespace toto::verify
