// SPDX-License-Identifier: Apache-2.0
// What a backend offers that can record a whole forecast once and play it again and again: on a
// GPU, one graph launch for each forecast.
//
// The operations of the seam that are called between begin() and end() are recorded, not carried
// out. What changes from forecast to forecast (counts, blocks, ids, seeds) they read from
// LiveBatches that lie in a Mirror: memory of the host that the recording copies to the device
// first. So nothing in a recording ever has to be patched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backend/backend.h"

namespace toto {

/// Memory of the host (pinned) and as much of the device.
struct Mirror {
  std::byte* host = nullptr;
  std::byte* device = nullptr;
  std::size_t bytes = 0;
};

/// What statistics are formed of: levels ascending.
struct Levels {
  const double* values = nullptr;       // [most], in the device's memory
  const std::int32_t* count = nullptr;  // how many of them, in the device's memory
  std::int32_t most = 0;
};

/// Results that operations write to the host's side of a mirror: of `cells` the first `used` floats
/// each, `stride` apart.
struct Awaited {
  float* first = nullptr;
  std::size_t cells = 0, stride = 0, used = 0;
};

class Recorder {
 public:
  virtual ~Recorder() = default;

  /// Zeroed. Throws std::bad_alloc.
  [[nodiscard]] virtual Mirror allocate_mirror(std::size_t bytes) = 0;
  virtual void release_mirror(const Mirror& mirror) noexcept = 0;

  /// Bytes of a batch with so many blocks and ids in a mirror.
  [[nodiscard]] virtual std::size_t live_bytes(std::int64_t blocks, std::int64_t ids) const = 0;
  /// Writes a batch of this forecast at `at` of the mirror's host side; `blocks` and `ids` as for
  /// live_bytes.
  virtual void write_live(const Batch& batch, std::uint64_t seed, const Mirror& mirror,
                          std::size_t at, std::int64_t blocks, std::int64_t ids) const = 0;

  /// A recording. Destroyed before the backend.
  class Recording {
   public:
    Recording() = default;
    virtual ~Recording() = default;
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    [[nodiscard]] virtual std::size_t launches() const = 0;  // kernels in it
  };
  virtual void begin() = 0;
  [[nodiscard]] virtual std::unique_ptr<Recording> end() = 0;
  /// Gives up a recording that has begun.
  virtual void abandon() noexcept = 0;
  /// Plays it and waits for its end, or if it is not to be `timed` for what is `awaited`, which is
  /// there sooner: then that is all it writes to the host. Throws Error device_failed (70).
  /// Returns, if `timed`, the seconds between its first and its last operation, by the device's
  /// clock.
  virtual double play(const Recording& recording, bool timed, std::span<const Awaited> awaited) = 0;

  // --- operations that only recordings have ---

  /// Copies the first `bytes` to the device, and from it.
  virtual void copy_in(const Mirror& mirror, std::size_t bytes) = 0;
  /// copy_in(), then Backend::scale() of what lies there.
  virtual void copy_in_and_scale(const Mirror& mirror, std::size_t bytes, const Batch& batch,
                                 const ScalerSpec& spec, const void* x, const std::uint8_t* mask,
                                 ScalerState* state, const ScalerOutputs& to) = 0;
  /// Where operations are to write what copy_out() brings to the host, and nobody reads before: the
  /// device's side, or for a few bytes the host's itself.
  [[nodiscard]] virtual std::byte* results(const Mirror& mirror, std::size_t bytes) const = 0;
  virtual void copy_out(const Mirror& mirror, std::size_t bytes) = 0;
  /// y [lanes][P], a patch just predicted, into the trajectories of the request:
  /// kept[variate of all series][horizon][samples], from Block::first_step and first_sample on.
  /// `source` has one trajectory for each block: its lanes are the variates.
  virtual void keep(const Batch& batch, const Batch& source, const PatchShape& shape, const void* y,
                    float* kept, std::int32_t horizon, std::int32_t samples) = 0;
  /// Exact statistics of the mixtures params [lanes][shape.steps][4][K], which become parameters if
  /// `head` says that they are not yet, with the bits of Backend::distribution():
  /// out [lanes][shape.steps][2 + levels.most]: mean, standard deviation, quantiles, which ascend
  /// but for rounding.
  virtual void exact_statistics(const Batch& batch, const PatchShape& shape, HeadOutput head,
                                void* params, const void* loc, const void* scale,
                                const Levels& levels, float* out) = 0;
  /// The same from kept trajectories, steps `first` .. horizon - 1 of each lane of `source`:
  /// out [lanes][horizon - first][2 + levels.most].
  virtual void sample_statistics(const Batch& source, const float* kept, std::int32_t horizon,
                                 std::int32_t first, std::int32_t samples, const Levels& levels,
                                 float* out) = 0;
  /// The most samples that sample_statistics() can put in order.
  [[nodiscard]] virtual std::int32_t most_samples() const = 0;
};

}  // namespace toto
