// SPDX-License-Identifier: Apache-2.0
// The statistics operations on backends whose memory is the host's, with room for each thread.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "statistics/mixture.h"

namespace toto {

class HostStatistics {
 public:
  /// Makes room for `workers` threads; keeps what is larger already. Throws std::bad_alloc.
  void reserve(int workers, std::int32_t components, std::int32_t levels, std::int32_t samples);

  // As Backend's operations of these names; T is the type of activations (float, double).
  template <typename T>
  void exact(const Backend& backend, const Batch& batch, const PatchShape& shape, const T* params,
             const T* loc, const T* scale, const Levels& levels, float* out);
  void sampled(const Backend& backend, const Batch& source, const float* kept,
               const KeptShape& room, std::int32_t first, const Levels& levels, float* out);
  template <typename T>
  static void keep(const Backend& backend, const Batch& batch, const Batch& source,
                   const PatchShape& shape, const T* y, float* kept, const KeptShape& room);
  template <typename T>
  static void keep_parameters(const Batch& batch, const Batch& source, const PatchShape& shape,
                              const T* params, const T* loc, const T* scale, float* out,
                              std::int32_t horizon);

 private:
  /// What one thread needs to work out a step.
  struct Worker {
    Mixture mixture{0};
    std::vector<double> wide;   // the parameters of a step, [4][K]
    std::vector<double> found;  // quantiles
    std::vector<float> column;  // one step of all trajectories
  };
  std::vector<Worker> workers_;
  std::int32_t components_ = 0, levels_ = 0, samples_ = 0;
};

}  // namespace toto
