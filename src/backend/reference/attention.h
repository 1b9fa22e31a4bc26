// SPDX-License-Identifier: Apache-2.0
// Rotary embedding and both attentions of spec A7.3, A7.4, A8 in plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backend/backend.h"

namespace toto::reference {

template <typename T>
T dot(const T* a, const T* b, std::int32_t n) {
  T sum = 0;
  for (std::int32_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// One head of one token (A8): angle by channel / 2, xPos factor by channel mod d/2.
/// `invert`: keys take the reciprocal of the rounded factor.
template <typename T>
void rotate(T* z, const T* cosine, const T* sine, const T* factor, std::int32_t d, bool invert) {
  const std::int32_t half = d / 2;
  for (std::int32_t m = 0; m < half; ++m) {
    const std::int32_t even = 2 * m;
    const T a = z[even];
    const T b = z[even + 1];
    const T fa = invert ? T{1} / factor[even % half] : factor[even % half];
    const T fb = invert ? T{1} / factor[(even + 1) % half] : factor[(even + 1) % half];
    z[even] = a * cosine[m] * fa + -b * sine[m] * fa;
    z[even + 1] = b * cosine[m] * fb + a * sine[m] * fb;
  }
}

/// Keys and values that one query sees: the shared prefix, then the private suffix.
template <typename T>
struct Visible {
  const T* prefix_keys;
  const T* prefix_values;
  const T* suffix_keys;
  const T* suffix_values;
  std::int32_t prefix;
  std::int32_t suffix;

  [[nodiscard]] std::int32_t count() const { return prefix + suffix; }
  [[nodiscard]] const T* key(std::int32_t j, std::int32_t d) const {
    return j < prefix ? prefix_keys + j * d : suffix_keys + (j - prefix) * d;
  }
  [[nodiscard]] const T* value(std::int32_t j, std::int32_t d) const {
    return j < prefix ? prefix_values + j * d : suffix_values + (j - prefix) * d;
  }
};

template <typename T>
Visible<T> visible(const Block& b, const T* keys, const T* values, std::int32_t lane,
                   std::int32_t head, std::int32_t token, std::int32_t heads, std::int32_t d) {
  const std::int64_t variate = lane % b.variates;
  const std::int64_t prefix = b.prefix_at + (variate * heads + head) * b.prefix * d;
  const std::int64_t suffix =
      b.suffix_at + (std::int64_t{lane} * heads + head) * b.suffix_capacity * d;
  return {keys + prefix,   values + prefix, keys + suffix,
          values + suffix, b.prefix,        b.suffix + token + 1};
}

/// softmax(q.k / sqrt(d)) v over n keys; `key(j)` and `value(j)` give [d], `seen(j)` masks. The
/// logits are formed twice rather than stored: this is the oracle, and it needs no scratch.
template <typename T, typename Key, typename Value, typename Seen>
void attend(const T* query, T* out, std::int32_t n, std::int32_t d, Key key, Value value,
            Seen seen) {
  const T root = std::sqrt(static_cast<T>(d));
  T highest = -std::numeric_limits<T>::infinity();
  for (std::int32_t j = 0; j < n; ++j) {
    if (seen(j)) highest = std::max(highest, dot(query, key(j), d) / root);
  }
  T total = 0;
  std::fill_n(out, d, T{0});
  for (std::int32_t j = 0; j < n; ++j) {
    if (!seen(j)) continue;
    const T weight = std::exp(dot(query, key(j), d) / root - highest);
    total += weight;
    const T* v = value(j);
    for (std::int32_t e = 0; e < d; ++e) out[e] += weight * v[e];
  }
  for (std::int32_t e = 0; e < d; ++e) out[e] /= total;
}

}  // namespace toto::reference
