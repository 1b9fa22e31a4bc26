// SPDX-License-Identifier: Apache-2.0
// Whole forecasts that a backend has recorded (backend/recorder.h): one for each plan and each kind
// of request that was made of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/recorder.h"
#include "engine/workspace.h"

namespace toto {

/// What a recording is good for. Sizes are upper bounds, rounded up to buckets.
struct RecordingKey {
  Capacity plan;
  std::uint64_t epoch = 0;  // of the memory it points into
  std::int32_t rows = 0;    // of the context call
  std::int32_t series = 0;
  std::int32_t variates = 0;  // of all series
  std::int32_t lanes = 0;     // of a further call
  std::int32_t patches = 0;
  std::int32_t last_steps = 0;    // of the last patch
  std::int32_t passes = 0;        // over the trajectories; 0: none are wanted
  std::int32_t trajectories = 0;  // of the request
  std::int32_t levels = 0;
  bool mean = false;
  bool exact = false;    // statistics of the first patch's mixtures
  bool sampled = false;  // statistics of trajectories
  bool samples = false;  // the trajectories themselves
  bool operator==(const RecordingKey&) const = default;

  [[nodiscard]] std::int32_t horizon(std::int32_t patch) const {
    return (patches - 1) * patch + last_steps;
  }
  [[nodiscard]] std::int32_t first_steps(std::int32_t patch) const {  // of the first patch
    return patches > 1 ? patch : last_steps;
  }
  /// How many of them have statistics of their mixtures.
  [[nodiscard]] std::int32_t exact_steps(std::int32_t patch) const {
    return exact ? first_steps(patch) : 0;
  }
  /// Numbers for each step: mean, deviation and quantiles.
  [[nodiscard]] std::int32_t stride() const { return 2 + levels; }
};

/// Where inputs lie in the mirror that is copied to the device, in bytes.
struct InputLayout {
  std::size_t x = 0, mask = 0, covariates = 0, levels = 0, level_count = 0;
  std::size_t context = 0, last = 0, further = 0;  // live batches
  std::size_t further_bytes = 0;                   // of one of them
  std::size_t bytes = 0;
};

struct Recorded {
  RecordingKey key;
  InputLayout at;
  Mirror in, out;
  std::size_t sampled_at = 0, samples_at = 0;  // in `out`; exact statistics come first
  void* kept = nullptr;                        // trajectories, where nobody wants to see them
  bool on_host = false;                        // operations write results to the host's side
  std::unique_ptr<Recorder::Recording> recording;
  std::uint64_t used = 0;

  [[nodiscard]] float* floats(std::size_t at_bytes) const {
    return reinterpret_cast<float*>(in.host + at_bytes);
  }
};

/// Owns recordings and their memory, `most` of them, at least 1. The least recently used goes.
class Recordings {
 public:
  Recordings(Backend& backend, std::size_t most) : backend_(backend), most_(most) {}
  ~Recordings();
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;

  /// nullptr where there is none. Those that point into memory of an earlier epoch are forgotten.
  [[nodiscard]] Recorded* find(const RecordingKey& key);
  /// Whether one more pushes another one out.
  [[nodiscard]] bool full() const { return all_.size() >= most_; }
  /// Takes one with its memory allocated.
  Recorded& add(std::unique_ptr<Recorded> recorded);
  /// Frees all of them; false where there was none.
  bool forget();
  /// Frees what `recorded` holds.
  void release(Recorded& recorded) const;

 private:
  Backend& backend_;
  std::size_t most_;
  std::vector<std::unique_ptr<Recorded>> all_;
  std::uint64_t clock_ = 0;
};

}  // namespace toto
