// SPDX-License-Identifier: Apache-2.0
// What comes before the network of Toto 2.0 (spec B5): statistics of patches, the network's inputs,
// bounds of the cap.
#include <cmath>
#include <type_traits>

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops2/calls.cuh"
#include "backend/cuda/ops2/ops2.h"
#include "backend/cuda/runtime/typed.h"
#include "backend/cuda/runtime/warp.cuh"

namespace toto::cuda {
namespace {

/// Of a lane, or twice as many where there are few lanes. Statistics take so many patches at a time
/// either way, so the number of threads changes no bit.
constexpr int kThreads = 512;
constexpr int kLaneWarps = kThreads / 32;
static_assert(kLaneWarps >= 16);  // form_at_once() clears the places of as many warps more
constexpr float kMinScale = 1e-6F;

/// Values and mask of a patch of an array.
struct PatchOf {
  const float* values;
  const std::uint8_t* mask;
  __device__ PatchOf(const DeviceArrays& a, std::int64_t patch)
      : values(a.values + patch * a.patch), mask(a.mask + patch * a.patch) {}
};

/// What the lanes of a warp up to this one have.
__device__ double sum_up_to_lane(double sum) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const double below = __shfl_up_sync(~0U, sum, static_cast<unsigned>(offset));
    if (static_cast<int>(threadIdx.x) % 32 >= offset) sum += below;
  }
  return sum;
}

/// What all threads of lower number have, and after it in `total` what all have: by a fixed tree.
/// Threads from kThreads on have nothing.
__device__ double exclusive_sum(double own, double& total) {
  __shared__ double of_warp[kLaneWarps];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const double sum = sum_up_to_lane(own);
  __syncthreads();  // the sums of the call before have been read
  if (lane == 31 && thread < kThreads) of_warp[thread / 32] = sum;
  __syncthreads();
  double before = 0;
  total = 0;
#pragma unroll
  for (int w = 0; w < kLaneWarps; ++w) {
    if (w == thread / 32) before = total;
    total += of_warp[w];
  }
  const double up = __shfl_up_sync(~0U, sum, 1);
  return before + (lane == 0 ? 0.0 : up);
}

/// One step of a patch, and of all before it in the lane: how many were observed, and their sum.
struct Running {
  double x = 0;
  bool seen = false;
  double count = 0, sum = 0;

  /// By a warp, for the steps from `i` on; `before`: all before them.
  __device__ Running(const PatchOf& patch, std::int32_t i, std::int32_t steps,
                     const Running& before) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    seen = i + lane < steps && patch.mask[i + lane] != 0;
    x = seen ? static_cast<double>(patch.values[i + lane]) : 0;
    count = before.count + __popc(__ballot_sync(~0U, seen) & (~0U >> (31 - lane)));
    sum = sum_up_to_lane(x) + before.sum;
  }
  __device__ Running(double before_count, double before_sum)
      : count(before_count), sum(before_sum) {}
  [[nodiscard]] __device__ double mean() const { return count > 0 ? sum / count : 0; }
  /// Of the last step, for all lanes.
  [[nodiscard]] __device__ Running last() const {
    return {__shfl_sync(~0U, count, 31), __shfl_sync(~0U, sum, 31)};
  }
};

/// Statistics of the patches of a lane, by a thread block, a warp for each patch and a lane for
/// each step: sums of what comes before are by trees that depend on the place alone (spec B5).
__device__ void form_statistics(const CallSlice& s, const DeviceArrays& a, std::int64_t first) {
  // Of each patch of a round: first its own, then of all up to its end.
  __shared__ double counts[kThreads], sums[kThreads], squares[kThreads];
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t warp = thread / 32;
  const auto warps = static_cast<std::int32_t>(blockDim.x) / 32;
  double all_counts = 0, all_sums = 0, all_squares = 0;  // of the rounds before
#pragma unroll 1
  for (std::int32_t p0 = 0; p0 < s.patches; p0 += kThreads) {
    const std::int32_t here = min(s.patches - p0, kThreads);
#pragma unroll 1
    for (std::int32_t p = warp; p < here; p += warps) {
      const PatchOf patch(a, first + p0 + p);
      Running at(0, 0);
#pragma unroll 1
      for (std::int32_t i = 0; i < a.patch; i += 32) at = Running(patch, i, a.patch, at).last();
      counts[p] = at.count;
      sums[p] = at.sum;
    }
    __syncthreads();
    const bool there = thread < here;
    double total = 0;
    const double before_count = all_counts + exclusive_sum(there ? counts[thread] : 0, total);
    all_counts += total;
    const double before_sum = all_sums + exclusive_sum(there ? sums[thread] : 0, total);
    all_sums += total;
    if (there) {
      counts[thread] = before_count;
      sums[thread] = before_sum;
    }
    __syncthreads();
#pragma unroll 1
    for (std::int32_t p = warp; p < here; p += warps) {
      const PatchOf patch(a, first + p0 + p);
      Running before(counts[p], sums[p]);
      double mean = before.mean();
      double own = 0;
#pragma unroll 1
      for (std::int32_t i = 0; i < a.patch; i += 32) {
        const Running at(patch, i, a.patch, before);
        const double now = at.mean();
        const double up = __shfl_up_sync(~0U, now, 1);
        const double previous = thread % 32 == 0 ? mean : up;
        own += at.seen ? (at.x - previous) * (at.x - now) : 0;
        mean = __shfl_sync(~0U, now, 31);
        before = at.last();
      }
      own = sum_of_lanes(own);
      if (thread % 32 != 0) continue;
      squares[p] = own;
      counts[p] = before.count;
      sums[p] = mean;
    }
    __syncthreads();
    const double own = there ? squares[thread] : 0;
    const double all = all_squares + exclusive_sum(own, total) + own;
    all_squares += total;
    if (there) {
      a.loc[first + p0 + thread] = static_cast<float>(sums[thread]);
      a.scale[first + p0 + thread] =
          fmaxf(static_cast<float>(sqrt(all / fmax(counts[thread] - 1, 1.0))), kMinScale);
    }
    __syncthreads();  // before the next round writes over these
  }
}

/// Patches with fewer than `least` observations up to their end take the statistics of the first
/// `least` observations of the lane; in float32, as the reference does. By one thread.
__device__ void fall_back(const CallSlice& s, const DeviceArrays& a, std::int64_t first) {
  const std::int32_t least = s.fallback;
  const PatchOf at(a, first);
  const std::int64_t steps = std::int64_t{s.patches} * a.patch;
  std::int32_t count = 0;
  float sum = 0;
  for (std::int64_t t = 0; t < steps && count < least; ++t) {
    if (at.mask[t] == 0) continue;
    ++count;
    sum += at.values[t];
  }
  const float loc = sum / static_cast<float>(max(count, 1));
  float squares = 0;
  std::int32_t again = 0;
  for (std::int64_t t = 0; t < steps && again < least; ++t) {
    if (at.mask[t] == 0) continue;
    ++again;
    squares += (at.values[t] - loc) * (at.values[t] - loc);
  }
  const float scale = fmaxf(sqrtf(squares / static_cast<float>(max(count - 1, 1))), kMinScale);
  std::int32_t seen = 0;
  for (std::int32_t p = 0; p < s.patches; ++p) {
    const std::uint8_t* const mask = at.mask + std::int64_t{p} * a.patch;
    for (std::int32_t i = 0; i < a.patch; ++i) seen += mask[i] != 0 ? 1 : 0;
    if (seen >= least) return;
    a.loc[first + p] = loc;
    a.scale[first + p] = scale;
  }
}

/// Bounds of the cap (spec B8.3), by a warp.
__device__ void form_bounds(const CallSlice& s, const DeviceArrays& a, std::int64_t first,
                            float* bounds) {
  float low = INFINITY;
  float high = -INFINITY;
  const bool capped = s.cap > 0;
  if (capped) {
    const PatchOf at(a, first);
    const std::int64_t steps = std::int64_t{s.context} * a.patch;
    for (std::int64_t t = threadIdx.x % 32; t < steps; t += 32) {
      if (at.mask[t] == 0) continue;
      low = fminf(low, at.values[t]);
      high = fmaxf(high, at.values[t]);
    }
    low = -highest_of_lanes(-low);
    high = highest_of_lanes(high);
    if (low > high) low = high = 0;
  }
  if (threadIdx.x % 32 != 0) return;
  const float reach = capped ? static_cast<float>(s.cap) * a.scale[first + s.context - 1] : 0;
  bounds[0] = capped ? low - reach : -INFINITY;
  bounds[1] = capped ? high + reach : INFINITY;
}

/// z of one token, by a warp: [pitch], zero beyond 2P.
template <typename T>
__device__ void embed(const PatchOf& patch, float loc, float scale, const DeviceArrays& a,
                      bool refed, T* z, std::int32_t pitch) {
  const std::int32_t lane = threadIdx.x % 32;
  for (std::int32_t i = lane; i < a.patch; i += 32) {
    const bool observed = patch.mask[i] != 0;
    put(z, i, observed ? asinhf((patch.values[i] - loc) / scale) : 0.0F);
    put(z, a.patch + i, observed || refed ? 0.0F : 1.0F);
  }
  for (std::int32_t i = 2 * a.patch + lane; i < pitch; i += 32) put(z, i, 0.0F);
}

/// Statistics, bounds and z of a lane of which each patch has a warp and each step a lane: with the
/// bits of the general way, but nothing is read or worked out twice. z: of token 0 of the slice.
template <typename T>
__device__ void form_at_once(const CallSlice& s, const DeviceArrays& a, std::int64_t first,
                             float* bounds, T* z, std::int32_t pitch) {
  __shared__ std::int32_t counts[32];
  __shared__ double sums[32], squares[32];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool there = warp < s.patches;
  const PatchOf patch(a, first + (there ? warp : 0));
  const bool seen = there && patch.mask[lane] != 0;
  const double x = seen ? static_cast<double>(patch.values[lane]) : 0;
  const std::uint32_t all_seen = __ballot_sync(~0U, seen);
  const double sum = sum_up_to_lane(x);
  if (lane == 31) {
    counts[warp] = __popc(all_seen);
    sums[warp] = sum;
  }
  if (lane == 0 && blockDim.x / 32 + warp < 32) {  // of patches that have no warp
    counts[blockDim.x / 32 + warp] = 0;
    sums[blockDim.x / 32 + warp] = 0;
    squares[blockDim.x / 32 + warp] = 0;
  }
  __syncthreads();
  std::int32_t counted = counts[lane];
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const std::int32_t below = __shfl_up_sync(~0U, counted, static_cast<unsigned>(offset));
    counted += lane >= offset ? below : 0;
  }
  // Of the patches before, and up to each step of this one.
  const auto of_before = [&](auto up_to) {
    const auto before = __shfl_sync(~0U, up_to, max(warp - 1, 0));
    return warp == 0 ? decltype(up_to){0} : before;
  };
  const double count_before = of_before(counted);
  const double sum_before = 0.0 + of_before(sum_up_to_lane(sums[lane]));
  const double count = count_before + __popc(all_seen & (~0U >> (31 - lane)));
  const double now = Running(count, sum + sum_before).mean();
  const double mean_before = Running(count_before, sum_before).mean();
  const double up = __shfl_up_sync(~0U, now, 1);
  const double own = sum_of_lanes(seen ? (x - (lane == 0 ? mean_before : up)) * (x - now) : 0);
  if (lane == 0) squares[warp] = own;
  __syncthreads();
  const double all = of_before(sum_up_to_lane(squares[lane])) + own;
  const auto loc = static_cast<float>(__shfl_sync(~0U, now, 31));
  const double last = __shfl_sync(~0U, count, 31);
  const float scale = fmaxf(static_cast<float>(sqrt(all / fmax(last - 1, 1.0))), kMinScale);
  if (!there) return;
  if (lane == 0) {
    a.loc[first + warp] = loc;
    a.scale[first + warp] = scale;
  }
  const std::int32_t token = warp - s.patch;
  if (token >= 0 && token < s.tokens) {
    embed(patch, loc, scale, a, token < s.refed, z + std::int64_t{token} * pitch, pitch);
  }
  if (bounds != nullptr && warp == s.context - 1) form_bounds(s, a, first, bounds);
}

/// A thread block for each lane. If anything `Arrives`, the call, values and mask lie in it.
template <typename T, bool Arrives>
__global__ void __launch_bounds__(2 * kThreads)
    form_inputs(const LiveCall* live, DeviceArrays a, bool bounds, T* z, std::int32_t pitch,
                Arrival arrival) {
  extern __shared__ uint4 arrived_here[];
  begin_kernel();
  LiveCall call;
  if constexpr (Arrives) {
    auto* const image = reinterpret_cast<std::byte*>(arrived_here);
    take_arrival(arrival, image);
    call = *in_image(live, arrival, image);
    call.slices = in_image(call.slices, arrival, image);
    call.first_lanes = in_image(call.first_lanes, arrival, image);
    a.values = in_image(a.values, arrival, image);
    a.mask = in_image(a.mask, arrival, image);
  } else {
    call = *live;
  }
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= call.lanes) return;
  const LaneOfCall lane = lane_of_call(call, index);
  const CallSlice& s = lane.s;
  const std::int64_t first = first_patch_of(s, lane.variate);
  const std::int64_t row = s.row + std::int64_t{lane.variate} * s.tokens;
  float* const own_bounds = a.bounds + std::int64_t{2} * (s.lane + lane.variate);
  const auto warps = static_cast<std::int32_t>(blockDim.x) / 32;
  if (a.patch == 32 && s.patches <= warps && s.fallback <= 0) {
    form_at_once(s, a, first, bounds ? own_bounds : nullptr, z + row * pitch, pitch);
    return;
  }
  form_statistics(s, a, first);
  __syncthreads();
  if (s.fallback > 0) {
    if (threadIdx.x == 0) fall_back(s, a, first);
    __syncthreads();
  }
  const auto warp = static_cast<std::int32_t>(threadIdx.x) / 32;
  if (bounds && warp == 0) form_bounds(s, a, first, own_bounds);
  for (std::int32_t t = warp; t < s.tokens; t += warps) {
    const std::int64_t at = first + s.patch + t;
    embed(PatchOf(a, at), a.loc[at], a.scale[at], a, t < s.refed, z + (row + t) * pitch, pitch);
  }
}

}  // namespace

void inputs2(const Call& call, const SeriesArrays& a, bool first, const View& z,
             const Arrival& arrival, const Stream& s) {
  const bool arrives = arrival.bytes > 0;
  with_type(z, [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    const unsigned threads = call.lanes <= s.processors ? 2 * kThreads : kThreads;
    launch(arrives ? form_inputs<T, true> : form_inputs<T, false>,
           dim3(static_cast<unsigned>(call.lanes)), dim3(threads), arrival.bytes, s, call.live,
           DeviceArrays(a), first, to, static_cast<std::int32_t>(z.stride()), arrival);
  });
  // form_inputs waits for calls before it lets the next begin; where it brings them itself, the
  // kernel behind it does.
  s.know_calls(arrives ? 1 : 0);
}

}  // namespace toto::cuda
