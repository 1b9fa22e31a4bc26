// SPDX-License-Identifier: Apache-2.0
#include "backend/host_paths.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "backend/operation.h"
#include "backend/parallel.h"
#include "core/draw.h"
#include "core/philox.h"

namespace toto {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kMaxRho = 0.999;
constexpr double kMaxScore = 5;       // a surprise counts as no more than this
constexpr double kPrior = 8;          // tokens that the mean of all neighbours counts as
constexpr std::int32_t kTokens = 64;  // the last so many forecasts are looked at
constexpr double kAlike = 0.5;        // from this correlation on the step before says where to look
constexpr double kLeastShare = 1e-4;  // components of less probability are left out
constexpr std::int32_t kGroup = 64;   // trajectories that share the parameters of a step

/// A10: values that are not finite or of extreme size become 0.
template <typename T>
T tame(T y) {
  constexpr double kExtreme = static_cast<double>(std::numeric_limits<float>::max()) / 2;
  return std::isfinite(y) && std::abs(static_cast<double>(y)) < kExtreme ? y : T{0};
}

/// The standard normal of a draw's address (Box and Muller).
double normal_at(const Block& b, std::int32_t variate, std::int32_t sample, std::int32_t step) {
  const PhiloxWords words =
      draw_words(b.seed, {b.key, static_cast<std::uint32_t>(variate),
                          static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(step)});
  constexpr double kTwoPi = 6.28318530717958647692;
  return std::sqrt(-2 * std::log(uniform52(words.x[1], words.x[3]))) *
         std::cos(kTwoPi * uniform32(words.x[2]));
}

/// The first block whose lanes end after `lane`.
const Block* block_at(const Batch& batch, std::int64_t lane) {
  return std::upper_bound(batch.blocks, batch.blocks + batch.count, lane,
                          [](std::int64_t at, const Block& b) { return at < b.lane; }) -
         1;
}

/// rho [P] of one variate: correlations of neighbours over the tokens, each drawn towards the mean
/// of all, and that towards 0. scores [tokens][P], NaN where a value is missing.
void correlate(const double* scores, std::int32_t tokens, std::int32_t patch, float* rho) {
  double all = 0, weights = 0;
  for (std::int32_t s = 0; s + 1 < patch; ++s) {
    double both = 0, first = 0, second = 0, count = 0;
    for (std::int32_t i = 0; i < tokens; ++i) {
      const double a = scores[std::int64_t{i} * patch + s];
      const double b = scores[std::int64_t{i} * patch + s + 1];
      if (std::isnan(a) || std::isnan(b)) continue;
      both += a * b;
      first += a * a;
      second += b * b;
      count += 1;
    }
    const double found = first > 0 && second > 0 ? both / std::sqrt(first * second) : 0;
    rho[s] = static_cast<float>(found);
    all += count * found;
    weights += count;
  }
  const double pairs = std::max(patch - 1, 1);
  const double mean = all / (weights + kPrior);
  const double each = weights / pairs;  // tokens behind one of them
  for (std::int32_t s = 0; s + 1 < patch; ++s) {
    const double drawn = (each * rho[s] + kPrior * mean) / (each + kPrior);
    rho[s] = static_cast<float>(std::clamp(drawn, 0.0, kMaxRho));
  }
  rho[patch - 1] = 0;
}

}  // namespace

/// Takes the components of a step that count; false where there are none.
template <typename T>
bool HostPaths<T>::Worker::assign(const T* params, std::size_t components) {
  double total = 0;
  for (std::size_t k = 0; k < components; ++k) {
    total += static_cast<double>(params[3 * components + k]);
  }
  std::size_t used = 0;
  for (std::size_t k = 0; k < components; ++k) {
    if (!(static_cast<double>(params[3 * components + k]) >= kLeastShare * total)) continue;
    for (std::size_t part = 0; part < 4; ++part) {
      kept[part * components + used] = static_cast<double>(params[part * components + k]);
    }
    ++used;
  }
  const std::span<const double> all(kept);
  mixture.assign(all.first(used), all.subspan(components, used), all.subspan(2 * components, used),
                 all.subspan(3 * components, used));
  return mixture.valid();
}

template <typename T>
void HostPaths<T>::reserve(std::int32_t components) {
  if (components <= components_ && !workers_.empty()) return;
  components_ = std::max(components, components_);
  workers_.assign(static_cast<std::size_t>(backend_.workers()),
                  Worker(static_cast<std::size_t>(components_)));
}

template <typename T>
void HostPaths<T>::neighbours(const Batch& context, const PatchShape& shape, const void* params,
                              const void* loc, const void* scale, const float* x,
                              const std::uint8_t* mask, double* scores, float* rho) const {
  const OperationSpan span(Operation::neighbours);
  const std::int32_t patch = shape.patch;
  const auto k = static_cast<std::size_t>(shape.components);
  const std::int64_t stride = std::int64_t{patch} * 4 * shape.components;
  const auto score_row = [&](Worker& own, std::int64_t row) {
    for (std::int32_t s = 0; s < patch; ++s) {
      const std::int64_t at = row * patch + s;
      scores[at] = kNaN;
      if (mask[at + patch] == 0) continue;
      const T* const p =
          static_cast<const T*>(params) + row * stride + std::int64_t{s} * 4 * shape.components;
      if (!own.assign(p, k)) continue;
      const double value = (x[at + patch] - static_cast<double>(static_cast<const T*>(loc)[at])) /
                           static_cast<double>(static_cast<const T*>(scale)[at]);
      scores[at] = std::clamp(own.mixture.normal_score(value), -kMaxScore, kMaxScore);
    }
  };
  for (std::int32_t i = 0; i < context.count; ++i) {
    const Block& b = context.blocks[i];
    const std::int32_t forecasts = std::max(b.tokens - b.labels - 1, 0);
    const std::int32_t used = std::min(forecasts, kTokens);
    const std::int32_t first = b.tokens - 1 - used;  // token of the first forecast looked at
    parallel(backend_, std::int64_t{b.lanes()} * used,
             [&](std::int64_t begin, std::int64_t end, int worker) noexcept {
               Worker& own = workers_[static_cast<std::size_t>(worker)];
               for (std::int64_t item = begin; item < end; ++item) {
                 score_row(own, b.row + item / used * b.tokens + first + item % used);
               }
             });
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const std::int64_t row = b.row + std::int64_t{lane} * b.tokens + first;
      correlate(scores + row * patch, used, patch, rho + std::int64_t{b.lane + lane} * patch);
    }
  }
}

template <typename T>
void HostPaths<T>::draw(const Batch& batch, const Batch* shared, const Batch& source,
                        const PatchShape& shape, const void* params, const void* loc,
                        const void* scale, const float* rho, void* y) const {
  const OperationSpan span(Operation::draw);
  const auto k = static_cast<std::size_t>(shape.components);
  const std::int64_t stride = std::int64_t{shape.steps} * 4 * shape.components;

  /// Trajectories first, first + 1, ... of a variate, whose parameters are those of lane `from`.
  const auto draw_group = [&](Worker& own, const Block& b, std::int32_t variate, std::int32_t first,
                              std::int32_t count, std::int64_t from, const float* own_rho) {
    double z[kGroup];
    Mixture::Near before[kGroup];
    const T* const at_loc = static_cast<const T*>(loc) + from * shape.patch;
    const T* const at_scale = static_cast<const T*>(scale) + from * shape.patch;
    std::fill_n(before, count, Mixture::Near{0, kNaN, 0});
    for (std::int32_t s = 0; s < shape.patch; ++s) {
      const bool there =
          s < shape.steps && own.assign(static_cast<const T*>(params) + from * stride +
                                            std::int64_t{s} * 4 * shape.components,
                                        k);
      const double bound = s == 0 ? 0.0 : static_cast<double>(own_rho[s - 1]);
      const double free = std::sqrt(1 - bound * bound);
      for (std::int32_t i = 0; i < count; ++i) {
        const std::int32_t trajectory = first + i;
        T& out = static_cast<T*>(
            y)[(std::int64_t{b.lane} + trajectory * b.variates + variate) * shape.patch + s];
        out = 0;
        if (s >= shape.steps) continue;
        const double fresh = normal_at(b, variate, b.first_sample + trajectory, b.first_step + s);
        z[i] = s == 0 ? fresh : bound * z[i] + free * fresh;
        if (!there) continue;
        const bool like = bound > kAlike && !std::isnan(before[i].x);
        const double x = own.mixture.at_normal_score(z[i], like ? &before[i] : nullptr);
        before[i] = {z[i], x, own.mixture.center()};
        out = tame(static_cast<T>(x) * at_scale[s] + at_loc[s]);
      }
    }
  };
  parallel(backend_, batch.lanes, [&](std::int64_t begin, std::int64_t end, int worker) noexcept {
    Worker& own = workers_[static_cast<std::size_t>(worker)];
    for (const Block* b = begin < end ? block_at(batch, begin) : nullptr; begin < end; ++b) {
      const auto index = b - batch.blocks;
      const std::int64_t low = begin - b->lane;
      const std::int64_t high = std::min(end - b->lane, std::int64_t{b->lanes()});
      begin = b->lane + high;
      for (std::int32_t v = 0; v < b->variates; ++v) {
        const float* const own_rho =
            rho + (std::int64_t{source.blocks[index].lane} + v) * shape.patch;
        auto first = static_cast<std::int32_t>((low - v + b->variates - 1) / b->variates);
        const auto last = static_cast<std::int32_t>((high - v + b->variates - 1) / b->variates);
        while (first < last) {
          const std::int32_t count = shared == nullptr ? 1 : std::min(last - first, kGroup);
          const std::int64_t from = shared == nullptr
                                        ? std::int64_t{b->lane} + first * b->variates + v
                                        : std::int64_t{shared->blocks[index].lane} + v;
          draw_group(own, *b, v, first, count, from, own_rho);
          first += count;
        }
      }
    }
  });
}

template class HostPaths<float>;
template class HostPaths<double>;

}  // namespace toto
