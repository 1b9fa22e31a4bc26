// SPDX-License-Identifier: Apache-2.0
// The scaler of a backend against the specification and, bit by bit, against the reference backend.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/differential.h"
#include "support/scaler_oracle.h"

namespace toto::differential {

/// What `scale` gave, in the order of check_scaler, against the specification itself.
inline std::string check_scaler_against_spec(const MadeBatch& made, const ScalerSpec& spec,
                                             const std::vector<float>& x,
                                             const std::vector<std::uint8_t>& mask,
                                             std::span<const ScalerState> first,
                                             const std::vector<double>& found) {
  const auto patch = static_cast<std::size_t>(spec.patch);
  std::vector<double> got, expected, bound;
  const auto add = [&](double one, const oracle::Near& near) {
    got.push_back(one);
    expected.push_back(static_cast<double>(near.value));
    const double rounded = 1.01 * kUlp * std::abs(expected.back());  // to float32
    bound.push_back(4 * static_cast<double>(near.error) + rounded + 1e-45);
  };
  std::size_t source = 0;  // of the carried states: one for each variate of each block
  for (const Block& b : made.blocks) {
    const auto steps = static_cast<std::size_t>(b.tokens) * patch;
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const ScalerState& from = first[source + static_cast<std::size_t>(lane % b.variates)];
      oracle::ScalerCarry carry;
      carry.count = from.count;
      carry.m2 = from.m2;
      carry.upper.value = from.upper;
      const std::size_t at = static_cast<std::size_t>(b.row + lane * b.tokens) * patch;
      const oracle::ScaledLane lane_out = oracle::scale_lane(
          b, spec, std::span(x).subspan(at, steps), std::span(mask).subspan(at, steps), carry);
      const std::size_t last = static_cast<std::size_t>(b.lane + lane) * patch;
      const std::size_t lasts = static_cast<std::size_t>(made.batch.lanes) * patch;
      for (std::size_t i = 0; i < steps; ++i) {
        add(found[x.size() + at + i], lane_out.loc[i]);
        add(found[2 * x.size() + at + i], lane_out.scale[i]);
        if (i < static_cast<std::size_t>(b.labels) * patch) continue;
        // A4.8: in float32, with the loc and scale that were given.
        const float loc = static_cast<float>(found[x.size() + at + i]);
        const float scale = static_cast<float>(found[2 * x.size() + at + i]);
        if (scale == 0) continue;  // a state that nobody began
        got.push_back(found[at + i]);
        expected.push_back(static_cast<double>((x[at + i] - loc) / scale));
        bound.push_back(2 * kUlp * std::abs(expected.back()));
      }
      for (std::size_t i = 0; i < patch; ++i) {
        add(found[3 * x.size() + last + i], lane_out.loc[steps - patch + i]);
        add(found[3 * x.size() + lasts + last + i], lane_out.scale[steps - patch + i]);
      }
    }
    source += static_cast<std::size_t>(b.variates);
  }
  return compare("scale, against the specification", got, expected, bound);
}

/// A scaler that sums squares in groups against the sequential one. Terms are the same to the bit
/// and none is negative, so each order is off by at most n 2^-53 of the sum, n terms in all, and
/// the root by half of that; after rounding to float32 scales differ by one ulp at most, and scaled
/// values by one more for the rounding of the division. All else has the same bits. Results as
/// check_scaler lists them: `count` values, locations, scales; `lasts` locations, scales; six of
/// each state.
inline std::string compare_grouped_scaler(const std::vector<double>& got,
                                          const std::vector<double>& expected, std::size_t count,
                                          std::size_t lasts) {
  const auto n = static_cast<double>(count);
  const std::size_t lasts_at = 3 * count;
  const std::size_t states_at = lasts_at + 2 * lasts;
  const auto tolerance = [&](std::size_t i) {
    if (i < count) return 4 * kUlp;
    const bool is_scale =
        (i >= 2 * count && i < lasts_at) || (i >= lasts_at + lasts && i < states_at);
    if (is_scale) return 2 * kUlp;
    if (i < states_at) return 0.0;
    const std::size_t field = (i - states_at) % 6;
    return field == 2 || field == 5 ? (n + 4) * 0x1p-52 : 0.0;  // m2, scale
  };
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool equal = got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]));
    if (equal || std::abs(got[i] - expected[i]) <= tolerance(i) * std::abs(expected[i])) continue;
    return "scale, grouped: at " + std::to_string(i) + " " + std::to_string(got[i]) +
           ", expected " + std::to_string(expected[i]);
  }
  return {};
}

inline std::string check_scaler(Dice& dice, const Subject& s) {
  MadeBatch made = make_batch(dice, 1, 2);
  MadeBatch one;
  for (Block& b : made.blocks) {
    b.labels = std::min(b.labels, b.tokens - 1);
    b.position = dice.coin() ? 0 : b.position;
    Block single = b;
    single.trajectories = 1;
    add_block(one, single, 1, 2, dice);
  }
  finish(made);
  finish(one);
  ScalerSpec spec;
  spec.kind = static_cast<ScalerSpec::Kind>(dice.integer(0, 2));
  spec.patch = dice.coin() ? dice.integer(1, 12) : dice.integer(31, 100);  // several groups
  spec.stabilize_with_global = dice.coin();
  spec.exponent = dice.coin() ? 10 : 1;
  const auto count = static_cast<std::size_t>(made.batch.rows) * spec.patch;
  auto x = dice.values(count, dice.coin() ? 1.0F : 1e10F);
  if (dice.coin()) {  // of all sizes: sums are rounded
    for (float& v : x) v = std::ldexp(v, dice.integer(-30, 30));
  }
  std::vector<std::uint8_t> mask(count);
  for (auto& m : mask) m = dice.integer(0, 4) != 0;
  std::vector<ScalerState> first(static_cast<std::size_t>(one.batch.lanes));
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i].count = first[i].m2 = 3.0 + static_cast<double>(i);
    first[i].upper = std::numeric_limits<double>::infinity();
  }
  const auto on = [&](Backend& be) {
    const Memory raw(be, x);
    const Memory scaled(be, count);
    const Memory loc(be, count);
    const Memory scale(be, count);
    const auto lasts = static_cast<std::size_t>(made.batch.lanes) * spec.patch;
    const Memory last_loc(be, lasts);
    const Memory last_scale(be, lasts);
    std::vector<ScalerState> state(static_cast<std::size_t>(made.batch.lanes));
    const Bytes first_there(be, first.data(), first.size() * sizeof(ScalerState));
    const Bytes there(be, state.data(), state.size() * sizeof(ScalerState));
    const Bytes mask_there(be, mask.data(), mask.size());
    auto* const states = reinterpret_cast<ScalerState*>(there.at());
    be.repeat_state(On(be, one.batch), On(be, made.batch),
                    reinterpret_cast<const ScalerState*>(first_there.at()), states);
    const std::int32_t patch = spec.patch;
    be.scale(On(be, made.batch), spec, raw.of(patch), mask_there.at(), states,
             {scaled.of(patch), loc.of(patch), scale.of(patch), last_loc.of(patch),
              last_scale.of(patch)});
    there.read(state.data());
    std::vector<double> result = scaled.read();
    for (const Memory* m : {&loc, &scale, &last_loc, &last_scale}) {
      const auto more = m->read();
      result.insert(result.end(), more.begin(), more.end());
    }
    for (const ScalerState& at : state) {
      result.insert(result.end(), {at.count, at.sum, at.m2, at.mean, at.loc, at.scale});
    }
    return result;
  };
  // Backends agree with each other, and with the specification, which shares no code with any.
  const std::vector<double> found = on(s.backend);
  const std::string wrong = check_scaler_against_spec(made, spec, x, mask, first, found);
  if (!wrong.empty()) return wrong;
  const std::vector<double> expected = on(s.single);
  if (s.backend.name() != "cuda") return compare_bits("scale, repeat_state", found, expected);
  return compare_grouped_scaler(found, expected, count,
                                static_cast<std::size_t>(made.batch.lanes) * spec.patch);
}

}  // namespace toto::differential
