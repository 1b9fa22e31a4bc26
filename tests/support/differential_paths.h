// SPDX-License-Identifier: Apache-2.0
// The operations of coherent paths against the reference: correlations of neighbouring steps, and
// draws, each on its own mixture.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backend/path_ops.h"
#include "statistics/mixture.h"
#include "support/differential.h"
#include "support/float_mixtures.h"

namespace toto::differential {

/// Mixtures that are valid, none of them narrow: [count][4][K].
inline std::vector<float> wide_mixtures(Dice& dice, std::size_t count, std::int32_t components) {
  const auto k = static_cast<std::size_t>(components);
  std::vector<float> params = dice.values(count * 4 * k, 1.0F);
  for (std::size_t i = 0; i < params.size(); ++i) {
    const std::size_t which = i / k % 4;
    if (which == 0) params[i] = 2 + 9 * std::abs(params[i]);
    if (which == 2) params[i] = 0.2F + std::abs(params[i]);
    if (which == 3) params[i] = std::abs(params[i]) / static_cast<float>(k);
    if (which == 3 && i % k == 0) params[i] += 0.01F;  // they do not sum to 0
  }
  return params;
}

inline std::string check_neighbours(Dice& dice, const Subject& s) {
  MadeBatch made;
  const std::int32_t count = dice.integer(1, 3);
  for (std::int32_t i = 0; i < count; ++i) {
    Block b;
    b.variates = dice.integer(1, 3);
    b.labels = dice.integer(0, 1);
    b.tokens = dice.integer(1, dice.integer(0, 3) == 0 ? 70 : 6) + b.labels;
    b.context = b.tokens - b.labels;
    add_block(made, b, 1, 2, dice);
  }
  finish(made);
  const auto rows = static_cast<std::size_t>(made.batch.rows);
  // The reference takes its time.
  const PatchShape shape{std::min(dice.integer(1, 20), std::max(2, 1000 / made.batch.rows)),
                         dice.integer(1, 34), 1};
  const auto cells = rows * static_cast<std::size_t>(shape.patch);
  const std::vector<float> params = wide_mixtures(dice, cells, shape.components);
  const std::vector<float> loc = dice.values(cells, 10.0F);
  std::vector<float> scale = dice.values(cells, 4.0F);
  std::vector<float> x = dice.values(cells, 20.0F);
  std::vector<std::uint8_t> mask(cells);
  for (std::size_t i = 0; i < cells; ++i) {
    scale[i] = 0.5F + std::abs(scale[i]);
    x[i] += 0.3712F;
    mask[i] = dice.integer(0, 5) == 0 ? 0 : 1;
  }
  const auto on = [&](Backend& be) {
    const Memory of_params(be, params), of_loc(be, loc), of_scale(be, scale);
    const Bytes of_x(be, x.data(), cells * sizeof(float));
    const Bytes of_mask(be, mask.data(), cells);
    const std::vector<double> none(cells);
    const Bytes scores(be, none.data(), cells * sizeof(double));
    std::vector<float> rho(static_cast<std::size_t>(made.batch.lanes) * shape.patch, 77.0F);
    const Bytes of_rho(be, rho.data(), rho.size() * sizeof(float));
    be.paths()->reserve(shape.components);
    be.paths()->neighbours(
        On(be, made.batch), shape, of_params.of(std::int64_t{shape.patch} * 4 * shape.components),
        of_loc.of(shape.patch), of_scale.of(shape.patch), reinterpret_cast<const float*>(of_x.at()),
        of_mask.at(), reinterpret_cast<double*>(scores.at()),
        reinterpret_cast<float*>(of_rho.at()));
    of_rho.read(rho.data());
    return std::vector<double>(rho.begin(), rho.end());
  };
  const auto expected = on(s.exact);
  // A score is off by some 1e-5: x is within 200 scales and a few roundings of where it should be.
  return compare("neighbours", on(s.backend), expected, std::vector<double>(expected.size(), 1e-3));
}

/// A batch with one block for each of another, of one trajectory and one token.
inline MadeBatch first_of_each(const MadeBatch& made, Dice& dice) {
  MadeBatch out;
  for (Block b : made.blocks) {
    b.trajectories = b.tokens = 1;
    add_block(out, b, 1, 2, dice);
  }
  finish(out);
  return out;
}

inline std::string check_draw(Dice& dice, const Subject& s) {
  MadeBatch made = make_batch(dice, 1, 2);
  for (Block& b : made.blocks) b.seed = static_cast<std::uint64_t>(dice.integer(0, 65535));
  finish(made);
  const MadeBatch source = first_of_each(made, dice);
  const bool is_shared = dice.coin();
  PatchShape shape{dice.integer(1, 20), dice.integer(1, 34), 0};
  if (dice.integer(0, 3) == 0) shape.patch = dice.integer(21, 70);
  shape.patch = std::min(shape.patch, std::max(1, 500 / made.batch.lanes));
  shape.steps = dice.integer(1, shape.patch);
  const Batch& lanes_of = is_shared ? source.batch : made.batch;
  const auto lanes = static_cast<std::size_t>(lanes_of.lanes);
  const auto patch = static_cast<std::size_t>(shape.patch);
  const auto steps = static_cast<std::size_t>(shape.steps);
  const auto k = static_cast<std::size_t>(shape.components);
  std::vector<float> params = wide_mixtures(dice, lanes * steps, shape.components);
  if (dice.integer(0, 3) == 0) {  // some that are not valid
    for (std::size_t i = 2 * k; i < params.size(); i += 36 * k) params[i] = -1;
  }
  // Values in units of the mixture, so that only the way back rounds.
  const std::vector<float> loc(lanes * patch, 0.0F), scale(lanes * patch, 1.0F);
  std::vector<float> rho = dice.values(static_cast<std::size_t>(source.batch.lanes) * patch, 1.0F);
  for (float& r : rho) r = std::min(std::abs(r), 0.999F);
  const auto on = [&](Backend& be) {
    const Memory of_params(be, params), of_loc(be, loc), of_scale(be, scale);
    const Bytes of_rho(be, rho.data(), rho.size() * sizeof(float));
    const Memory y(be, std::vector<float>(static_cast<std::size_t>(made.batch.lanes) * patch, 77));
    const On batch(be, made.batch), first(be, source.batch);
    be.paths()->reserve(shape.components);
    be.paths()->draw(batch, is_shared ? first.get() : nullptr, first, shape,
                     of_params.of(std::int64_t{shape.steps} * 4 * shape.components),
                     of_loc.of(shape.patch), of_scale.of(shape.patch),
                     reinterpret_cast<const float*>(of_rho.at()), y.of(shape.patch));
    return y.read();
  };
  const std::vector<double> got = on(s.backend), expected = on(s.exact);
  Mixture mixture(k);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got[i] == expected[i]) continue;
    const std::size_t lane = i / patch, step = i % patch;
    std::size_t from = lane;
    for (std::size_t b = 0; is_shared && b < made.blocks.size(); ++b) {
      const Block& block = made.blocks[b];
      const auto own = static_cast<std::int32_t>(lane) - block.lane;
      if (own < 0 || own >= block.lanes()) continue;
      from = static_cast<std::size_t>(source.blocks[b].lane + own % block.variates);
    }
    double off = HUGE_VAL;
    double z = 0;
    if (step < steps) {
      const auto at = params.begin() + static_cast<std::ptrdiff_t>((from * steps + step) * 4 * k);
      const std::vector<double> own(at, at + static_cast<std::ptrdiff_t>(4 * k));
      const auto part = [&](std::size_t p) { return std::span(own).subspan(p * k, k); };
      mixture.assign(part(0), part(1), part(2), part(3));
      z = mixture.normal_score(expected[i]);
      off = test::logit_miss(mixture, z, static_cast<float>(got[i]));
    }
    if (off <= 3e-6 * (1 + z * z)) continue;
    return "draw[" + std::to_string(lane) + "][" + std::to_string(step) + "]: expected " +
           std::to_string(expected[i]) + ", found " + std::to_string(got[i]) + ", z " +
           std::to_string(z) + ", logit off by " + std::to_string(off);
  }
  return {};
}

}  // namespace toto::differential
