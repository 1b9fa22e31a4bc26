// SPDX-License-Identifier: Apache-2.0
// The numbers of spec C5 (data/golden/spec_toto1.json), produced by the official implementation.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/small_model.h"

namespace toto {
namespace {

class SpecC5 : public testing::TestWithParam<bool> {
 protected:
  SpecC5() {
    std::ifstream file(test::data_path("golden/spec_toto1.json"));
    golden_ = nlohmann::json::parse(file);
  }

  static std::vector<double> flat(const nlohmann::json& rows) {
    std::vector<double> values;
    for (const auto& row : rows) {
      for (const auto& value : row) values.push_back(value.get<double>());
    }
    return values;
  }

  [[nodiscard]] test::OwnedSeries input(bool labels) const {
    test::OwnedSeries s;
    s.id = "c5";
    s.variates = 3;
    for (const double v : flat(golden_["inputs"]["series"]))
      s.values.push_back(static_cast<float>(v));
    const auto& mask = golden_["inputs"][labels ? "exog_case_padding_mask" : "padding_mask"];
    for (const double m : flat(mask)) s.mask.push_back(static_cast<std::uint8_t>(m));
    if (labels) {
      s.exogenous = 1;
      for (const auto& v : golden_["inputs"]["future_exogenous"])
        s.future.push_back(v.get<float>());
    } else {
      for (const auto& id : golden_["inputs"]["id_mask_per_variate"])
        s.groups.push_back(id.get<int>());
    }
    return s;
  }

  [[nodiscard]] Forecast run(bool labels, Decode decode) const {
    Forecaster forecaster(test::make_model(test::spec_config(), labels,
                                           GetParam() ? Execution::eager() : Execution{}));
    const test::OwnedSeries s = input(labels);
    ForecastOptions options;
    as_reference(options);
    options.horizon = 28;
    options.mean_only = true;
    options.decode = decode;
    options.keep_parameters = true;
    const Series view = s.view();
    return forecaster.forecast({&view, 1}, options).front();
  }

  void expect_mean(const Forecast& found, const std::string& name, std::size_t variates) const {
    const std::vector<double> expected = flat(golden_[name]);
    for (std::size_t i = 0; i < variates * 28; ++i) {
      // The file has seven digits.
      EXPECT_NEAR(found.mean[i], expected[i],
                  2e-5 * (found.parameters.affine_scale[i] + std::abs(expected[i])))
          << name << " " << i;
    }
  }

  nlohmann::json golden_;
};

TEST_P(SpecC5, MeanUncached) { expect_mean(run(false, Decode::uncached), "mean_uncached", 3); }
TEST_P(SpecC5, MeanCached) { expect_mean(run(false, Decode::cached), "mean_cached", 3); }
TEST_P(SpecC5, LabelsUncached) {
  expect_mean(run(true, Decode::uncached), "exog_labels_mean_uncached", 2);
}
TEST_P(SpecC5, LabelsCached) {
  expect_mean(run(true, Decode::cached), "exog_labels_mean_cached", 2);
}

TEST_P(SpecC5, CachedAndUncachedAgreeOnTheFirstPatchOnly) {
  const Forecast cached = run(false, Decode::cached);
  const Forecast uncached = run(false, Decode::uncached);
  double later = 0;
  for (std::size_t v = 0; v < 3; ++v) {
    for (std::size_t t = 0; t < 28; ++t) {
      const double d = std::abs(static_cast<double>(cached.mean[v * 28 + t]) -
                                static_cast<double>(uncached.mean[v * 28 + t]));
      if (t < 8) {
        EXPECT_EQ(d, 0);
      }
      later = std::max(later, d);
    }
  }
  EXPECT_GT(later, 1e-5);
}

TEST_P(SpecC5, InjectedCovariatesAreReturned) {
  const Forecast f = run(true, Decode::cached);
  const auto& future = golden_["inputs"]["future_exogenous"];
  for (std::size_t t = 0; t < 28; ++t) EXPECT_EQ(f.mean[2 * 28 + t], future[t].get<float>());
}

TEST_P(SpecC5, DistributionOfTheFirstPatch) {
  // last_step_* belong to the last step of the context's last patch output: step 7 of the next
  // patch.
  const Forecast f = run(false, Decode::cached);
  ASSERT_EQ(f.parameters.components, 3U);
  const std::pair<const char*, const std::vector<double>*> parts[] = {
      {"last_step_df", &f.parameters.df},
      {"last_step_loc", &f.parameters.loc},
      {"last_step_scale", &f.parameters.scale},
      {"last_step_probs", &f.parameters.probability}};
  for (const auto& [name, found] : parts) {
    for (std::size_t v = 0; v < 3; ++v) {
      for (std::size_t k = 0; k < 3; ++k) {
        const double expected = golden_[name][v][k].get<double>();
        EXPECT_NEAR((*found)[(v * 28 + 7) * 3 + k], expected, 2e-5 * (1 + std::abs(expected)))
            << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Execution, SpecC5, testing::Bool(),
                         [](const auto& test) { return test.param ? "Eager" : "Planned"; });

}  // namespace
}  // namespace toto
