// SPDX-License-Identifier: Apache-2.0
// Products of the kernel of all layers, whatever their type: what of each can be done before its
// inputs are there, how it is multiplied, how it ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layers.cuh"
#include "layers_attend.cuh"
#include "layers_f32.cuh"
#include "ring.cuh"

namespace toto::cuda::layers {

template <typename T>
struct Shared {
  alignas(1024) std::byte stages[kRingStages * kStageBytes];
  Ring ring;
  alignas(16) float part[T::kSums][T::kSumWords];
  AttentionMemory attention;
  Vectors vectors[kMaxLayers];
  Deal deals[kProducts + 1];  // and kAfter
  Sight sights[kSights];
  std::int32_t before[kFewRows];       // row_before() of each row
  std::int32_t last_rows;              // that go on after the last time layer
  float inverse[kProducts][kFewRows];  // of the norms before qkv and mlp_in
  float* wires;                        // of this launch

  /// What Hopper lets a block have: kMaxLayers is as many as there is room for.
  static constexpr std::size_t kMaxBytes = std::size_t{227} << 10U;
};

/// The state of the workers.
template <typename T>
struct Progress {
  typename T::Places places;  // of this thread
  Cursor<kRingStages> ring;   // the next stage of this block
  int used = 0;               // stages before that one
  Turn turn;
  int sums = 0;  // where those of the next product go
  int rows = 0;
};

/// What a thread ends a product with: two outputs of a row, in mlp_in a gate and its value. Where
/// their sums are, what is added to them and where they go is found out while the product's inputs
/// are waited for.
struct End {
  int part =
      -1;  // where the first of its sums is in Shared::part; -1: no thread of this warp has any
  int row = 0;
  float bias[2] = {};
  float* to = nullptr;   // in qkv, mlp_in and the last mlp_out; nullptr: this thread has none
  bool goes_on = false;  // in the last mlp_out: as inputs of the product after the layers
  // In out and mlp_out:
  StreamPlace stream;           // nowhere in the last mlp_out, and where this thread has none
  float2 gain = {};             // of the next norm
  const float* from = nullptr;  // what they are added to, and
  uint2 held = {};              // what was there
};

/// `rows`: there are.
template <typename T, int P>
__device__ End end_of(Shared<T>& s, const Arguments& a, int layer, const Progress<T>& progress,
                      int rows, int first, int count) {
  End end;
  constexpr int kUnits = kWorkers / (T::kItems * kFewRows);  // that there are threads for
  static_assert(outs(kMlpIn) / T::kOutputs <= kMinProcessors * kUnits);
  const int thread = thread_now();
  const int row = thread / T::kItems % kFewRows;
  const int i = thread / T::kItems / kFewRows;  // of this block's units
  if (i >= count) return end;
  const int item = thread % T::kItems;
  const int output = T::first_output(P, item);
  end.part = progress.sums * T::kSumWords +
             (i * stages_of(P) * T::kSlices * kFewRows + row) * T::kOutputs + output;
  end.row = row;
  if (row >= rows) return end;
  const int unit = first + i * static_cast<int>(gridDim.x);
  const int column = unit * T::kOutputs + output;
  const float* const biases = s.vectors[layer].bias[P] + static_cast<unsigned>(column);
  end.bias[0] = biases[0];
  end.bias[1] = biases[T::second_output(P)];
  if constexpr (P == kQkv) {
    end.to = s.wires + (wire_at(layer, kQkvWire) + static_cast<unsigned>(row * outs(P) + column));
  } else if constexpr (P == kMlpIn) {
    end.to = s.wires +
             (wire_at(layer, kGatedWire) + static_cast<unsigned>(T::gated_word(row, unit, item)));
  } else {
    const bool trims = P == kOut && layer == a.last_time;
    const int source = trims ? s.before[row] : row;
    end.from = s.wires + ((P == kOut ? stream_at(layer) : wire_at(layer, kMiddleWire)) +
                          static_cast<unsigned>(kRows + source * kDim + column));
    end.held = flag::peek_pair(end.from);
    if (P == kMlpOut && layer + 1 == a.count) {
      end.goes_on = a.after.outs != 0;
      end.to = end.goes_on ? inputs_after(s.wires, a) + Float32::word_at(row, column)
                           : a.y + row * kDim + column;
      return end;
    }
    end.stream =
        StreamPlace(s.wires, P == kOut ? wire_at(layer, kMiddleWire) : stream_at(layer + 1),
                    T::word_at(row, column), row, column);
    const Vectors& next = s.vectors[P == kOut ? layer : layer + 1];
    end.gain = *reinterpret_cast<const float2*>(next.norm[P == kOut ? 1 : 0] +
                                                static_cast<unsigned>(column));
  }
  return end;
}

/// Adds up the slices and hands on what that gives.
template <typename T, int P>
__device__ void finish(const Shared<T>& s, const End& end) {
  if (end.part < 0) return;
  const float* first = s.part[0] + end.part;
  float v[2] = {};
#pragma unroll T::kAddedAtOnce
  for (int stage = 0; stage < stages_of(P); ++stage) {
#pragma unroll
    for (int i = 0; i < T::kSlices; ++i) {
      const float2 more = T::sums(P, first + i * kFewRows * T::kOutputs);
      v[0] += more.x;
      v[1] += more.y;
    }
    first += T::kSlices * kFewRows * T::kOutputs;
  }
  const float inverse = is_normed(P) ? s.inverse[P][end.row] : 1.0F;
  v[0] = __fmaf_rn(v[0], inverse, end.bias[0]);
  v[1] = __fmaf_rn(v[1], inverse, end.bias[1]);
  if constexpr (P == kQkv) {
    if (end.to != nullptr) flag::publish_pair(end.to, {v[0], v[1]});
  } else if constexpr (P == kMlpIn) {
    T::put_gated(end.to, silu(v[0]) * v[1]);
  } else {
    const float2 held =
        end.from == nullptr ? float2{0, 0} : flag::wait_peeked_pair(end.held, end.from);
    v[0] = T::residual(held.x, v[0]);
    v[1] = T::residual(held.y, v[1]);
    // By all of the warp, whose lanes without a row have neither place.
    put_stream<T>(end.stream, {v[0], v[1]}, end.gain);
    if (end.to == nullptr) return;
    if (end.goes_on) {
      Float32::put_inputs(end.to, v[0], v[1]);
    } else {
      *reinterpret_cast<float2*>(end.to) = {v[0], v[1]};
    }
  }
}

/// A product of this block: what of it can be done before its inputs are there, and the rest.
/// Inputs come from the wires before it, outputs go to those after it.
template <typename T, int P>
struct Work {
  T product;
  End end;
  int count;  // units; 0: this block has none, and nothing is to be done

  __device__ Work(Shared<T>& s, const Arguments& a, int layer, Progress<T>& progress, int rows,
                  int first, int units)
      : count(units) {
    product.template prepare<P>(s.ring, progress.places, progress.ring, count * stages_of(P));
    end = end_of<T, P>(s, a, layer, progress, rows, first, count);
  }

  __device__ void carry_out(Shared<T>& s, const Arguments& a, int layer, Progress<T>& progress) {
    const float* const from = P == kQkv     ? stream_into(s.wires, layer) + kInputs
                              : P == kOut   ? wire_of(s.wires, layer, kAttendedWire)
                              : P == kMlpIn ? wire_of(s.wires, layer, kMiddleWire) + kInputs
                                            : wire_of(s.wires, layer, kGatedWire);
    float* const part = s.part[progress.sums];
    if constexpr (T::kReleasesLate) {
      product.template multiply<P>(from, progress.rows, part, s.inverse[P], s.ring, progress.places,
                                   progress.ring, count, [&] {
                                     if (threadIdx.x == 0) s.ring.release(progress.used);
                                   });
      progress.used += count * stages_of(P);
    } else {
      product.template take<P>(from, progress.rows);
      product.template multiply<P>(part, s.inverse[P], s.ring, s.stages, progress.ring, count,
                                   a.nothing);
    }
    progress.sums = T::kSums - 1 - progress.sums;
    sync_workers();
    finish<T, P>(s, end);
  }
};

template <typename T, int P>
__device__ void multiply(Shared<T>& s, const Arguments& a, int layer, Progress<T>& progress) {
  int first = 0;
  const int count = progress.turn.take(s.deals[P], first);
  if (count == 0) return;
  Work<T, P>(s, a, layer, progress, progress.rows, first, count).carry_out(s, a, layer, progress);
}

}  // namespace toto::cuda::layers
