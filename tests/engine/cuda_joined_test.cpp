// SPDX-License-Identifier: Apache-2.0
// Operations of Toto 2.0 that a device does in one launch in place of several: forecasts with each
// of them refused in turn. Skipped where there is no device.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
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

  static bool tensor_heads() { return GetParam().config.qk_dim == 64; }

  /// Forecasts with an operation and with its parts; whether it is `done` at all.
  template <typename Compare>
  static void refuse(Joined what, bool done, const Compare& compare) {
    int joined = 0, refused = 0;
    const std::vector<Forecast> found = forecasts(Joined::none, what, joined);
    const std::vector<Forecast> parts = forecasts(what, what, refused);
    EXPECT_EQ(joined > 0, done);
    EXPECT_EQ(refused, 0);
    ASSERT_EQ(found.size(), parts.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE(i);
      compare(found[i], parts[i]);
    }
  }
};

TEST_P(CudaJoined, HaveTheBitsOfTheirParts) {
  const bool narrow = GetParam().weights == CudaWeights::bf16;
  for (const auto& [what, name, done] :
       {std::tuple{Joined::copy_in_and_inputs, "copy_in_and_inputs", true},
        {Joined::quantiles_and_statistics, "quantiles_and_statistics", true},
        {Joined::knot_paths, "knot_paths", true},
        {Joined::linear_sum, "linear_sum", narrow},
        {Joined::norms_ahead, "norms_ahead", narrow && GetParam().config.d_model % 64 == 0},
        {Joined::time_attention_and_gather, "time_attention_and_gather",
         narrow && tensor_heads()}}) {
    SCOPED_TRACE(name);
    refuse(what, done, expect_same);
  }
}

/// Layers so wide that kernels let the next begin early, and that weights are streamed.
class CudaJoinedWide : public CudaJoined {};

TEST_P(CudaJoinedWide, HaveTheBitsOfTheirParts) {
  for (const auto& [what, name] : {std::pair{Joined::linear_sum, "linear_sum"},
                                   {Joined::norms_ahead, "norms_ahead"},
                                   {Joined::time_attention_and_gather, "gather"}}) {
    SCOPED_TRACE(name);
    refuse(what, true, expect_same);
  }
}

// These multiply by the inverse root of a row behind the product and not before it.
TEST_P(CudaJoined, NormsWithinProductsAreCloseToNormsBeforeThem) {
  const bool narrow = GetParam().weights == CudaWeights::bf16;
  const double bound = GetParam().weights == CudaWeights::f32    ? 2e-5
                       : GetParam().weights == CudaWeights::tf32 ? 0.02
                                                                 : 0.15;
  for (const auto& [what, name, done] :
       {std::tuple{Joined::norm_linear, "norm_linear", true},
        {Joined::norm_values, "norm_values", tensor_heads()},  // of heads that share no keys
        {Joined::norm_residual_mlp, "norm_residual_mlp", narrow}}) {
    SCOPED_TRACE(name);
    refuse(what, done, [bound](const Forecast& found, const Forecast& parts) {
      const std::vector<double> a(found.quantiles.begin(), found.quantiles.end());
      const std::vector<double> b(parts.quantiles.begin(), parts.quantiles.end());
      EXPECT_LT(test::distance(a, b), bound);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, CudaJoinedWide,
    testing::Values(Case{"Width1024", CudaWeights::bf16, test::heads_of_64(16, 8)},
                    Case{"Width1536", CudaWeights::bf16, test::heads_of_64(24, 8)}),
    [](const auto& made) { return std::string(made.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Models, CudaJoined,
    testing::Values(Case{"Float32", CudaWeights::f32, test::heads_of_64(2, 8)},
                    Case{"Tf32", CudaWeights::tf32, test::heads_of_64(2, 8)},
                    Case{"Bfloat16", CudaWeights::bf16, test::heads_of_64(2, 8)},
                    Case{"Bfloat16Patch32", CudaWeights::bf16, test::heads_of_64(2, 32)},
                    Case{"Float32Odd", CudaWeights::f32, odd()},
                    Case{"Bfloat16Odd", CudaWeights::bf16, odd()}),
    [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace toto
