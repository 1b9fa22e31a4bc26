// SPDX-License-Identifier: Apache-2.0
// A tile of keys that the queries of a block of threads share, for bfloat16 outputs: products on
// tensor cores of inputs rounded to tf32, sums in float32. Four warps of 16 queries each; four
// lanes have a query between them.
//
// Operands of a tensor core step are spread over the lanes in a fixed way, but which channel or key
// is called which is free. It is chosen so that a lane reads four neighbours at a time, that
// weights are where the second product wants them, and that a lane ends with eight neighbouring
// channels of two queries (Rows).
#pragma once

#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/ops/attend_rows.cuh"

namespace toto::cuda::attend {

__device__ inline uint4 rounded(const float4& v) {
  return {to_tf32(v.x), to_tf32(v.y), to_tf32(v.z), to_tf32(v.w)};
}

template <typename Room>
class TileTf32 {
 public:
  static constexpr int D = Room::D;
  static constexpr int kLanes = 4;
  static constexpr int kKeys = D <= 64 ? 64 : 32;
  using Softmax = Rows<Room, kLanes, true>;

 private:
  static constexpr int kRows = Softmax::kRows;
  static constexpr int kEights = kKeys / 8;
  static constexpr int kKeyPitch = D + 16;  // without conflicts as they are read below
  static constexpr int kValuePitch = D + 4;

 public:
  struct Shared {
    uint4 keys[kKeys][kKeyPitch / 4];
    uint4 values[kKeys][kValuePitch / 4];
  };

  /// row(q) is where query q < count lies.
  template <typename RowAt>
  __device__ TileTf32(Shared& shared, int count, int d, const RowAt& row) : shared_(shared) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int q = static_cast<int>(threadIdx.x) / 32 * kWarpQueries + Softmax::query(i);
#pragma unroll
      for (int j = 0; j < D / 16; ++j) {
        query_[i][j] = q < count ? Room::load(row(q), channel(j), d) : float4{0, 0, 0, 0};
      }
    }
  }

  /// The channels of a query that a lane has, in so many fours.
  static constexpr int kFours = D / 16;
  static __device__ int channel(int j) { return 16 * j + static_cast<int>(threadIdx.x) % 4 * 4; }
  [[nodiscard]] __device__ const float4& query(int i, int j) const { return query_[i][j]; }

  /// Loads `count` keys and values; zero from there on.
  __device__ void load(const float* keys, const float* values, int count, int d) {
#pragma unroll 8
    for (int i = static_cast<int>(threadIdx.x); i < kKeys * (D / 4); i += 128) {
      const int j = i / (D / 4);
      const int e = i % (D / 4);
      float4 k{0, 0, 0, 0};
      float4 v{0, 0, 0, 0};
      if (j < count) {
        k = Room::load(keys + std::int64_t{j} * d, 4 * e, d);
        v = Room::load(values + std::int64_t{j} * d, 4 * e, d);
      }
      shared_.keys[j][e] = rounded(k);
      shared_.values[j][e] = rounded(v);
    }
  }

  /// Takes the tile in: query i of this lane sees the first count[i] keys.
  __device__ void take(Softmax& rows, const int (&count)[kRows], bool works, float scale) {
    if (!works) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int column = lane % 4;
    // Of a tile of eight keys: query 0 with keys 2 column and the next, then query 1 with them.
    float score[kEights][4] = {};
#pragma unroll
    for (int j = 0; j < D / 16; ++j) {
      const uint4 a = rounded(query_[0][j]);
      const uint4 b = rounded(query_[1][j]);
#pragma unroll
      for (int n = 0; n < kEights; ++n) {
        const uint4 k = shared_.keys[8 * n + lane / 4][4 * j + column];
        float(&c)[4] = score[n];
        multiply_add_tf32(c[0], c[1], c[2], c[3], a.x, b.x, a.y, b.y, k.x, k.y);
        multiply_add_tf32(c[0], c[1], c[2], c[3], a.z, b.z, a.w, b.w, k.z, k.w);
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      float highest = none();
#pragma unroll
      for (int n = 0; n < kEights; ++n) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          float& s = score[n][2 * i + k];
          s = 8 * n + 2 * column + k < count[i] ? s * scale : none();
          highest = fmaxf(highest, s);
        }
      }
      const float base = rows.raise(i, highest_of_lanes<kLanes>(highest));
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kEights; ++n) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          float& s = score[n][2 * i + k];
          s = __expf(s - base);
          sum += s;
        }
      }
      rows.total[i] += sum_of_lanes<kLanes>(sum);
    }
    take_values(rows, score, lane / 4, column);
  }

 private:
  __device__ void take_values(Softmax& rows, const float (&weight)[kEights][4], int column,
                              int pair) const {
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      const std::uint32_t a0 = to_tf32(weight[n][0]);
      const std::uint32_t a1 = to_tf32(weight[n][2]);
      const std::uint32_t a2 = to_tf32(weight[n][1]);
      const std::uint32_t a3 = to_tf32(weight[n][3]);
#pragma unroll
      for (int part = 0; part < D / 32; ++part) {
        const uint4 even = shared_.values[8 * n + 2 * pair][8 * part + column];
        const uint4 odd = shared_.values[8 * n + 2 * pair + 1][8 * part + column];
        const auto step = [&](int i, std::uint32_t b0, std::uint32_t b1) {
          const int at = 8 * part + i;
          multiply_add_tf32(rows.out[0][at], rows.out[0][at + 4], rows.out[1][at],
                            rows.out[1][at + 4], a0, a1, a2, a3, b0, b1);
        };
        step(0, even.x, odd.x);
        step(1, even.y, odd.y);
        step(2, even.z, odd.z);
        step(3, even.w, odd.w);
      }
    }
  }

  Shared& shared_;
  float4 query_[kRows][kFours];  // rounded when they are used: loads are not waited for
};

}  // namespace toto::cuda::attend
