// SPDX-License-Identifier: Apache-2.0
// All memory of a forecast: one allocation of the backend, filled from a table of names and sizes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/toto1.h"

namespace toto {

/// What a workspace must hold at once.
struct Capacity {
  std::int64_t rows = 0;           // tokens of one call
  std::int64_t context_lanes = 0;  // lanes of the context call
  std::int64_t lanes = 0;          // lanes of any call
  std::int64_t kv_elements = 0;    // of one time layer, keys alone
  std::int64_t covariates = 0;     // elements
  std::int32_t positions = 0;
  bool one_patch = false;  // nothing is decoded: all layers share the memory of one cache

  [[nodiscard]] bool holds(const Capacity& other) const;
};

class Workspace {
 public:
  /// Throws std::bad_alloc.
  Workspace(const Toto1& net, const Capacity& capacity);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  [[nodiscard]] const Capacity& capacity() const { return capacity_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] static std::size_t bytes_for(const Toto1& net, const Capacity& capacity);

  // Element type: the backend's, except where said.
  void* x = nullptr;             // [rows][P] raw values
  std::uint8_t* mask = nullptr;  // [rows][P]
  std::uint8_t* ones = nullptr;  // [lanes][P]: the mask of generated patches
  void* loc = nullptr;           // [rows][P]
  void* scale = nullptr;         // [rows][P]
  Activations act;               // act.params [lanes][P][4][K]
  void* lane_loc = nullptr;      // [lanes][P]: statistics of the last tokens
  void* lane_scale = nullptr;
  void* y = nullptr;               // [lanes][P]: the patch just predicted
  void* context_params = nullptr;  // [context lanes][P][4][K]: kept while trajectories are drawn
  void* context_loc = nullptr;     // [context lanes][P]
  void* context_scale = nullptr;
  void* covariates = nullptr;
  ScalerState* context_state = nullptr;  // [context lanes]
  ScalerState* state = nullptr;          // [lanes]
  std::vector<KvLayer> kv;               // one for each time layer
  Rotary rotary;

 private:
  const Toto1& net_;
  Capacity capacity_;
  void* arena_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace toto
