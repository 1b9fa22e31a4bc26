// SPDX-License-Identifier: Apache-2.0
// Attention and what comes before it, for differential_ops.h.
#pragma once

#include <algorithm>
#include <cmath>

#include "support/differential.h"

namespace toto::differential {

/// What attention and rotation share: a batch, queries, keys and values, caches.
struct AttentionCase {
  std::int32_t heads, d;
  MadeBatch made;
  std::vector<float> qkv, keys, values, cosine, sine, factor;
};

/// Queries, keys, values and caches of a batch that is there.
inline void fill_rows(AttentionCase& c, Dice& dice, float scale) {
  c.qkv = dice.values(static_cast<std::size_t>(c.made.batch.rows) * 3 * c.heads * c.d, scale);
  c.keys = dice.values(static_cast<std::size_t>(c.made.kv), scale);
  c.values = dice.values(static_cast<std::size_t>(c.made.kv), scale);
}

/// As xPos factors: of either side of 1.
inline std::vector<float> make_factors(Dice& dice, std::size_t count) {
  std::vector<float> factors = dice.values(count, 1.0F);
  for (float& f : factors) f = 1.5F + 0.5F * std::tanh(f);
  return factors;
}

/// Rotary tables for its positions.
inline void fill_tables(AttentionCase& c, Dice& dice) {
  const auto table = static_cast<std::size_t>(c.made.positions) * c.d / 2;
  c.cosine = dice.values(table, 1.0F);
  c.sine = dice.values(table, 1.0F);
  c.factor = make_factors(dice, 2 * table);
}

inline AttentionCase make_attention(Dice& dice) {
  AttentionCase c;
  c.heads = dice.integer(1, 3);
  c.d = 2 * dice.integer(1, dice.coin() ? 33 : 9);
  if (dice.integer(0, 15) == 0) c.d = 258;
  c.made = make_batch(dice, c.heads, c.d);
  fill_rows(c, dice, dice.coin() ? 1.0F : 4.0F);
  fill_tables(c, dice);
  return c;
}

struct KvMemory {
  Memory keys, values;
  std::int32_t d;
  KvMemory(Backend& be, const AttentionCase& c) : keys(be, c.keys), values(be, c.values), d(c.d) {}
  [[nodiscard]] KvLayer layer() const { return {keys.of(d), values.of(d)}; }
};

inline std::string check_rotary_append(Dice& dice, const Subject& s) {
  const AttentionCase c = make_attention(dice);
  struct Result {
    std::vector<double> qkv, keys, values;
  };
  const auto on = [&](Backend& be) {
    const Memory qkv(be, c.qkv);
    const KvMemory kv(be, c);
    const Memory cosine(be, c.cosine);
    const Memory sine(be, c.sine);
    const Memory factor(be, c.factor);
    const std::int32_t half = c.d / 2;
    be.rotary_append(On(be, c.made.batch),
                     {cosine.of(half), sine.of(half), factor.of(half), c.made.positions},
                     qkv.of(3 * c.heads * c.d), kv.layer(), c.heads);
    return Result{qkv.read(), kv.keys.read(), kv.values.read()};
  };
  Result got = on(s.backend);
  Result expected = on(s.exact);
  // Whether the keys in qkv are rotated as well is the backend's affair.
  const std::size_t width = static_cast<std::size_t>(c.heads) * c.d;
  for (std::size_t i = 0; i < got.qkv.size(); ++i) {
    if (i / width % 3 == 1) got.qkv[i] = expected.qkv[i] = 0;
  }
  // Factors are 1 to 2, so |q'| <= 2 (|a| + |b|) with table entries of up to 8.
  double largest = 0;
  for (const float v : c.qkv) largest = std::max<double>(largest, std::abs(v));
  const double size = 2 * 2 * 8 * largest * 6 * kUlp;
  std::string wrong = compare("rotary_append queries", got.qkv, expected.qkv,
                              std::vector<double>(got.qkv.size(), size));
  if (wrong.empty()) {
    wrong = compare("rotary_append keys", got.keys, expected.keys,
                    std::vector<double>(got.keys.size(), size));
  }
  if (wrong.empty()) wrong = compare_bits("rotary_append values", got.values, expected.values);
  return wrong;
}

/// Logits are off by at most `e`, so each weight by a factor of exp(2 e); the weights sum to 1.
inline double attention_bound(const AttentionCase& c, std::int64_t keys) {
  const auto largest_row = [&](const std::vector<float>& rows) {
    double largest = 0;
    for (std::size_t i = 0; i + c.d <= rows.size(); i += c.d) {
      double squares = 0;
      for (std::int32_t e = 0; e < c.d; ++e)
        squares += static_cast<double>(rows[i + e]) * rows[i + e];
      largest = std::max(largest, std::sqrt(squares));
    }
    return largest;
  };
  double value = 0;
  for (const auto* rows : {&c.qkv, &c.values}) {
    for (const float v : *rows) value = std::max<double>(value, std::abs(v));
  }
  const double row = largest_row(c.qkv);
  const double logit = row * std::max(row, largest_row(c.keys)) / std::sqrt(c.d);
  return value *
         (std::expm1(2 * (c.d + 8) * kUlp * logit) + (static_cast<double>(keys) + 30) * 2 * kUlp);
}

inline std::string check_time_attention(Dice& dice, const Subject& s) {
  const AttentionCase c = make_attention(dice);
  const bool last_only = dice.coin();
  const std::int32_t out_rows = last_only ? c.made.batch.lanes : c.made.batch.rows;
  const auto on = [&](Backend& be) {
    const Memory qkv(be, c.qkv);
    const KvMemory kv(be, c);
    const Memory out(be, static_cast<std::size_t>(out_rows) * c.heads * c.d);
    be.time_attention(On(be, c.made.batch), qkv.of(3 * c.heads * c.d), kv.layer(),
                      out.of(c.heads * c.d), c.heads, last_only);
    return out.read();
  };
  const auto expected = on(s.exact);
  const std::vector<double> bound(expected.size(), attention_bound(c, c.made.positions));
  return compare("time_attention", on(s.backend), expected, bound);
}

/// Half of the time every lane sees few keys, and the batch says so.
inline std::string check_append_and_attend(Dice& dice, const Subject& s) {
  AttentionCase c = make_attention(dice);
  if (dice.coin()) {
    c.d = 64;
    c.made = {};
    for (std::int32_t i = dice.integer(1, 5); i > 0; --i) {
      Block b;
      b.trajectories = dice.integer(1, 3);
      b.variates = dice.integer(1, 4);
      b.tokens = dice.integer(1, 16);
      add_block(c.made, b, c.heads, c.d, dice);
    }
    finish(c.made);
    c.made.batch.keys = 16;
    fill_rows(c, dice, 1.0F);
  }
  const std::int32_t half = c.d / 2;
  const auto angles = dice.values(static_cast<std::size_t>(c.made.positions) * half, 3.0F);
  c.cosine.clear();
  c.sine.clear();
  for (const float angle : angles) {
    c.cosine.push_back(std::cos(angle));
    c.sine.push_back(std::sin(angle));
  }
  c.factor = make_factors(dice, 2 * angles.size());
  const bool last_only = dice.coin();
  const bool kept = dice.coin();
  const std::int32_t out_rows = last_only ? c.made.batch.lanes : c.made.batch.rows;
  struct Result {
    std::vector<double> out, keys, values;
  };
  const auto on = [&](Backend& be) {
    const Memory qkv(be, c.qkv), cosine(be, c.cosine), sine(be, c.sine), factor(be, c.factor);
    const KvMemory kv(be, c);
    const Memory out(be, static_cast<std::size_t>(out_rows) * c.heads * c.d);
    be.append_and_attend(
        On(be, c.made.batch), {cosine.of(half), sine.of(half), factor.of(half), c.made.positions},
        qkv.of(3 * c.heads * c.d), kv.layer(), out.of(c.heads * c.d), c.heads, last_only, kept);
    return Result{out.read(), kv.keys.read(), kv.values.read()};
  };
  const Result expected = on(s.exact);
  const Result got = on(s.backend);
  AttentionCase rotated = c;  // queries are at most twice as long then, keys no longer
  for (float& v : rotated.qkv) v *= 2;
  const std::vector<double> bound(expected.out.size(), attention_bound(rotated, c.made.positions));
  std::string wrong = compare("append_and_attend", got.out, expected.out, bound);
  if (!wrong.empty() || !kept) return wrong;
  double largest = 0;
  for (const float v : c.qkv) largest = std::max<double>(largest, std::abs(v));
  const std::vector<double> of_keys(got.keys.size(), 2 * largest * 6 * kUlp);
  wrong = compare("append_and_attend keys", got.keys, expected.keys, of_keys);
  if (!wrong.empty()) return wrong;
  return compare_bits("append_and_attend values", got.values, expected.values);
}

inline std::string check_variate_attention(Dice& dice, const Subject& s) {
  AttentionCase c = make_attention(dice);
  if (dice.coin()) {  // many variates
    c.made = {};
    Block b;
    b.variates = dice.integer(1, 120);
    b.tokens = dice.integer(1, 3);
    b.trajectories = dice.integer(1, 3);
    add_block(c.made, b, c.heads, c.d, dice);
    finish(c.made);
    c.qkv = dice.values(static_cast<std::size_t>(c.made.batch.rows) * 3 * c.heads * c.d, 1.0F);
  }
  const auto on = [&](Backend& be) {
    const Memory qkv(be, c.qkv);
    const Memory out(be, static_cast<std::size_t>(c.made.batch.rows) * c.heads * c.d);
    be.variate_attention(On(be, c.made.batch), qkv.of(3 * c.heads * c.d), out.of(c.heads * c.d),
                         c.heads);
    return out.read();
  };
  const auto expected = on(s.exact);
  const std::vector<double> bound(expected.size(), attention_bound(c, 120));
  return compare("variate_attention", on(s.backend), expected, bound);
}

}  // namespace toto::differential
