// SPDX-License-Identifier: Apache-2.0
// The part of the seam that Toto 2.0 needs beside the memory, matrices and products of Backend.
//
// The rules are those of backend.h: operations allocate nothing and keep no state, sizes and
// positions come from the Call, and a row's bits are a function of what that row may see.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "core/philox.h"
#include "statistics/knots.h"

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
  // What was asked of the request (knot_results).
  std::uint64_t seed = 0;
  std::uint64_t key = 0;          // hash of the series' id: where its draws are addressed
  std::int32_t horizon = 0;       // steps
  std::int32_t trajectories = 0;  // that are drawn
  std::int32_t level_first = 0;   // its quantile levels in Levels::values
  std::int32_t level_count = 0;
  KnotTails tails = KnotTails::clamped;
  // Forecasts of patches of the context before this one are held against what was observed
  // (knot_neighbours).
  std::int32_t scored = 0;
  std::int32_t request = 0;  // its index, for the host

  TOTO_HOST_DEVICE [[nodiscard]] std::int32_t rows() const { return variates * tokens; }
};

/// What a device reads of a call, in its own memory.
struct LiveCall {
  std::int32_t count = 0;  // slices
  std::int32_t rows = 0;   // of all slices
  std::int32_t lanes = 0;  // variates of all slices
  std::int32_t keys = 0;   // that a token sees, the most
  const CallSlice* slices = nullptr;
  const std::int32_t* first_lanes = nullptr;  // [count + 1]: variates of the slices before
};

/// The slices of one call.
struct Call {
  const CallSlice* slices = nullptr;  // on the host; nullptr while a graph is captured
  std::int32_t count = 0;
  std::int32_t rows = 0;   // of all slices
  std::int32_t lanes = 0;  // variates of all slices
  std::int32_t keys = 0;   // that a token sees, the most
  // In memory of a device: operations read counts and slices from there. The counts above are upper
  // bounds then, exact where the operation runs at once. nullptr for a backend on the host.
  const LiveCall* live = nullptr;

  [[nodiscard]] Rows all_rows() const {
    return live == nullptr ? Rows(rows) : Rows(rows, &live->rows, 1);
  }
  /// Whether each slice has one variate, as far as counts tell.
  [[nodiscard]] bool of_one_variate() const {
    return live == nullptr ? lanes == count : lanes == 1;
  }
};

/// What the requests of a batch consist of. A lane is one variate of one request; the patches of a
/// lane follow one another.
struct SeriesArrays {
  std::int32_t patch = 0;          // P
  View values;                     // [patches][P]
  std::uint8_t* mask = nullptr;    // [patches][P]: 1 = observed
  std::uint8_t* hidden = nullptr;  // [patches]: 1 = of the context, without an observation
  std::int32_t* groups = nullptr;  // [lanes]: only equality matters
  View loc;                        // [patches][1]
  View scale;                      // [patches][1]
  View bounds;                     // [lanes][2]: of the cap
};

/// Widths of the rows of in_proj's result: [H][qk] queries, [G][qk] keys, [G][v] values.
struct HeadShape {
  std::int32_t heads = 0;   // H
  std::int32_t groups = 0;  // G, divides H: query head h uses key/value head h / (H / G)
  std::int32_t qk = 0;
  std::int32_t v = 0;
  TOTO_HOST_DEVICE [[nodiscard]] std::int32_t row() const {
    return (heads + groups) * qk + groups * v;
  }
  TOTO_HOST_DEVICE [[nodiscard]] std::int32_t attended() const { return heads * v; }
};

/// Keys and values of one time layer, for each token: keys [G][slots][qk] and values [G][slots][v]
/// of one variate lie together.
struct KvCache {
  View keys;    // [..][qk]
  View values;  // [..][v]
};

/// RMS norm of each query and key head (spec B7.1), where the model has one.
struct HeadNorm {
  ConstView query;  // [1][qk] gains, in which per-dim scale and 1/qk are folded; or nothing: there
  ConstView key;    // [1][qk] is no norm
  double epsilon = 0;
};

/// The quantiles of a head.
inline constexpr std::int32_t kQuantiles = 9;

/// The patch whose location and scale the forecast of patch p is in units of: its own, which in the
/// context has seen what it forecasts, so there it is the one before.
TOTO_HOST_DEVICE inline std::int32_t units_of(const CallSlice& s, std::int32_t p) {
  return p < s.context ? p - 1 : p;
}

/// What is formed of the quantiles of every step, for all lanes of a batch. What is nullptr is not
/// wanted.
struct KnotOutputs {
  float* exact = nullptr;       // [lanes][steps][2 + levels.max]: mean, deviation, quantiles
  float* parameters = nullptr;  // [lanes][steps][2]: location and scale
  float* kept = nullptr;        // [lanes][steps][trajectories]: draws, or the mean once
  bool coherent = false;        // kept has the draws as normal scores (knot_chains)
  std::int64_t steps = 0;
  std::int32_t trajectories = 0;
  bool mean = false;
  Levels levels;
};

/// Some whole slices of a call, whose rows are numbered from 0 here.
struct CallPart {
  Call all;
  Call wanted;
  std::int64_t first = 0;         // the row of the call that is row 0 of `all`
  std::int64_t first_wanted = 0;  // likewise of `wanted`
  std::int64_t own = 0;  // rows of scratch from here on are for this part alone, as many as it has
};

/// Room [rows][dim] for what a norm leaves to the product after it. `ahead`: the product that left
/// the rows has left it there already, or is to (Ops2::norms_ahead).
struct NormRoom {
  View room;
  bool ahead = false;
};

class Ops2 {
 public:
  virtual ~Ops2() = default;

  // --- parts of a call ---

  /// Calls work(context, part) for parts that together are the call, from several threads, or once
  /// for the whole. `wanted` has the slices of `all`. `work` runs operations of the network on its
  /// part: a host computes what follows on what while its rows are in the cache of a core.
  using PartWork = void (*)(const void* context, const CallPart& part);
  virtual void for_each_part(const Call& all, const Call& wanted, PartWork work,
                             const void* context) const {
    work(context, {all, wanted});
  }

  // --- a series' arrays (spec B5, B8.3) ---

  /// Whether the weights of the input MLP and of the head, for rows of `width`, are to be kept in
  /// float32 whatever the type of weights is.
  [[nodiscard]] virtual bool exact_ends(std::int32_t /*width*/) const { return true; }
  /// loc and scale of every patch, from what the mask lets see now; in the `first` call of a
  /// forecast the bounds of the cap, from the observed context (infinite where there is no cap);
  /// and z [rows][2P]: asinh of the scaled values (0 where missing), then the flags of missing
  /// ones. z is of the type that the product after it takes.
  virtual void inputs(const Call& call, const SeriesArrays& a, bool first, const View& z) const = 0;
  /// Backend::copy_in() of the first `bytes`, then inputs() of float32 values, a mask and a `call`
  /// that lie there. false: nothing was done, take the two.
  [[nodiscard]] virtual bool copy_in_and_inputs(const Staging& /*staging*/, std::size_t /*bytes*/,
                                                const Call& /*call*/, const SeriesArrays& /*a*/,
                                                bool /*first*/, const View& /*z*/) const {
    return false;
  }
  /// y [rows][9*P] from raw [rows][9*P]: sinh, scale, infinities replaced, cap, sorted. A token's
  /// row predicts the patch after it, which may be of the context (units_of).
  virtual void quantiles(const Call& call, const SeriesArrays& a, const ConstView& raw,
                         const View& y) const = 0;
  /// quantiles(), and what knot_results() makes of them but for draws. false: nothing was done.
  [[nodiscard]] virtual bool quantiles_and_statistics(const Call& /*call*/,
                                                      const SeriesArrays& /*a*/,
                                                      const ConstView& /*raw*/, const View& /*y*/,
                                                      const KnotOutputs& /*to*/) const {
    return false;
  }
  /// Statistics, parameters and draws of the steps that a call predicts (statistics/knots.h).
  /// Draws are addressed by (seed, key, variate, trajectory, step). `quantiles` as above; tokens
  /// that predict a patch of the context are passed over.
  virtual void knot_results(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                            const KnotOutputs& to) const = 0;
  /// Writes the medians of targets into the predicted patches after the context, which then are
  /// observed.
  virtual void feed_back(const Call& call, const ConstView& quantiles,
                         const SeriesArrays& a) const = 0;

  // --- coherent paths (docs/statistics.md) ---

  /// Whether there are those below, the last of which is optional.
  [[nodiscard]] virtual bool has_paths() const { return false; }
  /// How the steps of a lane go together, as the forecasts of the context show that the first call
  /// of a forecast makes: rho [lanes][P], of which rho[s] is for steps s and s + 1 of the first
  /// patch and the last for all neighbours after it. `quantiles` as above; scores [rows][P] is
  /// scratch.
  virtual void knot_neighbours(const Call& /*call*/, const SeriesArrays& /*a*/,
                               const ConstView& /*quantiles*/, double* /*scores*/,
                               float* /*rho*/) const {}
  /// The normal scores of all draws of the slices, to.kept: each lane and trajectory is a Gaussian
  /// Markov chain over the steps of the horizon, of normals at the addresses of knot_results, which
  /// turns scores into draws.
  virtual void knot_chains(const Call& /*call*/, const SeriesArrays& /*a*/, const float* /*rho*/,
                           const KnotOutputs& /*to*/) const {}
  /// Both, and the draws that knot_results() makes of them, where the call predicts all steps of
  /// its slices. false: nothing was done, take the others.
  [[nodiscard]] virtual bool knot_paths(const Call& /*call*/, const SeriesArrays& /*a*/,
                                        const ConstView& /*quantiles*/,
                                        const KnotOutputs& /*to*/) const {
    return false;
  }

  // --- network (spec B3, B7) ---

  /// y[rows][out] = silu(Wx + b), of the type of x, for all rows of x.
  virtual void linear_silu(const Matrix& w, const ConstView& x, const View& y) const = 0;
  /// Whether linear_sum() and linear_ahead() of so many rows leave what a norm of them takes
  /// (NormRoom), and norms take it. `inputs`: of a product, at most, both of a sum together. Then
  /// linear_sum() does not return false. For backends to which a call is one part.
  [[nodiscard]] virtual bool norms_ahead(Rows /*rows*/, std::int32_t /*width*/,
                                         std::int32_t /*inputs*/) const {
    return false;
  }
  /// y[rows][out] = (Wx + b) + (Vz + c): linear() of both, the second added to the first, in one
  /// operation; and what the `next` norm takes, if `ahead`. false: nothing was done, take the two.
  [[nodiscard]] virtual bool linear_sum(const Matrix& /*w*/, const ConstView& /*x*/,
                                        const Matrix& /*v*/, const ConstView& /*z*/,
                                        const View& /*y*/, const NormRoom& /*next*/) const {
    return false;
  }
  /// y += Wx + b, as linear() does, and what a norm of y takes to `room`. Only where norms_ahead().
  virtual void linear_ahead(const Matrix& /*w*/, const ConstView& /*x*/, const View& /*y*/,
                            const View& /*room*/) const {}
  /// y = x / sqrt(mean(x^2) + epsilon); x, y [rows][dim]. y is of the type that the product after
  /// it takes.
  virtual void rms_norm(const ConstView& x, const View& y, double epsilon) const = 0;
  /// y = linear_sum() of `second` and `skip` for what rms_norm() leaves of x and what
  /// linear_silu() of `first` makes of that. inner [rows][first.out].
  /// false: nothing was done.
  [[nodiscard]] virtual bool norm_residual_mlp(const ConstView& /*x*/, double /*epsilon*/,
                                               const NormRoom& /*room*/, const Matrix& /*first*/,
                                               const Matrix& /*second*/, const Matrix& /*skip*/,
                                               const View& /*inner*/, const View& /*y*/) const {
    return false;
  }
  /// linear() of what rms_norm() leaves, in one operation. false: nothing was done, take the two.
  [[nodiscard]] virtual bool norm_linear(const ConstView& /*x*/, double /*epsilon*/,
                                         const NormRoom& /*room*/, const Matrix& /*w*/,
                                         const View& /*y*/, Epilogue /*epilogue*/) const {
    return false;
  }
  /// What variate_attention() leaves behind norm_linear() for a call of_one_variate(), whose tokens
  /// see themselves alone: values. out [rows][H*v], of the type that the product after it takes.
  /// false: nothing was done, take the two.
  [[nodiscard]] virtual bool norm_values(const ConstView& /*x*/, double /*epsilon*/,
                                         const NormRoom& /*room*/, const Matrix& /*w*/,
                                         const HeadShape& /*shape*/, const View& /*out*/) const {
    return false;
  }
  /// Whether this backend has the two below. They take the place of linear() before attention, and
  /// leave out queries and keys that nobody reads: in their place there may be anything afterwards.
  [[nodiscard]] virtual bool skips_unread() const { return false; }
  /// Values alone, for variate attention where no slice has a second variate: x [rows][w.in],
  /// y [rows][w.out].
  virtual void linear_values(const Matrix& /*w*/, const HeadShape& /*shape*/,
                             const ConstView& /*x*/, const View& /*y*/) const {}
  /// Keys and values of the tokens of `all`, queries of those of `wanted`, for time attention:
  /// x [rows of all][w.in], y [rows of all][w.out]; scratch [rows of wanted][w.in + H*qk].
  virtual void linear_wanted(const Call& /*all*/, const Call& /*wanted*/, const Matrix& /*w*/,
                             const HeadShape& /*shape*/, const ConstView& /*x*/,
                             const View& /*scratch*/, const View& /*y*/) const {}
  /// Norms queries and keys, rotates the first half of each head (Rotary tables: [positions][qk/4],
  /// no factor without xPos), and attends causally from the tokens of `wanted` over the keys of
  /// calls before and of this one; logits are q.k. The slices of `wanted` are those of `all` with
  /// fewer, later tokens, or the same. qkv: rows of `all`, scratch afterwards; out [rows of
  /// wanted][H*v], of the type that the product after it takes. Keys and values of the call
  /// lie in `kv` afterwards where later calls read them: if `keep`.
  virtual void time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                              const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                              const View& qkv, const KvCache& kv, bool keep,
                              const View& out) const = 0;
  /// time_attention(), then gather() of x [rows of all][dim] to y. false: nothing was done.
  [[nodiscard]] virtual bool time_attention_and_gather(
      const Call& /*all*/, const Call& /*wanted*/, const SeriesArrays& /*a*/,
      const HeadShape& /*shape*/, const HeadNorm& /*norm*/, const Rotary& /*rotary*/,
      const View& /*qkv*/, const KvCache& /*kv*/, bool /*keep*/, const View& /*out*/,
      const ConstView& /*x*/, const View& /*y*/) const {
    return false;
  }
  /// Norms queries and keys, and attends over the variates of each token with equal ids. qkv and
  /// out as above.
  virtual void variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                                 const HeadNorm& norm, const View& qkv, const View& out) const = 0;
  /// The rows of the tokens of `wanted`: x [rows of all][dim] -> y [rows of wanted][dim].
  virtual void gather(const Call& all, const Call& wanted, const ConstView& x,
                      const View& y) const = 0;
};

/// A lane of `a`, counted over all requests: variate `variate` of the slice.
TOTO_HOST_DEVICE inline std::int64_t first_patch_of(const CallSlice& s, std::int32_t variate) {
  return s.array + std::int64_t{variate} * s.patches;
}

/// The group id of token `token` of variate `variate`. Hidden patches have one of their own, which
/// no caller can choose.
template <typename Arrays>  // SeriesArrays, or what a device makes of them
TOTO_HOST_DEVICE std::int64_t id_of(const CallSlice& s, const Arrays& a, std::int32_t variate,
                                    std::int32_t token) {
  const std::int32_t patch = s.ids + token;
  const bool hidden = patch < s.context && a.hidden[first_patch_of(s, variate) + patch] != 0;
  return hidden ? INT64_MIN : a.groups[s.lane + variate];
}

}  // namespace toto
