// SPDX-License-Identifier: Apache-2.0
// Forecasts of Toto 2.0: bits in any batch, on any number of threads; every instruction set against
// float64; padding, masks and refusals. The numbers of the official code are tested with the golden
// folders (tests/tools/verify/golden_test.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "support/test_files.h"
#include "support/toto2_requests.h"

namespace toto {
namespace {

using test::error_of;
using testing::HasSubstr;
using toto2::Request;

using test::Dice;
using test::distance;
using test::forecast;
using test::Made;
using test::make;
using test::network;
using test::odd;
using test::released;

std::shared_ptr<Backend> cpu(const std::string& isa = {}, int threads = 1,
                             CpuWeights weights = CpuWeights::f32) {
  return make_cpu_backend({threads, weights, isa});
}

struct Bits : testing::TestWithParam<std::tuple<cpu::Isa, CpuWeights>> {};

TEST_P(Bits, DependOnTheRequestAlone) {
  const auto [isa, weights] = GetParam();
  const std::string name(cpu::isa_name(isa));
  for (const Toto2Config& config : {released(), odd()}) {
    const auto alone = network(config, cpu(name, 1, weights));
    Dice dice(7);
    std::vector<Made> batch;
    for (int i = 0; i < 7; ++i) batch.push_back(make(dice, config.patch_size));
    std::vector<std::vector<double>> expected;
    for (const Made& m : batch) expected.push_back(forecast(*alone, m));
    for (const int threads : {1, 2, 3}) {
      const auto net = network(config, cpu(name, threads, weights));
      EXPECT_EQ(forecast(*net, batch), expected) << threads << " threads";
    }
    std::reverse(batch.begin(), batch.end());
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(forecast(*alone, batch), expected);
  }
}

// So many that each thread takes whole series: short ones, a long one among them, all alike.
TEST_P(Bits, ManySeriesAreDividedAmongThreads) {
  const auto [isa, weights] = GetParam();
  const std::string name(cpu::isa_name(isa));
  const Toto2Config config = released();
  const auto alone = network(config, cpu(name, 1, weights));
  for (const bool alike : {true, false}) {
    Dice dice(23);
    std::vector<Made> batch;
    for (int i = 0; i < 50; ++i) {
      Made m = make(dice, config.patch_size);
      if (alike || i == 20) {
        m = {};
        m.request.targets = 1;
        m.request.steps = i == 20 && !alike ? 500 : 100;
        m.request.horizon = 20;
        m.values = dice.values(m.request.steps);
        m.mask = dice.mask(m.request.steps, i % 3 == 0);
        m.groups = {0};
      }
      batch.push_back(std::move(m));
    }
    std::vector<std::vector<double>> expected;
    for (const Made& m : batch) expected.push_back(forecast(*alone, m));
    for (const int threads : {2, 3, 4}) {
      const auto net = network(config, cpu(name, threads, weights));
      EXPECT_EQ(forecast(*net, batch), expected) << threads << " threads";
    }
  }
}

std::vector<std::tuple<cpu::Isa, CpuWeights>> kinds() {
  std::vector<std::tuple<cpu::Isa, CpuWeights>> all;
  for (const cpu::Isa isa : cpu::available_isas()) {
    all.emplace_back(isa, CpuWeights::f32);
    all.emplace_back(isa, CpuWeights::bf16);
    all.emplace_back(isa, CpuWeights::int8);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Bits, testing::ValuesIn(kinds()), [](const auto& test) {
  return std::string(cpu::isa_name(std::get<0>(test.param))) +
         (std::get<1>(test.param) == CpuWeights::bf16   ? "_weights_bf16"
          : std::get<1>(test.param) == CpuWeights::int8 ? "_weights_int8"
                                                        : "");
});

// One pass, so that no difference is fed back: 3e-5 of the scale is what the official code differs
// by between its own float32 and float64.
TEST(Toto2Generation, EveryInstructionSetIsCloseToFloat64) {
  for (const Toto2Config& config : {released(), odd()}) {
    const auto exact = network(config, make_reference_backend_f64(), false);
    const auto plain = network(config, make_reference_backend_f32());
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
      Dice dice(100 + seed);
      Made m = make(dice, config.patch_size, 3);
      m.request.block = 0;
      const std::vector<double> expected = forecast(*exact, m);
      EXPECT_LT(distance(forecast(*plain, m), expected), 3e-5) << seed;
      for (const cpu::Isa isa : cpu::available_isas()) {
        const auto net = network(config, cpu(std::string(cpu::isa_name(isa)), 2));
        EXPECT_LT(distance(forecast(*net, m), expected), 3e-5)
            << cpu::isa_name(isa) << ", seed " << seed;
      }
    }
  }
}

// More keys and more variates than fit into one chunk of the attention kernels.
TEST(Toto2Generation, LongAndWideRequests) {
  const Toto2Config config = released();
  const auto exact = network(config, make_reference_backend_f64(), false);
  const auto net = network(config, cpu({}, 2));
  Dice dice(5);
  for (const auto& [variates, steps] : {std::pair{1, 150 * 8}, {90, 24}, {3, 67 * 8 + 1}}) {
    Made m;
    m.request.targets = variates;
    m.request.steps = steps;
    m.request.horizon = 20;
    m.values = dice.values(variates * steps);
    m.mask = dice.mask(variates * steps, true);
    m.groups.assign(static_cast<std::size_t>(variates), 0);
    EXPECT_LT(distance(forecast(*net, m), forecast(*exact, m)), 3e-5) << variates << " x " << steps;
  }
}

Made simple(std::int32_t steps, std::int32_t variates = 1) {
  Dice dice(11);
  Made m;
  m.request.targets = variates;
  m.request.steps = steps;
  m.request.horizon = 12;
  m.values = dice.values(variates * steps);
  m.mask.assign(m.values.size(), 1);
  m.groups.assign(static_cast<std::size_t>(variates), 0);
  return m;
}

TEST(Toto2Generation, ContextsAreFilledUpByTheMask) {
  const auto net = network(released(), cpu());
  const Made bare = simple(21);
  Made filled = simple(24);
  std::fill_n(filled.mask.begin(), 3, std::uint8_t{0});
  std::fill_n(filled.values.begin(), 3, 1e30F);  // nobody reads it
  std::copy(bare.values.begin(), bare.values.end(), filled.values.begin() + 3);
  EXPECT_EQ(forecast(*net, bare), forecast(*net, filled));
}

TEST(Toto2Generation, PatchesThatNobodyObservedInFrontChangeNothing) {
  const auto net = network(released(), cpu());
  Made longer = simple(8 * 8);
  std::fill_n(longer.mask.begin(), 8 * 5, std::uint8_t{0});
  Made shorter = simple(8 * 3);
  shorter.values.assign(longer.values.begin() + 8 * 5, longer.values.end());
  // Not bit by bit: positions, of which only differences matter, are others.
  EXPECT_LT(distance(forecast(*net, longer), forecast(*net, shorter)), 1e-5);
}

TEST(Toto2Generation, GroupsKeepToThemselves) {
  const auto net = network(released(), cpu());
  Made both = simple(40, 2);
  both.groups = {0, 1};
  Made other = both;
  for (std::size_t i = 40; i < 80; ++i) other.values[i] *= 100;
  const auto first_of = [](std::vector<double> all) {  // blocks of one variate
    all.resize(all.size() / 2);
    return all;
  };
  EXPECT_EQ(first_of(forecast(*net, both)), first_of(forecast(*net, other)));
  both.groups = other.groups = {0, 0};
  EXPECT_NE(first_of(forecast(*net, both)), first_of(forecast(*net, other)));
}

TEST(Toto2Generation, QuantilesAreSorted) {
  const auto net = network(released(), cpu());
  const std::vector<double> found = forecast(*net, simple(40));
  for (std::size_t p = 0; p < found.size(); p += 72) {
    for (std::size_t i = p; i < p + 64; ++i) EXPECT_LE(found[i], found[i + 8]);
  }
}

/// Quantiles [variates][patches][9][P], and which patch of the forecast is the first.
struct FirstBlock final : toto2::Sink {
  void block(const toto2::Block& b) override {
    if (b.index > 0) return;
    first = b.first;
    patches = b.patches;
    quantiles.assign(b.quantiles.begin(), b.quantiles.end());
  }
  std::int32_t first = 0, patches = 0;
  std::vector<double> quantiles;
};

FirstBlock first_block(const Toto2& net, const Request& request) {
  FirstBlock sink;
  toto2::generate(net, std::span(&request, 1), sink);
  return sink;
}

// What the forecasts of a context are for coherent paths: of each patch what a forecast would be
// that ends where the patch begins, so nothing of it has been seen, location and scale included.
// (Group ids of patches and the tokens' distances are the same; the centre of xPos is not.)
TEST(Toto2Generation, ForecastsOfTheContextAreOnePatchAhead) {
  constexpr std::int32_t kVariates = 2, kContext = 20;
  for (const Toto2Config& config : {released(), odd()}) {
    const std::int32_t patch = config.patch_size;
    for (const bool trim : {true, false}) {
      const auto net = network(config, make_reference_backend_f64(), trim);
      Dice dice(3);
      const std::vector<float> values = dice.values(kVariates * kContext * patch);
      const std::vector<std::uint8_t> mask(values.size(), 1);
      const std::vector<std::int32_t> groups = {0, 0};
      const auto forecast_from = [&](std::int32_t patches, bool coherent) {
        std::vector<float> cut;
        for (std::int32_t v = 0; v < kVariates; ++v) {
          const auto from = values.begin() + std::ptrdiff_t{v} * kContext * patch;
          cut.insert(cut.end(), from, from + std::ptrdiff_t{patches} * patch);
        }
        Request r;
        r.targets = kVariates;
        r.steps = patches * patch;
        r.values = cut;
        r.mask = std::span(mask).first(cut.size());
        r.groups = groups;
        r.horizon = patch;
        r.coherent = coherent;
        return first_block(*net, r);
      };
      const FirstBlock seen = forecast_from(kContext, true);
      ASSERT_EQ(seen.first, -toto2::kPathTokens);
      ASSERT_EQ(seen.patches, toto2::kPathTokens + 1);
      const std::size_t cells = std::size_t{kQuantiles} * static_cast<std::size_t>(patch);
      for (std::int32_t at = 0; at <= toto2::kPathTokens; ++at) {
        const FirstBlock cut = forecast_from(kContext - toto2::kPathTokens + at, false);
        for (std::size_t v = 0; v < kVariates; ++v) {
          const std::size_t from =
              (v * static_cast<std::size_t>(seen.patches) + static_cast<std::size_t>(at)) * cells;
          for (std::size_t i = 0; i < cells; ++i) {
            ASSERT_NEAR(seen.quantiles[from + i], cut.quantiles[v * cells + i], 1e-4)
                << "patch " << at << ", variate " << v;
          }
        }
      }
    }
  }
}

TEST(Toto2Generation, Refusals) {
  const auto net = network(released(), cpu());
  const auto code = [&](const std::function<void(Request&)>& change) {
    Made m = simple(40);
    change(m.request);
    return error_of([&] { forecast(*net, m); }).code();
  };
  EXPECT_EQ(code([](Request& r) { r.horizon = 0; }), "invalid_horizon");
  EXPECT_EQ(code([](Request& r) { r.block = 12; }), "invalid_block");
  EXPECT_EQ(code([](Request& r) { r.block = 1001; }), "invalid_block");  // though beyond the end
  EXPECT_EQ(code([](Request& r) { r.horizon = 8 * 8188; }), "context_too_long");
}

}  // namespace
}  // namespace toto
