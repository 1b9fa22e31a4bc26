// SPDX-License-Identifier: Apache-2.0
// Where everything of Toto 1 lies during a forecast: a table of names and sizes laid over one piece
// of memory.
#pragma once

#include <cstdint>
#include <vector>

#include "models/network.h"
#include "models/toto1/toto1.h"

namespace toto {

/// The dimensions of Capacity.
enum Toto1Dimension : std::size_t {
  kRows,          // tokens of one call
  kContextLanes,  // sequences of the prefill
  kLanes,         // sequences of any call
  kKvElements,    // of one time layer, keys alone
  kCovariates,    // elements
  kPositions,
  kDecodes,   // 1: patches are decoded; 0: all layers share the memory of one cache
  kPathRows,  // tokens of the context whose forecasts are looked at (coherent paths)
};

/// Element type: the backend's, except where said.
class Toto1Workspace final : public Workspace {
 public:
  View x;      // [rows][P] raw values, where activations are not float32
  View loc;    // [rows][P]
  View scale;  // [rows][P]
  Activations act;
  View lane_loc;  // [lanes][P]: statistics of the last tokens
  View lane_scale;
  View y;               // [lanes][P]: the patch just predicted
  View context_params;  // [context lanes][P*4*K]: kept while trajectories are drawn
  View context_loc;     // [context lanes][P]
  View context_scale;
  ScalerState* context_state = nullptr;  // [context lanes]
  ScalerState* state = nullptr;          // [lanes]
  std::vector<KvLayer> kv;               // one for each time layer
  View path_params;                      // [path rows][P*4*K]
  View path_unembedded;                  // [1][P*D], only where the head is not folded
  double* path_scores = nullptr;         // [path rows][P]
  float* rho = nullptr;                  // [context lanes][P]

  const std::uint8_t* ones = nullptr;  // [lanes][P]: the mask of generated patches; in the tables
  Rotary rotary;                       // in the tables
};

std::unique_ptr<Toto1Workspace> lay_out(const Toto1& net, const Capacity& capacity,
                                        std::byte* base);

/// The tables: rotary factors of so many positions, masks of so many sequences.
Capacity toto1_tables_of(const Capacity& capacity);
std::size_t toto1_table_bytes(const Toto1& net, const Capacity& tables_for);
void fill_toto1_tables(const Toto1& net, const Capacity& tables_for, std::byte* tables);
void place_toto1_tables(const Toto1& net, const Capacity& tables_for, std::byte* tables,
                        Toto1Workspace& workspace);

}  // namespace toto
