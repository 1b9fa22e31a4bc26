// SPDX-License-Identifier: Apache-2.0
// Where everything lies during a forecast: a table of names and sizes laid over one piece of
// memory.
#pragma once

#include <cstdint>
#include <vector>

#include "models/toto1/toto1.h"

namespace toto {

/// What must be held at once. Nothing in it changes from patch to patch.
struct Capacity {
  std::int64_t rows = 0;           // tokens of one call
  std::int64_t context_lanes = 0;  // lanes of the context call
  std::int64_t lanes = 0;          // lanes of any call
  std::int64_t kv_elements = 0;    // of one time layer, keys alone
  std::int64_t covariates = 0;     // elements
  std::int32_t positions = 0;
  bool one_patch = false;  // nothing is decoded: all layers share the memory of one cache

  bool operator==(const Capacity&) const = default;
  [[nodiscard]] bool holds(const Capacity& other) const;
};

/// Pointers into an arena, and into tables that outlive it. Element type: the backend's, except
/// where said.
struct Workspace {
  Capacity capacity;
  std::size_t bytes = 0;         // of the arena
  void* x = nullptr;             // [rows][P] raw values
  std::uint8_t* mask = nullptr;  // [rows][P]
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

  const std::uint8_t* ones =
      nullptr;    // [lanes][P]: the mask of generated patches; not in the arena
  Rotary rotary;  // not in the arena
};

/// Lays `capacity` out over `base` (64-byte aligned); with a null base only `bytes` means anything.
Workspace lay_out(const Toto1& net, const Capacity& capacity, void* base);

}  // namespace toto
