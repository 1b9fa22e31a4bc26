// SPDX-License-Identifier: Apache-2.0
// Embedding and all layers in one launch, for up to eight rows of the published model's widths,
// against the same operations one by one, which a larger batch takes: every bit is equal. Skipped
// where there is no device.
#include "support/needs_device.h"
#include "support/requests.h"

namespace toto {
namespace {

using test::expect_same;
using test::OwnedSeries;
using test::views;
using test::wave;

struct Case {
  const char* name;
  Precision precision;
  std::int32_t spacewise_every;
  bool labels;
  std::int32_t patch = 16;
};

class CudaLayers : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { TOTO_NEEDS_DEVICE(); }
  [[nodiscard]] static Model make() {
    Toto1Config c = test::spec_config();
    c.patch_size = GetParam().patch;
    c.embed_dim = 768;
    c.num_heads = 12;
    c.mlp_hidden_dim = 3072;
    c.num_layers = 4;
    c.spacewise_every_n_layers = GetParam().spacewise_every;
    c.components = 3;
    LoadOptions options;
    options.backend = "cuda";
    options.precision = GetParam().precision;
    options.mode = Mode::reduce_overhead;
    options.threads = 1;
    return test::make_model(c, GetParam().labels, {}, 7, options);
  }
};

std::vector<Forecast> forecast(Forecaster& forecaster, const std::vector<OwnedSeries>& owned,
                               std::size_t horizon) {
  ForecastOptions o;
  o.horizon = horizon;
  o.num_samples = 5;
  o.keep_samples = true;
  o.seed = 3;
  return forecaster.forecast(views(owned), o);
}

TEST_P(CudaLayers, GiveTheBitsOfOneByOne) {
  const Model model = make();
  std::vector<OwnedSeries> owned;
  const auto patch = static_cast<std::size_t>(GetParam().patch);
  for (std::size_t i = 0; i < 9; ++i) {
    owned.push_back(wave(i, (5 + i * 14) * patch / 16));  // 1 to 8 tokens
  }
  owned.push_back(wave(20, 3, 7));          // 7 variates of one
  owned.push_back(wave(21, 3 * patch, 2));  // 2 of three
  owned.push_back(wave(22, patch + 4, 3));
  owned[10].groups = {0, 1};
  for (const std::size_t horizon : {patch / 2 + 1, patch * 5 / 2}) {
    Forecaster batch(model);
    const auto all = forecast(batch, owned, horizon);
    Forecaster few(model);
    for (std::size_t i = 0; i < owned.size(); ++i) {
      for (int again = 0; again < 3; ++again) {
        expect_same(forecast(few, {owned[i]}, horizon).front(), all[i]);
      }
    }
    expect_same(forecast(few, {owned[0]}, horizon).front(), all[0]);
    if (horizon < patch && model.impl().net->backend().isa() == "sm_90") {
      ForecastOptions o;
      o.horizon = horizon;
      (void)few.forecast(views({owned[0]}), o);
      // Scaler, layers with the head, and statistics; embedding and labels where the kernel of all
      // layers does not embed.
      const std::uint64_t before = GetParam().labels ? 2 : patch > 64 ? 1 : 0;
      EXPECT_EQ(few.counters().graph_launches, 3 + before);
    }
    const auto three = forecast(few, {owned[0], owned[9], owned[1]}, horizon);  // 1, 7, 2 tokens
    expect_same(three[0], all[0]);
    expect_same(three[1], all[9]);
    expect_same(three[2], all[1]);
    const auto ragged = forecast(few, {owned[2], owned[0], owned[1]}, horizon);  // 3, 1, 2
    expect_same(ragged[0], all[2]);
    expect_same(ragged[1], all[0]);
    expect_same(ragged[2], all[1]);
    EXPECT_EQ(few.counters().graph_fallbacks, 0U);
  }
}

// With coherent paths the head sees every token, so layers are not one kernel.
TEST_P(CudaLayers, CoherentPathsHaveTheBitsOfEachAlone) {
  const Model model = make();
  const auto patch = static_cast<std::size_t>(GetParam().patch);
  const std::vector<OwnedSeries> owned = {wave(0, 5 * patch), wave(1, 2 * patch, 3),
                                          wave(2, 12 * patch)};
  ForecastOptions o;
  o.horizon = patch * 3 / 2;
  o.num_samples = 5;
  o.keep_samples = true;
  o.paths = Paths::coherent;
  Forecaster forecaster(model);
  const auto joined = forecaster.forecast(views(owned), o);
  for (std::size_t i = 0; i < owned.size(); ++i) {
    expect_same(forecaster.forecast(views({owned[i]}), o).front(), joined[i]);
  }
  o.paths = Paths::independent;
  const Forecast plain = forecaster.forecast(views({owned[0]}), o).front();
  for (std::size_t level = 0; level < plain.levels.size(); ++level) {
    for (std::size_t t = 0; t < patch; ++t) {
      const std::size_t at = level * o.horizon + t;
      EXPECT_EQ(plain.quantiles[at], joined[0].quantiles[at]);
    }
  }
  EXPECT_NE(plain.samples, joined[0].samples);
  EXPECT_EQ(forecaster.counters().graph_fallbacks, 0U);
}

std::string case_name(const testing::TestParamInfo<Case>& made) { return made.param.name; }
INSTANTIATE_TEST_SUITE_P(Models, CudaLayers,
                         testing::Values(Case{"Float32", Precision::float32, 2, false},
                                         Case{"Float32Labels", Precision::float32, 4, true},
                                         Case{"Float32TimeOnly", Precision::float32, 9, false},
                                         Case{"Tf32", Precision::tf32, 2, false},
                                         Case{"Tf32Labels", Precision::tf32, 4, true},
                                         Case{"Tf32TimeOnly", Precision::tf32, 9, false},
                                         Case{"Bfloat16", Precision::bfloat16, 2, false},
                                         Case{"Bfloat16Labels", Precision::bfloat16, 4, true},
                                         Case{"Bfloat16TimeOnly", Precision::bfloat16, 9, false},
                                         Case{"Float32Patch20", Precision::float32, 4, false, 20},
                                         Case{"Bfloat16Patch36", Precision::bfloat16, 4, false, 36},
                                         Case{"Float32Patch64", Precision::float32, 4, false, 64},
                                         Case{"Tf32Patch64", Precision::tf32, 4, false, 64},
                                         Case{"Bfloat16Patch64", Precision::bfloat16, 4, false, 64},
                                         Case{"Float32Patch96", Precision::float32, 4, false, 96}),
                         case_name);

}  // namespace
}  // namespace toto
