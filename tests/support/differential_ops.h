// SPDX-License-Identifier: Apache-2.0
// One check for each operation of the seam: a backend against the reference backend on the same
// made-up inputs. Each returns what is wrong, or nothing. Bounds follow from sizes: u = 2^-24 is
// one rounding, and a sum of n products, in whatever order, is off by at most about n u sum |a b|.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "support/differential_attention.h"
#include "support/differential_paths.h"
#include "support/differential_scaler.h"

namespace toto::differential {

inline std::unique_ptr<float[]> copy_of(const std::vector<float>& values) {
  auto copy = std::make_unique<float[]>(values.size());
  std::copy(values.begin(), values.end(), copy.get());
  return copy;
}

struct LinearCase {
  std::int32_t rows, in, out;
  std::int32_t asked;  // outputs, the first of `out`
  Epilogue use;
  std::vector<float> weights, bias, x, before;
};

inline std::vector<double> linear_on(Backend& be, const LinearCase& c) {
  Matrix m = be.upload_matrix(copy_of(c.weights), c.out, c.in, c.bias, c.use);
  m.out = c.asked;
  const Memory x(be, c.x);
  const Memory y(be, c.before);
  be.linear(m, x.of(c.in), y.of(c.use == Epilogue::gated ? c.asked / 2 : c.asked), c.use);
  return y.read();
}

/// `error`: of a sum, relative to magnitude(row, output), the sum of what it is made of.
template <typename Magnitude>
std::vector<double> linear_bound(const LinearCase& c, double error, const Magnitude& magnitude,
                                 const std::vector<double>& expected) {
  const std::int32_t columns = c.use == Epilogue::gated ? c.asked / 2 : c.asked;
  std::vector<double> bound;
  for (std::int32_t row = 0; row < c.rows; ++row) {
    for (std::int32_t o = 0; o < columns; ++o) {
      const double e = error * magnitude(row, o) + 1e-30;
      const double now = std::abs(expected[row * columns + o]);
      if (c.use == Epilogue::gated) {  // |silu'| <= 1.1, |silu(x)| <= |x|
        const double ev = error * magnitude(row, columns + o);
        bound.push_back(1.1 * e * (magnitude(row, columns + o) + ev) + magnitude(row, o) * ev +
                        8 * kUlp * now);
      } else {
        bound.push_back(e + 2 * kUlp * (now + std::abs(c.before[row * columns + o])));
      }
    }
  }
  return bound;
}

/// The weights as int8 has them.
inline void round_to_int8(LinearCase& c) {
  const auto in = static_cast<std::size_t>(c.in);
  for (std::size_t o = 0; o < static_cast<std::size_t>(c.out); ++o) {
    to_int8_values({c.weights.data() + o * in, in});
  }
}

inline std::string check_linear(Dice& dice, const Subject& s) {
  LinearCase c{};
  c.rows = dice.integer(1, dice.coin() ? 150 : 9);
  c.in = dice.integer(1, dice.coin() ? 200 : 20);
  c.use = static_cast<Epilogue>(dice.integer(0, 2));
  std::int32_t width = dice.integer(1, dice.coin() ? 200 : 20);
  if (dice.coin()) {  // fours are what tensor cores take in float32
    c.in = (c.in + 3) / 4 * 4;
    width = (width + 3) / 4 * 4;
  }
  const std::int32_t parts = c.use == Epilogue::gated ? 2 : 1;
  c.out = parts * width;
  c.asked = c.use == Epilogue::gated ? c.out : dice.integer(1, c.out);
  c.weights = dice.values(static_cast<std::size_t>(c.out) * c.in, 1.0F);
  if (dice.coin()) c.bias = dice.values(static_cast<std::size_t>(c.out), 1.0F);
  c.x = dice.values(static_cast<std::size_t>(c.rows) * c.in, dice.coin() ? 1.0F : 100.0F);
  const std::int32_t columns = c.asked / parts;
  c.before = dice.values(static_cast<std::size_t>(c.rows) * columns, 1.0F);

  const std::vector<double> got = linear_on(s.backend, c);
  const bool fours = c.in % 4 == 0 && c.out % 4 == 0;  // other sizes tf32 leaves as they are
  if (s.rounds == Rounds::to_bf16 || (s.rounds == Rounds::to_tf32 && fours)) {
    const auto rounded = s.rounds == Rounds::to_bf16 ? to_bf16_value : to_tf32_value;
    for (float& w : c.weights) w = rounded(w);
    for (float& x : c.x) x = rounded(x);
  }
  if (s.rounds == Rounds::weights_to_int8) round_to_int8(c);
  const std::vector<double> expected = linear_on(s.exact, c);

  const auto magnitude = [&](std::int32_t row, std::int32_t o) {
    double sum = c.bias.empty() ? 0 : std::abs(c.bias[o]);
    for (std::int32_t k = 0; k < c.in; ++k) {
      sum += std::abs(static_cast<double>(c.weights[o * c.in + k]) * c.x[row * c.in + k]);
    }
    return sum;
  };
  // Two roundings for each k: not every instruction set fuses them.
  const auto bound = linear_bound(c, (2 * c.in + 4) * kUlp, magnitude, expected);
  return compare("linear", got, expected, bound);
}

inline std::string check_rms_norm(Dice& dice, const Subject& s) {
  const std::int32_t rows = dice.integer(1, 70);
  const std::int32_t dim = dice.integer(1, dice.coin() ? 800 : 40);
  const auto x = dice.values(static_cast<std::size_t>(rows) * dim, dice.coin() ? 1.0F : 1e-4F);
  const auto scale = dice.values(static_cast<std::size_t>(dim), 2.0F);
  const auto on = [&](Backend& be) {
    const Memory from(be, x);
    const Memory gain(be, scale);
    const Memory to(be, x.size());
    be.rms_norm(from.of(dim), gain.of(dim), to.of(dim));
    return to.read();
  };
  const auto expected = on(s.exact);
  std::vector<double> bound;
  for (const double y : expected) bound.push_back((dim + 8) * kUlp * std::abs(y));
  return compare("rms_norm", on(s.backend), expected, bound);
}

inline std::string check_norm_linear(Dice& dice, const Subject& s) {
  LinearCase c{};
  c.rows = dice.integer(1, dice.coin() ? 70 : 9);
  c.in = dice.coin() ? 768 : 4 * dice.integer(1, 20);  // the width that has kernels of its own
  c.use = static_cast<Epilogue>(dice.integer(0, 2));
  c.out = c.asked = 8 * dice.integer(1, 6);
  const std::int32_t columns = c.use == Epilogue::gated ? c.out / 2 : c.out;
  c.weights = dice.values(static_cast<std::size_t>(c.out) * c.in, 1.0F);
  if (dice.coin()) c.bias = dice.values(static_cast<std::size_t>(c.out), 1.0F);
  c.x = dice.values(static_cast<std::size_t>(c.rows) * c.in, dice.coin() ? 1.0F : 1e-4F);
  c.before = dice.values(static_cast<std::size_t>(c.rows) * columns, 1.0F);
  const auto gain = dice.values(static_cast<std::size_t>(c.in), 2.0F);
  const auto on = [&](Backend& be) {
    const Matrix m = be.upload_matrix(copy_of(c.weights), c.out, c.in, c.bias, c.use);
    const Memory x(be, c.x);
    const Memory gains(be, gain);
    const Memory normed(be, c.x.size() + static_cast<std::size_t>(c.rows));
    const Memory y(be, c.before);
    be.norm_linear(x.of(c.in), gains.of(c.in), normed.of(c.in + 1), m, y.of(columns), c.use);
    return y.read();
  };
  const std::vector<double> got = on(s.backend);
  if (s.rounds == Rounds::weights_to_int8) round_to_int8(c);
  const auto expected = on(s.exact);

  std::vector<double> inverse;  // of the root of each row
  for (std::int32_t row = 0; row < c.rows; ++row) {
    double squares = 0;
    for (std::int32_t k = 0; k < c.in; ++k) {
      squares += static_cast<double>(c.x[row * c.in + k]) * c.x[row * c.in + k];
    }
    inverse.push_back(1 / std::sqrt(squares / c.in + 1e-8));
  }
  const auto magnitude = [&](std::int32_t row, std::int32_t o) {
    double sum = 0;
    for (std::int32_t k = 0; k < c.in; ++k) {
      sum += std::abs(static_cast<double>(c.weights[o * c.in + k]) * c.x[row * c.in + k] * gain[k]);
    }
    return sum * inverse[row] + (c.bias.empty() ? 0 : std::abs(c.bias[o]));
  };
  // The sum and the sum of squares, a few roundings of each term, and of its two operands: by
  // 2^-8 in bfloat16, 2^-11 in tf32. int8 weights are taken as they are rounded.
  const double operands = s.rounds == Rounds::to_bf16   ? 0x1.1p-7
                          : s.rounds == Rounds::to_tf32 ? 0x1.1p-10
                                                        : 0;
  const auto bound = linear_bound(c, (3 * c.in + 16) * kUlp + operands, magnitude, expected);
  return compare("norm_linear", got, expected, bound);
}

inline std::string check_distribution(Dice& dice, const Subject& s) {
  const std::int32_t rows = dice.integer(1, 40);
  const std::int32_t k = dice.integer(1, 40);
  const bool mixture = dice.coin();
  const auto raw = dice.values(static_cast<std::size_t>(rows) * 4 * k, dice.coin() ? 3.0F : 12.0F);
  const auto on = [&](Backend& be) {
    const Memory memory(be, raw);
    be.distribution(memory.of(4 * k), mixture);
    return memory.read();
  };
  const auto expected = on(s.exact);
  std::vector<double> bound;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool probability = i / k % 4 == 3;
    // A probability is off by the rounding of its logit, up to 8 * 12, and of the sum.
    const double roundings = probability ? 4 * 96 + 2 * k + 12 : 8;
    bound.push_back(roundings * kUlp * std::abs(expected[i]) +
                    2 * static_cast<double>(std::numeric_limits<float>::min()));
  }
  return compare("distribution", on(s.backend), expected, bound);
}

/// Parameters as distribution() leaves them, for the lanes of a batch or of its shared prediction.
struct PredictCase {
  MadeBatch made, shared;
  bool is_shared;
  PatchShape shape;
  std::vector<float> params, loc, scale;
};

inline PredictCase make_predict(Dice& dice) {
  PredictCase c;
  c.made = make_batch(dice, 1, 2);
  c.is_shared = dice.coin();
  for (const Block& b : c.made.blocks) {
    Block one = b;
    one.trajectories = 1;
    one.tokens = 1;
    add_block(c.shared, one, 1, 2, dice);
  }
  finish(c.shared);
  c.shape.patch = dice.integer(1, 20);
  c.shape.steps = dice.integer(1, c.shape.patch);
  c.shape.components = dice.integer(1, 26);
  const auto lanes =
      static_cast<std::size_t>(c.is_shared ? c.shared.batch.lanes : c.made.batch.lanes);
  const auto k = static_cast<std::size_t>(c.shape.components);
  c.params = dice.values(lanes * c.shape.steps * 4 * k, 1.0F);
  for (std::size_t i = 0; i < c.params.size(); ++i) {
    const std::size_t which = i / k % 4;
    if (which == 0) c.params[i] = 2 + std::abs(c.params[i]);
    if (which == 2 || which == 3) c.params[i] = std::abs(c.params[i]) / static_cast<float>(k);
  }
  c.loc = dice.values(lanes * c.shape.patch, 10.0F);
  c.scale = dice.values(lanes * c.shape.patch, dice.integer(0, 9) == 0 ? 1e38F : 10.0F);
  return c;
}

inline std::vector<double> predict_on(Backend& be, const PredictCase& c, bool draw) {
  const Memory params(be, c.params);
  const Memory loc(be, c.loc);
  const Memory scale(be, c.scale);
  const Memory y(
      be, std::vector<float>(static_cast<std::size_t>(c.made.batch.lanes) * c.shape.patch, 77.0F));
  const On batch(be, c.made.batch);
  const On prefill(be, c.shared.batch);
  const Batch* shared = c.is_shared ? prefill.get() : nullptr;
  const std::int32_t patch = c.shape.patch;
  const View mixtures = params.of(std::int64_t{c.shape.steps} * 4 * c.shape.components);
  if (draw) {
    be.predict_draw(batch, shared, c.shape, mixtures, loc.of(patch), scale.of(patch), y.of(patch));
  } else {
    be.predict_mean(batch, shared, c.shape, mixtures, loc.of(patch), scale.of(patch), y.of(patch));
  }
  return y.read();
}

inline std::string check_predict(Dice& dice, const Subject& s) {
  PredictCase c = make_predict(dice);
  for (Block& b : c.made.blocks) b.seed = static_cast<std::uint64_t>(dice.integer(0, 65535));
  finish(c.made);
  std::string wrong =
      compare_bits("predict_draw", predict_on(s.backend, c, true), predict_on(s.single, c, true));
  if (!wrong.empty()) return wrong;
  for (float& v : c.scale) v = std::min(std::max(v, -80.0F), 80.0F);  // nothing near the extremes
  const auto expected = predict_on(s.exact, c, false);
  // |sum of p loc| <= 8 * 8, times the scale of 80, plus the location of 80.
  const std::vector<double> bound(expected.size(),
                                  (c.shape.components + 4) * kUlp * (64 * 80 + 80));
  return compare("predict_mean", predict_on(s.backend, c, false), expected, bound);
}

/// Operations that move numbers: equal in every bit.
inline std::string check_moves(Dice& dice, const Subject& s) {
  const MadeBatch made = make_batch(dice, 1, 2);
  const std::int32_t dim = dice.integer(1, 70);
  const std::int32_t columns = dice.integer(1, dim);  // of the first ones
  const auto hidden = dice.values(static_cast<std::size_t>(made.batch.rows) * dim, 1.0F);
  const auto labels = dice.values(static_cast<std::size_t>(2) * dim, 1.0F);
  const auto covariates = dice.values(static_cast<std::size_t>(8) * dim, 1.0F);
  MadeBatch injected = made;
  for (Block& b : injected.blocks) b.covariates = dice.coin() ? dice.integer(0, 4 * dim) : -1;
  finish(injected);
  const auto on = [&](Backend& be) {
    const Memory all(be, hidden);
    const Memory two(be, labels);
    const Memory last(be, static_cast<std::size_t>(made.batch.lanes) * dim);
    const Memory first(be, static_cast<std::size_t>(made.batch.lanes) * columns);
    const Bytes future(be, covariates.data(), covariates.size() * sizeof(float));
    be.set_labels(On(be, made.batch), two.of(dim), all.of(dim));
    be.gather_last(On(be, made.batch), all.of(dim), last.of(dim));
    be.gather_last(On(be, made.batch), all.of(dim), first.of(columns));
    be.inject(On(be, injected.batch), {dim, 1, dim}, reinterpret_cast<const float*>(future.at()),
              last.of(dim));
    std::vector<double> result = all.read();
    for (const Memory* const memory : {&last, &first}) {
      const std::vector<double> more = memory->read();
      result.insert(result.end(), more.begin(), more.end());
    }
    return result;
  };
  return compare_bits("set_labels, gather_last, inject", on(s.backend), on(s.single));
}

using Check = std::string (*)(Dice&, const Subject&);
struct NamedCheck {
  const char* name;
  Check check;
};
inline constexpr NamedCheck kChecks[] = {
    {"linear", check_linear},
    {"rms_norm", check_rms_norm},
    {"norm_linear", check_norm_linear},
    {"rotary_append", check_rotary_append},
    {"time_attention", check_time_attention},
    {"append_and_attend", check_append_and_attend},
    {"variate_attention", check_variate_attention},
    {"distribution", check_distribution},
    {"predict", check_predict},
    {"neighbours", check_neighbours},
    {"draw", check_draw},
    {"moves", check_moves},
    {"scaler", check_scaler},
};

}  // namespace toto::differential
