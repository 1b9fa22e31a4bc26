// SPDX-License-Identifier: Apache-2.0
// Planned execution against eager, and both against float64, on random requests: lengths 1 to 4096,
// 1 to 16 variates, masks, groups, horizons 1 to 720, batches 1 to 64. Compared are mean mode and
// teacher-forced trajectories (an inverse CDF is discontinuous, so free draws may pick another
// component after a rounding).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/engine.h"
#include "support/small_model.h"

namespace toto {
namespace {

using test::OwnedSeries;

/// Everything a run says, in scaled units: parameters of every step, and values divided by their
/// scale.
class Record final : public Probe {
 public:
  [[nodiscard]] bool wants_parameters(std::int32_t) const override { return true; }
  void parameters(const PatchView& at, std::span<const double> params, std::span<const double> loc,
                  std::span<const double> scale) override {
    if (at.first_sample != 0) return;
    const auto k = static_cast<std::size_t>(at.components);
    const std::size_t lanes = static_cast<std::size_t>(at.variates);  // of trajectory 0
    const std::size_t count = lanes * static_cast<std::size_t>(at.steps) * 4 * k;
    for (std::size_t i = 0; i < count; ++i) {
      // df has no scale of its own: relative.
      const bool df = i / k % 4 == 0;
      numbers.push_back(df ? std::log(params[i]) : params[i]);
    }
    const auto patch = static_cast<std::size_t>(at.patch);
    scale_.assign(scale.begin(), scale.begin() + static_cast<std::ptrdiff_t>(lanes * patch));
    for (std::size_t i = 0; i < lanes * patch; ++i) {
      numbers.push_back(loc[i] / scale[i]);
      numbers.push_back(std::log(scale[i]));
    }
  }
  void values(const PatchView& at, std::span<const double> y) override {
    if (at.first_sample != 0) return;
    const std::size_t count =
        static_cast<std::size_t>(at.variates) * static_cast<std::size_t>(at.patch);
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(y[i] / scale_[i % scale_.size()]);
    if (at.iteration == 0) first_patch = numbers;  // grows with every series until the second patch
  }
  std::vector<double> numbers;
  std::vector<double> first_patch;

 private:
  std::vector<double> scale_;
};

struct Asked {
  std::vector<OwnedSeries> owned;
  Generation generation;
  std::size_t horizon = 0;
  std::int32_t trajectories = 0;
  std::vector<std::vector<float>> forced;
};

Record run(const Model& model, const Asked& asked) {
  const Network& net = *model.impl().net;
  std::vector<Series> series;
  for (const OwnedSeries& s : asked.owned) series.push_back(s.view());
  std::vector<SeriesRequest> requests;
  for (std::size_t i = 0; i < series.size(); ++i) {
    SeriesRequest r;
    r.series = &series[i];
    r.horizon = asked.horizon;
    r.trajectories = asked.trajectories;
    if (!asked.forced.empty()) r.forced = asked.forced[i];
    requests.push_back(r);
  }
  PlanTable plans(net, {});
  Record record;
  Generation g = asked.generation;
  g.probe = &record;
  NoResults nobody;
  Engine(net, plans).run(requests, g, {}, nobody);
  return record;
}

Asked random_request(std::mt19937& random, std::size_t patch) {
  const auto upto = [&](std::size_t n) { return 1 + random() % n; };
  Asked r;
  const std::size_t variates = random() % 3 == 0 ? upto(16) : upto(3);
  const std::size_t steps = random() % 4 == 0 ? upto(4096) : upto(300);
  // The product stays within what the float64 oracle does in a moment.
  const std::size_t tokens = variates * (steps / patch + 1);
  const std::size_t batch = std::min<std::size_t>(upto(64), std::max<std::size_t>(600 / tokens, 1));
  r.horizon = random() % 4 == 0 && batch * variates < 40 ? upto(720) : upto(40);
  r.generation.cached = random() % 2 == 0;
  std::normal_distribution<double> normal;
  for (std::size_t b = 0; b < batch; ++b) {
    OwnedSeries s;
    s.id = std::to_string(b);
    s.variates = variates;
    const std::size_t own = b == 0 ? steps : upto(steps);
    for (std::size_t v = 0; v < variates; ++v) {
      double level = normal(random) * 3;
      for (std::size_t t = 0; t < own; ++t) {
        level += normal(random) * 0.3;
        s.values.push_back(static_cast<float>(level + 2 * std::sin(0.4 * static_cast<double>(t))));
      }
    }
    if (random() % 2 == 0) {
      for (std::size_t i = 0; i < s.values.size(); ++i) s.mask.push_back(random() % 5 != 0);
      s.mask[0] = 1;
    }
    if (random() % 2 == 0) {
      for (std::size_t v = 0; v < variates; ++v) s.groups.push_back(static_cast<int>(random() % 3));
    }
    r.owned.push_back(std::move(s));
  }
  return r;
}

struct Distance {
  double mean = 0, largest = 0;
};

Distance distance(const std::vector<double>& a, const std::vector<double>& b) {
  Distance d;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double e = std::abs(a[i] - b[i]) / (1 + std::abs(b[i]));
    d.mean += e / static_cast<double>(a.size());
    d.largest = std::max(d.largest, e);
  }
  return d;
}

class Equivalence : public testing::TestWithParam<int> {};

TEST_P(Equivalence, PlannedIsEagerUpToRounding) {
  Toto1Config config = test::spec_config();
  if (GetParam() % 2 == 1) {
    config.num_layers = 6;
    config.spacewise_every_n_layers = 3;
    config.spacewise_first = true;
  }
  LoadOptions wide;
  wide.backend = "reference";
  wide.precision = Precision::float64;
  const Model eager = test::make_model(config, false, Execution::eager(), 2);
  const Model planned = test::make_model(config, false, {}, 2);
  const Model exact = test::make_model(config, false, {}, 2, wide);
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  double log_ratio = 0;
  int fed_back = 0;
  for (int i = 0; i < 20; ++i) {
    Asked request = random_request(random, static_cast<std::size_t>(config.patch_size));
    const bool forced = i % 2 == 1;
    request.generation.mean = !forced;
    request.trajectories = forced ? 2 : 1;
    if (forced) {
      request.generation.cached = true;
      const std::size_t patches = (request.horizon + 7) / 8;
      std::normal_distribution<double> normal;
      for (const OwnedSeries& s : request.owned) {
        auto& values = request.forced.emplace_back(2 * s.variates * patches * 8);
        for (float& v : values) v = static_cast<float>(normal(random) * 3);
      }
    }
    const Record e = run(eager, request);
    const Record p = run(planned, request);
    const Record x = run(exact, request);
    const Distance bound =
        forced ? distance(p.numbers, e.numbers) : distance(p.first_patch, e.first_patch);
    EXPECT_LT(bound.mean, 1e-6) << "case " << i;
    EXPECT_LT(bound.largest, 1e-5) << "case " << i << " horizon " << request.horizon;
    if (!forced) {
      log_ratio +=
          std::log(distance(p.numbers, x.numbers).mean / distance(e.numbers, x.numbers).mean);
      ++fed_back;
    }
  }
  // Ten cases; the geometric mean keeps one unlucky trajectory from deciding.
  EXPECT_LE(std::exp(log_ratio / fed_back), 1.25);
}

INSTANTIATE_TEST_SUITE_P(Random, Equivalence, testing::Range(0, 10));

}  // namespace
}  // namespace toto
