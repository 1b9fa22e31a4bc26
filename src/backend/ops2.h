// SPDX-License-Identifier: Apache-2.0
// The part of the seam that Toto 2.0 needs beside the memory, matrices and products of Backend.
//
// The rules are those of backend.h: operations allocate nothing and keep no state, sizes and
// positions come from the Call, and a row's bits are a function of what that row may see.
#pragma once

#include <cstdint>
#include <limits>

#include "backend/backend.h"

namespace toto {

/// One request of a ragged batch in one call of the network. Its rows (tokens) lie
/// [variate][token], targets before covariates.
struct CallSlice {
  std::int32_t row = 0;       // first row
  std::int32_t variates = 1;  // A
  std::int32_t targets = 1;   // V: the first V of them are forecast
  std::int32_t tokens = 0;    // N of each variate
  std::int32_t patch = 0;     // number of the first token's patch in the request's arrays
  std::int32_t ids = 0;       // the patch whose group id the first token has (spec B7.3)
  std::int32_t centre = 0;    // of xPos in this call
  bool time_mask = false;     // tokens see only patches that are as hidden as they are
  // Known values are flagged as missing where their mask says so, but for the first `refed` tokens,
  // which are fed back (spec B9).
  std::int32_t refed = 0;
  // The request's arrays (SeriesArrays).
  std::int32_t lane = 0;     // of variate 0
  std::int32_t patches = 0;  // C + NP of each variate
  std::int32_t context = 0;  // C
  std::int64_t array = 0;    // first patch of variate 0
  // Its keys and values (KvCache): patch p of variate a is token slot + a*slots + p - first_slot.
  std::int64_t slot = 0;
  std::int32_t slots = 0;
  std::int32_t first_slot = 0;
  // Options.
  std::int32_t fallback =
      0;           // observations that statistics need; fewer: those of the first so many
  double cap = 0;  // scales beyond the context that quantiles may reach; 0: any

  [[nodiscard]] std::int32_t rows() const { return variates * tokens; }
};

/// The slices of one call, in memory that the backend can read.
struct Call {
  const CallSlice* slices = nullptr;
  std::int32_t count = 0;
  std::int32_t rows = 0;  // of all slices
};

/// What the requests of a batch consist of. A lane is one variate of one request; the patches of a
/// lane follow one another.
struct SeriesArrays {
  std::int32_t patch = 0;          // P
  void* values = nullptr;          // [patches][P]
  std::uint8_t* mask = nullptr;    // [patches][P]: 1 = observed
  std::uint8_t* hidden = nullptr;  // [patches]: 1 = of the context, without an observation
  std::int32_t* groups = nullptr;  // [lanes]: only equality matters
  void* loc = nullptr;             // [patches]
  void* scale = nullptr;           // [patches]
  void* bounds = nullptr;          // [lanes][2]: of the cap
};

/// Widths of the rows of in_proj's result: [H][qk] queries, [G][qk] keys, [G][v] values.
struct HeadShape {
  std::int32_t heads = 0;   // H
  std::int32_t groups = 0;  // G, divides H: query head h uses key/value head h / (H / G)
  std::int32_t qk = 0;
  std::int32_t v = 0;
  [[nodiscard]] std::int32_t row() const { return (heads + groups) * qk + groups * v; }
  [[nodiscard]] std::int32_t attended() const { return heads * v; }
};

/// Keys and values of one time layer, for each token: keys [G][slots][qk] and values [G][slots][v]
/// of one variate lie together.
struct KvCache {
  void* keys = nullptr;
  void* values = nullptr;
};

/// RMS norm of each query and key head (spec B7.1), where the model has one.
struct HeadNorm {
  const void* query = nullptr;  // [qk] gains, in which per-dim scale and 1/qk are folded; nullptr:
  const void* key = nullptr;    // there is no norm
  double epsilon = 0;
};

/// The quantiles of a head.
inline constexpr std::int32_t kQuantiles = 9;

class Ops2 {
 public:
  virtual ~Ops2() = default;

  // --- a series' arrays (spec B5, B8.3) ---

  /// loc and scale of every patch, from what the mask lets see now.
  virtual void statistics(const Call& call, const SeriesArrays& a) const = 0;
  /// bounds of the cap, from the observed context; infinite where there is no cap.
  virtual void cap_bounds(const Call& call, const SeriesArrays& a) const = 0;
  /// z [rows][2P]: asinh of the scaled values (0 where missing), then the flags of missing ones.
  virtual void embed_inputs(const Call& call, const SeriesArrays& a, void* z) const = 0;
  /// y [rows][9][P] from raw [rows][9][P]: sinh, scale, infinities replaced, cap, sorted. A token's
  /// row predicts the patch after it.
  virtual void quantiles(const Call& call, const SeriesArrays& a, const void* raw,
                         void* y) const = 0;
  /// Writes the medians of targets into the predicted patches, which then are observed.
  virtual void feed_back(const Call& call, const void* quantiles, const SeriesArrays& a) const = 0;

  // --- network (spec B3, B7) ---

  /// y[rows][out] = silu(Wx + b).
  virtual void linear_silu(const Matrix& w, const void* x, void* y, Rows rows) const = 0;
  /// y = x / sqrt(mean(x^2) + epsilon); x, y [rows][dim].
  virtual void rms_norm(const void* x, void* y, Rows rows, std::int32_t dim,
                        double epsilon) const = 0;
  /// Norms queries and keys, rotates the first half of each head, and writes keys and values to the
  /// cache: queries in place, qkv [rows][HeadShape::row()]. Rotary tables: [positions][qk/4], no
  /// factor without xPos.
  virtual void rotary_append(const Call& call, const HeadShape& shape, const HeadNorm& norm,
                             const Rotary& rotary, void* qkv, const KvCache& kv) const = 0;
  /// Causal attention of the tokens of `wanted` over the cache; logits are q.k. The slices of
  /// `wanted` are those of `all` with fewer, later tokens, or the same. qkv: rows of `all`; out
  /// [rows of wanted][H*v].
  virtual void time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                              const HeadShape& shape, const void* qkv, const KvCache& kv,
                              void* out) const = 0;
  /// Norms queries and keys in place, as rotary_append() does.
  virtual void norm_heads(Rows rows, const HeadShape& shape, const HeadNorm& norm,
                          void* qkv) const = 0;
  /// Attention over the variates of each token with equal ids. out [rows][H*v].
  virtual void variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                                 const void* qkv, void* out) const = 0;
  /// The rows of the tokens of `wanted`: x [rows of all][dim] -> y [rows of wanted][dim].
  virtual void gather(const Call& all, const Call& wanted, const void* x, void* y,
                      std::int32_t dim) const = 0;
};

/// The group id of token `token` of variate `variate`. Hidden patches have one of their own, which
/// no caller can choose.
inline std::int64_t id_of(const CallSlice& s, const SeriesArrays& a, std::int32_t variate,
                          std::int32_t token) {
  const std::int32_t patch = s.ids + token;
  const bool hidden =
      patch < s.context && a.hidden[s.array + std::int64_t{variate} * s.patches + patch] != 0;
  return hidden ? std::numeric_limits<std::int64_t>::min() : a.groups[s.lane + variate];
}

}  // namespace toto
