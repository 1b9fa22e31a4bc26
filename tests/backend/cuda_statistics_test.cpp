// SPDX-License-Identifier: Apache-2.0
// Statistics that a CUDA device forms, of trajectories and of mixtures, against plain loops and
// halving on the host. Skipped where there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/batch_image.h"
#include "backend/cuda/runtime/cuda_backend.h"
#include "backend/graph_capture.h"
#include "core/mixture_solver.h"
#include "core/student_t.h"
#include "support/differential.h"
#include "support/mixture_cases.h"

namespace toto {
namespace {

using differential::Memory;
using Index = std::size_t;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class CudaStatistics : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = cuda_unavailable();
    if (!why.empty()) GTEST_SKIP() << why;
    backend_ = make_cuda_backend({CudaWeights::f32, 1});
  }
  std::unique_ptr<Backend> backend_;
};

// --- what the host finds ---

/// Half of a last digit of float32, in which results are given.
double rounding(double v) { return 1.0001 * differential::kUlp * std::fabs(v) + 0x1p-150; }

/// `error`: how far a device may be off beyond rounding().
struct Value {
  double value, error;
  bool gap = false;  // the error is large because the cdf is flat here
};
using Expected = std::vector<Value>;  // mean, standard deviation, quantiles

/// How a device's results differ, for people to judge.
struct Tally {
  const char* what;
  Index all = 0, others = 0;
  double largest = 0;

  ~Tally() {
    std::printf("%s: %zu of %zu differ in float32; errors up to %.2g of what is allowed\n", what,
                others, all, largest);
  }
  /// Of a series with this location and scale.
  void expect_near(const std::string& where, std::span<const double> got, const Expected& expected,
                   double loc = 0, double scale = 1) {
    std::vector<double> values, bounds;
    for (const Value& e : expected) {
      const double found = got[values.size()];
      const double value = e.value * scale + (values.size() == 1 ? 0 : loc);
      const double rounded = static_cast<float>(value);
      const double allowed = e.error * scale;
      const double error = (std::fabs(found - value) - rounding(value)) / allowed;
      if (std::isfinite(error) && !e.gap) largest = std::max(largest, error);
      if (found != rounded && !(std::isnan(found) && std::isnan(rounded))) ++others;
      ++all;
      values.push_back(value);
      bounds.push_back(std::isfinite(value) ? rounding(value) + allowed : 0);
    }
    EXPECT_EQ(differential::compare(where, got, values, bounds), "") << what;
  }
};

Expected of_samples(std::span<const float> samples, const std::vector<double>& levels) {
  const auto count = static_cast<long double>(samples.size());
  long double sum = 0, sizes = 0, squares = 0;
  for (const float v : samples) sum += v;
  for (const float v : samples) sizes += std::fabs(v);
  for (const float v : samples) squares += (v - sum / count) * (v - sum / count);
  const auto deviation = static_cast<double>(std::sqrt(squares / (count - 1)));
  // The device adds in float64 in another order. No value passes more than 77 additions: 64 in a
  // thread, 5 in a warp, 8 over the warps.
  constexpr double kOrder = 77 * 0x1p-53;
  const double error = kOrder * static_cast<double>(sizes / count);
  Expected e = {{static_cast<double>(sum / count), error}, {deviation, error + kOrder * deviation}};
  std::vector<float> sorted(samples.begin(), samples.end());
  const bool any_nan = std::any_of(sorted.begin(), sorted.end(), [](float v) { return v != v; });
  if (any_nan) std::fill(sorted.begin(), sorted.end(), kNaN);
  std::sort(sorted.begin(), sorted.end());
  for (const double level : levels) {
    // torch.quantile, as docs/statistics.md has it: the same float32 operations, so the same bits.
    const float rank = static_cast<float>(level) * static_cast<float>(sorted.size() - 1);
    const float weight = rank - std::floor(rank);
    const float a = sorted[static_cast<Index>(std::floor(rank))];
    const float b = sorted[static_cast<Index>(std::ceil(rank))];
    e.push_back({weight < 0.5F ? a + weight * (b - a) : b - (b - a) * (1.0F - weight), 0});
  }
  return e;
}

/// Of probabilities as they are, which may sum to anything.
std::pair<double, double> tails_at(const MixtureParameters& p, double x) {
  double lower = 0, upper = 0;
  for (Index k = 0; k < p.size(); ++k) {
    if (p.probability[k] == 0) continue;
    const double z = (x - p.loc[k]) / p.scale[k];
    const student_t::Value t = student_t::evaluate(p.df[k], std::fabs(z));
    const double small = p.probability[k] * t.upper;
    lower += z < 0 ? small : p.probability[k] - small;
    upper += z < 0 ? p.probability[k] - small : small;
  }
  return {lower, upper};
}

/// Where the smaller tail is `times` that of level q, by halving in the list of doubles.
double quantile_of(const MixtureParameters& p, double q, double times) {
  mixture::Bracket b{std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};
  for (;;) {
    const double x = mixture::middle_of_doubles(b.low, b.high);
    if (!b.holds(x)) return x;
    const auto [lower, upper] = tails_at(p, x);
    const double all = lower + upper;
    const bool below = q < 0.5 ? lower < times * q * all : upper > times * (1 - q) * all;
    (below ? b.low : b.high) = x;
  }
}

Expected of_mixture(const MixtureParameters& p, const std::vector<double>& levels) {
  double total = 0, mean = 0, sizes = 0, variance = 0, tame = 0;
  for (Index k = 0; k < p.size(); ++k) {
    if (p.probability[k] == 0) continue;
    total += p.probability[k];
    mean += p.probability[k] * p.loc[k];
    sizes += p.probability[k] * std::fabs(p.loc[k]);
  }
  for (Index k = 0; k < p.size(); ++k) {
    if (p.probability[k] == 0) continue;
    const double df = std::min(p.df[k], student_t::kMaxDf);
    const double off = p.loc[k] - mean / total;
    const double weight = p.probability[k] / total;
    const double square = p.scale[k] * p.scale[k];
    variance += weight * (square * (df / (df - 2)) + off * off);
    const double limited = std::max(df, 3.0);
    tame += weight * (square * (limited / (limited - 2)) + off * off);
  }
  // docs/statistics.md: a deviation that the tails decide is not known.
  const double deviation = variance <= 10 * tame ? std::sqrt(variance) : kNaN;
  // Sums of 32 terms in float64, on both sides; the centre of the variance is rounded too.
  Expected e = {{mean, 1e-14 * sizes}, {deviation, 1e-12 * deviation}};
  for (const double q : levels) {
    // docs/statistics.md: 10^-11 of the width, and 4 last digits. About so far does x go when the
    // smaller tail changes by 10^-11 of itself; farther in a gap.
    const double a = quantile_of(p, q, 1 - 1e-11);
    const double b = quantile_of(p, q, 1 + 1e-11);
    const double x = 0.5 * a + 0.5 * b;
    const double error = 0.5 * std::fabs(b - a) + 0x1p-50 * std::fabs(x);
    e.push_back({x, error, std::fabs(quantile_of(p, q, 1 - 1e-13) - x) > 0.5 * error});
  }
  return e;
}

// --- what the device finds ---

using Found = std::vector<std::vector<double>>;  // of each cell: as Expected

/// Carries out operation(batch, levels, out) as forecasts do: captured for more lanes and levels
/// than come, and replayed.
template <typename Operation>
Found replay(Backend& be, std::int32_t lanes, std::int32_t horizon, std::int32_t samples,
             std::int32_t steps, const std::vector<double>& levels, const Operation& operation) {
  constexpr std::int32_t kSpare = 3;
  constexpr Index kBatchAt = 8448;
  const auto count = static_cast<std::int32_t>(levels.size());
  const Index stride = 2 + levels.size() + kSpare;
  const Index wanted = static_cast<Index>(lanes * steps) * stride;
  const Index room = wanted + static_cast<Index>(steps) * stride;
  const BatchLayout layout(1, 0);
  const Staging in = be.allocate_staging(kBatchAt + layout.bytes);
  const Staging out = be.allocate_staging(room * sizeof(float));
  const Block block{
      .variates = lanes, .horizon = horizon, .samples = samples, .level_count = count};
  write_image({&block, nullptr, 1, lanes, lanes}, layout, in.host + kBatchAt, in.device + kBatchAt);
  std::memcpy(in.host, levels.data(), levels.size() * sizeof(double));
  const auto* const live = reinterpret_cast<const LiveBatch*>(in.device + kBatchAt);
  const Batch most{nullptr, nullptr, 1, lanes + 1, lanes + 1, live, lanes + 1};
  const Levels at{reinterpret_cast<const double*>(in.device), count + kSpare};
  GraphCapture& capture = *be.capture();
  capture.begin();
  be.copy_in(in, 0, in.bytes);
  operation(most, at, reinterpret_cast<float*>(out.device));
  be.copy_out(out, out.bytes);
  capture.replay(*capture.end(), false, {});

  Found found(wanted / stride);
  for (Index i = 0; i < room; ++i) {
    const double v = reinterpret_cast<const float*>(out.host)[i];
    const bool asked = i < wanted && i % stride < stride - kSpare;
    if (asked) found[i / stride].push_back(v);
    EXPECT_TRUE(asked || v == 0) << "something that nobody asked for";
  }
  be.release_staging(in);
  be.release_staging(out);
  return found;
}

/// Mixtures of as many components each, as a device takes them, and where their series lie.
struct Cells {
  std::vector<MixtureParameters> mixtures;
  std::vector<float> locs, scales;

  void add(MixtureParameters p, float loc = 0, float scale = 1) {
    for (std::vector<double>* part : {&p.df, &p.loc, &p.scale, &p.probability}) {
      for (double& v : *part) v = static_cast<float>(v);
    }
    mixtures.push_back(std::move(p));
    locs.push_back(loc);
    scales.push_back(scale);
  }

  /// Statistics of lanes * steps of them, again and again from the first; of each once.
  [[nodiscard]] Found replay(Backend& be, const std::vector<double>& levels, std::int32_t lanes = 1,
                             std::int32_t steps = 0) const {
    if (steps == 0) steps = static_cast<std::int32_t>(mixtures.size());
    const PatchShape shape{steps + 3, static_cast<std::int32_t>(mixtures[0].size()), steps};
    std::vector<float> params, loc(static_cast<Index>((lanes + 1) * shape.patch), kNaN);
    std::vector<float> scale = loc;
    for (std::int32_t cell = 0; cell < (lanes + 1) * steps; ++cell) {
      const Index from = static_cast<Index>(cell) % mixtures.size();
      const auto at = static_cast<Index>(cell / steps * shape.patch + cell % steps);
      loc[at] = locs[from];
      scale[at] = scales[from];
      const MixtureParameters& p = mixtures[from];
      for (const std::vector<double>* part : {&p.df, &p.loc, &p.scale, &p.probability}) {
        params.insert(params.end(), part->begin(), part->end());
      }
    }
    const Memory p(be, params), l(be, loc), s(be, scale);
    return toto::replay(be, lanes, steps, 0, steps, levels,
                        [&](const Batch& b, const Levels& at, float* out) {
                          be.exact_statistics(b, shape, HeadOutput::parameters,
                                              p.of(std::int64_t{steps} * 4 * shape.components),
                                              l.of(shape.patch), s.of(shape.patch), at, out);
                        });
  }
};

// --- trajectories ---

constexpr std::pair<const char*, float (*)(float noise, Index i, Index count)> kKinds[] = {
    {"noise", [](float v, Index, Index) { return v; }},
    {"ties", [](float v, Index, Index) { return std::round(4 * v); }},
    {"all alike", [](float, Index, Index) { return 0.1F; }},
    {"descending", [](float, Index i, Index n) { return static_cast<float>(n - i); }},
    {"far from 0", [](float v, Index, Index) { return 3e7F + 100 * v; }},
    {"huge", [](float v, Index, Index) { return v < 0 ? -1e38F : 1e38F; }},
    {"below normal", [](float v, Index, Index) { return 1e-40F * v; }},
    {"NaN first", [](float v, Index i, Index) { return i == 0 ? kNaN : v; }},
    {"NaN last", [](float v, Index i, Index n) { return i + 1 == n ? -kNaN : v; }},
    {"infinite", [](float v, Index i, Index) { return i % 7 == 0 ? kInf : v; }},
    {"minus infinite", [](float v, Index i, Index) { return i % 3 == 0 ? -kInf : v; }},
};

TEST_F(CudaStatistics, OfTrajectoriesAreTheHosts) {
  constexpr Index kHorizon = 3, kFirst = 1, kSteps = kHorizon - kFirst;
  std::vector<double> levels = {1e-7};  // more than there are threads
  for (int i = 1; i < 600; ++i) levels.push_back(i / 600.0);
  levels.push_back(0.99999994);
  Tally tally{"trajectories"};
  const std::int32_t most = backend_->statistics_limits().samples;
  for (const std::int32_t samples : {1, 2, 3, 31, 32, 33, 256, 257, 1000, 4096, most - 1, most}) {
    const auto count = static_cast<Index>(samples);
    differential::Dice dice(count);
    std::vector<float> kept;
    for (Index lane = 0; lane < std::size(kKinds) * kHorizon; ++lane) {
      const std::vector<float> noise = dice.values(count, 1.0F);
      const auto make = kKinds[lane / kHorizon].second;
      for (Index i = 0; i < count; ++i) kept.push_back(make(noise[i], i, count));
    }
    const Memory memory(*backend_, kept);
    const Found found =
        replay(*backend_, std::size(kKinds), kHorizon, samples, kSteps, levels,
               [&](const Batch& batch, const Levels& at, float* out) {
                 backend_->sample_statistics(batch, typed<float>(ConstView(memory.of(samples))),
                                             {kHorizon, samples}, kFirst, at, out);
               });
    for (Index cell = 0; cell < found.size(); ++cell) {
      const Index at = cell / kSteps * kHorizon + kFirst + cell % kSteps;
      tally.expect_near(std::to_string(samples) + " samples, " + kKinds[cell / kSteps].first,
                        found[cell],
                        of_samples(std::span(kept).subspan(at * count, count), levels));
    }
  }
}

// --- mixtures ---

const std::vector<double> kLevels = {1e-6,  1e-4, 0.001, 0.01,     0.025,   0.1,  0.25,
                                     0.3,   0.4,  0.5,   0.6,      0.7,     0.75, 0.9,
                                     0.975, 0.99, 0.999, 1 - 1e-4, 1 - 1e-6};

/// Degrees of freedom from just above 2 to infinity, scales four orders apart, components that do
/// not count.
MixtureParameters uneven_mixture(std::uint64_t seed, int count) {
  constexpr double kDf[] = {2.0000002, 3, 39.9, 40, 1e4, 1e30, kInf};
  MixtureParameters p = network_mixture(seed, count, 3);
  for (Index k = 0; k < p.size(); ++k) {
    p.df[k] = kDf[k % std::size(kDf)];
    p.scale[k] *= std::pow(10.0, static_cast<double>(k % 5) - 2);
    if (k % 4 == 3) p.probability[k] = 0;
    if (k % 4 == 3) p.df[k] = p.loc[k] = kNaN;
  }
  return p;
}

// float32 hides all but seven digits of a quantile. So each is asked for once more, of a series
// whose location brings it near 0: that shows seven digits of what is left of it.
TEST_F(CudaStatistics, OfMixturesAreTheHosts) {
  auto cases = mixture_cases();
  cases.emplace_back("flat gap", MixtureParameters{{1e8, 1e8}, {-1e6, 1e6}, {1, 1}, {0.5, 0.5}});
  for (const int count : {1, 8, 24, 32}) {
    const auto seed = static_cast<std::uint64_t>(count);
    cases.emplace_back(std::to_string(count) + " components", network_mixture(seed, count));
    cases.emplace_back(cases.back().first + ", uneven", uneven_mixture(seed, count));
  }
  Tally tally{"mixtures"};
  Tally close{"mixtures, what float32 hides"};
  for (const auto& [name, p] : cases) {
    Cells cells;
    cells.add(p);
    const Expected plain = of_mixture(cells.mixtures[0], kLevels);
    for (Index i = 2; i < plain.size(); ++i) {
      cells.add(p, -static_cast<float>(plain[i].value));
    }
    const Found found = cells.replay(*backend_, kLevels);
    tally.expect_near(name, found[0], plain);
    for (Index cell = 1; cell < found.size(); ++cell) {
      close.expect_near(name, found[cell], plain, cells.locs[cell]);
    }
  }
}

// As many levels as are recorded.
TEST_F(CudaStatistics, OfManyLevelsAscend) {
  std::vector<double> levels;
  for (int i = 1; i <= 1000; ++i) levels.push_back(i / 1001.0);
  Cells cells;
  cells.add(uneven_mixture(6, 32), 0.25F, 3);
  const Found found = cells.replay(*backend_, levels);
  Tally{"levels"}.expect_near("", found[0], of_mixture(cells.mixtures[0], levels), 0.25, 3);
  EXPECT_TRUE(std::is_sorted(found[0].begin() + 2, found[0].end()));
}

// Where there are many steps, fewer warps work on each.
TEST_F(CudaStatistics, OfAStepDoNotDependOnTheNumberOfSteps) {
  Tally tally{"steps"};
  for (const int components : {3, 24, 32}) {
    Cells cells;
    for (int i = 0; i < 7; ++i) {
      const auto seed = static_cast<std::uint64_t>(components + i);
      cells.add(i % 2 == 0 ? network_mixture(seed, components) : uneven_mixture(seed, components),
                static_cast<float>(10 * i - 30), 0.1F * static_cast<float>(1 + i));
    }
    const Found few = cells.replay(*backend_, kLevels);
    const Found many = cells.replay(*backend_, kLevels, 32, 33);
    for (Index i = 0; i < few.size(); ++i) {
      tally.expect_near(std::to_string(components) + " components", few[i],
                        of_mixture(cells.mixtures[i], kLevels), cells.locs[i], cells.scales[i]);
    }
    for (Index i = 0; i < many.size(); ++i) {
      ASSERT_EQ(differential::compare_bits("step", many[i], few[i % few.size()]), "") << i;
    }
  }
}

// What a head leaves becomes parameters on the way, with the bits of the operation for that.
TEST_F(CudaStatistics, FormParametersAsDistributionDoes) {
  std::mt19937 random(11);
  std::normal_distribution<float> noise(0, 3);
  for (const bool many : {false, true}) {
    const std::int32_t lanes = many ? 40 : 2;
    const std::int32_t steps = many ? 33 : 5;
    for (const int components : {1, 3, 24, 32}) {
      for (const HeadOutput head : {HeadOutput::mixture, HeadOutput::single}) {
        const PatchShape shape{steps + 1, components, steps};
        const std::int32_t cells = lanes * steps;
        std::vector<float> raw(static_cast<Index>((cells + steps) * 4 * components));
        for (float& v : raw) v = noise(random);
        const std::vector<float> loc(static_cast<Index>((lanes + 1) * shape.patch), 2.0F);
        const std::vector<float> scale(loc.size(), 0.5F);
        const Memory before(*backend_, raw), now(*backend_, raw);
        const Memory l(*backend_, loc), s(*backend_, scale);
        backend_->distribution(
            before.of(std::int64_t{4} * components).shaped(cells, 4 * components),
            head == HeadOutput::mixture);
        const auto found = [&](HeadOutput left, const Memory& params) {
          return toto::replay(*backend_, lanes, steps, 0, steps, kLevels,
                              [&](const Batch& b, const Levels& at, float* out) {
                                backend_->exact_statistics(
                                    b, shape, left, params.of(std::int64_t{steps} * 4 * components),
                                    l.of(shape.patch), s.of(shape.patch), at, out);
                              });
        };
        const Found expected = found(HeadOutput::parameters, before);
        const Found formed = found(head, now);
        for (Index i = 0; i < expected.size(); ++i) {
          ASSERT_EQ(differential::compare_bits("step", formed[i], expected[i]), "") << i;
        }
        EXPECT_EQ(differential::compare_bits("parameters", now.read(), before.read()), "");
      }
    }
  }
}

TEST_F(CudaStatistics, OfInvalidMixturesAreNaN) {
  Cells cells;
  for (const float df : {kNaN, 1.9F, -kInf}) cells.add({{df, 3}, {0, 0}, {1, 1}, {1, 1}});
  for (const float loc : {kNaN, kInf}) cells.add({{3, 3}, {loc, 0}, {1, 1}, {1, 1}});
  for (const float s : {kNaN, kInf, 0.0F, -1.0F}) cells.add({{3, 3}, {0, 0}, {1, s}, {1, 1}});
  for (const float p : {kNaN, kInf, -1.0F}) cells.add({{3, 3}, {0, 0}, {1, 1}, {p, 3}});
  cells.add({{3, 3}, {0, 0}, {1, 1}, {0, 0}});
  const Index bad = cells.locs.size();
  cells.add({{3, 5}, {0, 1}, {1, 2}, {0.5, 0.5}});
  for (const std::int32_t lanes : {1, 80}) {  // few and many steps
    const Found found = cells.replay(*backend_, kLevels, lanes);
    for (Index i = 0; i < found.size(); ++i) {
      const bool nan = i % (bad + 1) < bad;
      for (const double v : found[i]) EXPECT_EQ(std::isnan(v), nan) << i % (bad + 1);
    }
  }
}

}  // namespace
}  // namespace toto
