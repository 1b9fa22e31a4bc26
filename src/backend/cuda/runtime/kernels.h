// SPDX-License-Identifier: Apache-2.0
// The other operations of the seam on the device: one launch each. Batches are where the device
// reads them; `Shape` says how large they can be.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/recorder.h"

namespace toto::cuda {

/// Upper bounds of a batch, for the size of a launch.
struct Extent {
  const LiveBatch* live = nullptr;
  std::int32_t rows = 0;
  std::int32_t lanes = 0;
  std::int32_t groups = 0;  // of queries in time attention, of all tokens
  std::int32_t last_groups = 0;
};

/// A copy that a kernel makes, between pinned memory and the device's: whole sixteen bytes, sooner
/// than the copy engine up to kFewBytes.
inline constexpr std::size_t kFewBytes = std::size_t{64} << 10U;
void copy_few(void* to, const void* from, std::size_t bytes, const Stream& s);

void rms_norm(const float* x, const float* gain, void* y, bool bf16, Rows rows, std::int32_t dim,
              const Stream& s);
/// What a product of normed rows of kNormedWidth takes: y, the rows times the gain, and the inverse
/// roots [rows], by which what it gives is multiplied (ProductArgs::scale, norm.cuh).
void norm_later(const float* x, const float* gain, void* y, float* inverse, bool bf16, Rows rows,
                const Stream& s);
void set_labels(const Extent& batch, const float* labels, float* hidden, std::int32_t dim,
                const Stream& s);
void gather_last(const Extent& batch, const float* x, float* y, std::int32_t dim, const Stream& s);
void rotary_append(const Extent& batch, const Rotary& rotary, float* qkv, const KvLayer& kv,
                   std::int32_t heads, std::int32_t d, const Stream& s);

void time_attention(const Extent& batch, const float* qkv, const KvLayer& kv, void* out, bool bf16,
                    std::int32_t heads, std::int32_t d, bool last_only, const Stream& s);
void variate_attention(const Extent& batch, const float* qkv, void* out, bool bf16,
                       std::int32_t heads, std::int32_t d, const Stream& s);

/// What scale() copies to the device first, in which its batch and inputs lie: whole sixteen bytes,
/// at most kMostArrival for all lanes; 0: nothing.
struct Arrival {
  void* device = nullptr;
  const void* host = nullptr;  // pinned
  std::size_t bytes = 0;
};
inline constexpr std::size_t kMostArrival = std::size_t{16} << 10U;
void scale(const Extent& batch, const ScalerSpec& spec, const float* x, const std::uint8_t* mask,
           ScalerState* state, const ScalerOutputs& to, const Arrival& arrival, const Stream& s);
void repeat_state(const Extent& source, const Extent& batch, const ScalerState* from,
                  ScalerState* to, const Stream& s);

void distribution(float* raw, Rows rows, std::int32_t components, bool mixture, const Stream& s);
/// The next patch: draws, addressed by `seed` or, where the batch is recorded, by its own; or
/// means.
struct Prediction {
  PatchShape shape;
  const float* params;
  const float* loc;
  const float* scale;
  float* y;
  bool mean;
  const std::uint64_t* seed;  // in the device's memory; nullptr: `value`
  std::uint64_t value;
};
void predict(const Extent& batch, const LiveBatch* shared, const Prediction& p, const Stream& s);
void inject(const Extent& batch, const PatchShape& shape, const float* covariates, float* y,
            const Stream& s);

void keep(const Extent& batch, const LiveBatch* source, const PatchShape& shape, const float* y,
          float* kept, std::int32_t horizon, std::int32_t samples, const Stream& s);
/// Results that the kernel before publishes word by word (flag_in_data.cuh), in one of two sets.
/// That kernel lets the next one begin once all that ran before it has ended, and once `set` can be
/// read.
struct EarlyWords {
  const float* first = nullptr;  // of the first set; nullptr: there are none
  std::int64_t set_words = 0;    // from a set to the next
  const std::int32_t* set = nullptr;
};
/// `early`: what params [lanes][steps][4][K] are going to be; used where there are few steps.
void exact_statistics(const Extent& batch, const PatchShape& shape, HeadOutput head, float* params,
                      const float* loc, const float* scale, const Levels& levels, float* out,
                      const EarlyWords& early, const Stream& s);
void sample_statistics(const Extent& source, const float* kept, std::int32_t horizon,
                       std::int32_t first, std::int32_t samples, const Levels& levels, float* out,
                       const Stream& s);
inline constexpr std::int32_t kMostSamples = 16384;

}  // namespace toto::cuda
