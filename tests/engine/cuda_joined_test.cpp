// SPDX-License-Identifier: Apache-2.0
// Operations of Toto 2.0 that a device does in one launch in place of several: forecasts with each
// of them refused in turn. Skipped where there is no device.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/runtime/cuda_backend.h"
#include "support/needs_device.h"
#include "support/refusing_backend.h"
#include "support/requests.h"
#include "support/toto2_requests.h"

namespace toto {
namespace {

using test::expect_same;
using test::Joined;
using test::OwnedSeries;
using test::RefusingBackend;

/// Heads of 64, which all releases have.
Toto2Config wide(std::int32_t patch) {
  Toto2Config c = test::released();
  c.patch_size = patch;
  c.d_model = 128;
  c.num_heads = c.num_groups = 2;
  c.qk_dim = c.v_dim = 64;
  c.d_ff = 344;
  return c;
}

/// Heads that share keys, of another width than values, with norms; a patch of five steps.
Toto2Config odd() {
  Toto2Config c = test::odd();
  c.d_model = 48;
  return c;
}

struct Case {
  const char* name;
  CudaWeights weights;
  Toto2Config config;
};

class CudaJoined : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { TOTO_NEEDS_DEVICE(); }

  /// One series, then three with gaps and several variates, independent and coherent, in one pass
  /// and block by block. `done`: how often the operation `of` was done.
  static std::vector<Forecast> forecasts(Joined refused, Joined of, int& done) {
    const Case& c = GetParam();
    const auto backend =
        std::make_shared<RefusingBackend>(make_cuda_backend({c.weights, 1}), refused);
    auto impl = std::make_shared<Model::Impl>();
    impl->info.name = impl->content_hash = "small";
    impl->configuration = to_json(c.config);
    impl->net = test::network(c.config, backend);
    Forecaster forecaster{Model(impl)};
    const auto patch = static_cast<std::size_t>(c.config.patch_size);
    std::vector<OwnedSeries> owned = {test::wave(0, 6 * patch + 3), test::wave(1, 9 * patch, 3),
                                      test::wave(2, 2 * patch + 1)};
    owned[1].mask.assign(owned[1].values.size(), 1);
    for (std::size_t t = patch; t < 3 * patch + 1; ++t) owned[1].mask[t] = 0;
    ForecastOptions o;
    o.horizon = 2 * patch + 1;
    o.levels = {0.02, 0.1, 0.35, 0.9};
    o.tails = Tails::normal;
    o.num_samples = 40;
    o.seed = 3;
    std::vector<Forecast> all;
    for (const bool blocks : {false, true}) {
      o.decoding.decode_block_size = blocks ? patch : 0;
      for (const bool samples : {false, true}) {
        o.keep_samples = samples;
        for (const Paths paths : {Paths::independent, Paths::coherent}) {
          o.paths = paths;
          for (const std::ptrdiff_t count : {1, 3}) {
            const std::vector<OwnedSeries> part(owned.begin(), owned.begin() + count);
            const auto series = test::views(part);
            for (Forecast& one : forecaster.forecast(series, o)) all.push_back(std::move(one));
          }
        }
      }
    }
    done = backend->operations().done(of);
    return all;
  }
};

TEST_P(CudaJoined, HaveTheBitsOfTheirParts) {
  for (const auto& [what, name] :
       {std::pair{Joined::copy_in_and_inputs, "copy_in_and_inputs"},
        {Joined::quantiles_and_statistics, "quantiles_and_statistics"},
        {Joined::knot_paths, "knot_paths"},
        {Joined::linear_sum, "linear_sum"},
        {Joined::time_attention_and_gather, "time_attention_and_gather"}}) {
    SCOPED_TRACE(name);
    int joined = 0, refused = 0;
    const std::vector<Forecast> found = forecasts(Joined::none, what, joined);
    const std::vector<Forecast> parts = forecasts(what, what, refused);
    EXPECT_EQ(refused, 0);
    const bool narrow = GetParam().weights == CudaWeights::bf16;
    const bool only_narrow =
        what == Joined::linear_sum || what == Joined::time_attention_and_gather;
    const bool tensor = GetParam().config.qk_dim == 64 && GetParam().config.v_dim == 64;
    const bool expected =
        (narrow || !only_narrow) && (tensor || what != Joined::time_attention_and_gather);
    EXPECT_EQ(joined > 0, expected);
    ASSERT_EQ(found.size(), parts.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE(i);
      expect_same(found[i], parts[i]);
    }
  }
}

// These multiply by the inverse root of a row behind the product and not before it.
TEST_P(CudaJoined, NormsWithinProductsAreCloseToNormsBeforeThem) {
  const double bound = GetParam().weights == CudaWeights::f32    ? 2e-5
                       : GetParam().weights == CudaWeights::tf32 ? 0.02
                                                                 : 0.15;
  for (const auto& [what, name] : {std::pair{Joined::norm_linear, "norm_linear"},
                                   {Joined::norm_values, "norm_values"},
                                   {Joined::norm_residual_mlp, "norm_residual_mlp"}}) {
    SCOPED_TRACE(name);
    int joined = 0, refused = 0;
    const std::vector<Forecast> found = forecasts(Joined::none, what, joined);
    const std::vector<Forecast> parts = forecasts(what, what, refused);
    EXPECT_EQ(refused, 0);
    const bool wide = GetParam().config.d_model == 128;  // the other has no form without norms
    const bool expected =
        what == Joined::norm_linear ||
        (what == Joined::norm_values ? wide : GetParam().weights == CudaWeights::bf16);
    EXPECT_EQ(joined > 0, expected);
    ASSERT_EQ(found.size(), parts.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::vector<double> a(found[i].quantiles.begin(), found[i].quantiles.end());
      const std::vector<double> b(parts[i].quantiles.begin(), parts[i].quantiles.end());
      EXPECT_LT(test::distance(a, b), bound);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CudaJoined,
                         testing::Values(Case{"Float32", CudaWeights::f32, wide(8)},
                                         Case{"Tf32", CudaWeights::tf32, wide(8)},
                                         Case{"Bfloat16", CudaWeights::bf16, wide(8)},
                                         Case{"Bfloat16Patch32", CudaWeights::bf16, wide(32)},
                                         Case{"Float32Odd", CudaWeights::f32, odd()},
                                         Case{"Bfloat16Odd", CudaWeights::bf16, odd()}),
                         [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace toto
