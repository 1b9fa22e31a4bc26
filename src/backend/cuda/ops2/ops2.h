// SPDX-License-Identifier: Apache-2.0
// The kernels of Toto 2.0 (Ops2): one launch each, all sizes arguments. Pointers are the device's;
// calls are read there (Call::live).
#pragma once

#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/ops/arrival.h"
#include "backend/ops2.h"

namespace toto::cuda {

/// Heads may be this wide: a lane of a warp keeps a 32nd of one.
inline constexpr std::int32_t kMaxHead2 = 512;

/// SeriesArrays as kernels take them.
struct DeviceArrays {
  std::int32_t patch;
  float* values;
  std::uint8_t* mask;
  std::uint8_t* hidden;
  std::int32_t* groups;
  float *loc, *scale, *bounds;
  explicit DeviceArrays(const SeriesArrays& a)
      : patch(a.patch),
        values(typed<float>(a.values)),
        mask(a.mask),
        hidden(a.hidden),
        groups(a.groups),
        loc(typed<float>(a.loc)),
        scale(typed<float>(a.scale)),
        bounds(typed<float>(a.bounds)) {}
};

// inputs.cu
/// z in float32 or bfloat16. The call, values and mask lie in what arrives, if anything does.
void inputs2(const Call& call, const SeriesArrays& a, bool first, const View& z,
             const Arrival& arrival, const Stream& s);

// quantiles.cu
/// And statistics and parameters, where `to` wants them.
void quantiles2(const Call& call, const SeriesArrays& a, const float* raw, float* y,
                const KnotOutputs& to, const Stream& s);
void knot_results2(const Call& call, const SeriesArrays& a, const float* quantiles,
                   const KnotOutputs& to, const Stream& s);
void feed_back2(const Call& call, const SeriesArrays& a, const float* quantiles, const Stream& s);

// paths.cu
void knot_neighbours2(const Call& call, const SeriesArrays& a, const float* quantiles,
                      double* scores, float* rho, const Stream& s);
void knot_chains2(const Call& call, std::int32_t patch, const float* rho, const KnotOutputs& to,
                  const Stream& s);
/// Whether one kernel does all of these: lanes and their scores are few.
bool has_knot_paths2(const Call& call, const SeriesArrays& a, const KnotOutputs& to,
                     const Stream& s);
void knot_paths2(const Call& call, const SeriesArrays& a, const float* quantiles,
                 const KnotOutputs& to, const Stream& s);
/// The draws of knot_results() where they are coherent.
void knot_path_draws2(const Call& call, std::int32_t patch, const float* quantiles,
                      const KnotOutputs& to, const Stream& s);

// tokens.cu
void silu2(float* y, Rows rows, std::int32_t width, const Stream& s);
/// y in float32 or bfloat16.
void rms_norm2(const float* x, const View& y, Rows rows, double epsilon, const Stream& s);
/// What a product of normed rows takes (row_squares.cuh): in bfloat16 the rows themselves, and the
/// inverse roots [rows], by which what it gives is multiplied (ProductArgs::scale). The width is a
/// multiple of four. In float32 the rows are where they were.
void row_roots2(const float* x, float* inverse, Rows rows, std::int32_t dim, double epsilon,
                const Stream& s);
void raw_rows2(const float* x, const View& y, float* inverse, Rows rows, double epsilon,
               const Stream& s);
void gather2(const Call& all, const Call& wanted, const float* x, float* y, std::int32_t dim,
             const Stream& s);

// attention.cu; out as y of rms_norm2
void time_attention2(const Call& all, const Call& wanted, const SeriesArrays& a,
                     const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary, float* qkv,
                     const KvCache& kv, bool keep, const View& out, const Stream& s);
void variate_attention2(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                        const HeadNorm& norm, float* qkv, const View& out, const Stream& s);

// attention_tensor.cu; bfloat16 outputs
inline constexpr std::int32_t kTensorHead2 = 64;  // channels of its heads
/// The rows of the tokens that are wanted, which attention hands on: x [rows of all][dim] -> y
/// [rows of wanted][dim]; `dim` a multiple of four.
struct Passed {
  const float* x = nullptr;  // nullptr: nothing
  float* y = nullptr;
  std::int32_t dim = 0;
};
/// The same on tensor cores. false: nothing was done, heads are not 64 wide.
bool tensor_attention2(const Call& all, const Call& wanted, const SeriesArrays& a,
                       const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                       const float* qkv, const KvCache& kv, bool keep, const View& out,
                       const Passed& passed, const Stream& s);

}  // namespace toto::cuda
