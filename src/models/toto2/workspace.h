// SPDX-License-Identifier: Apache-2.0
// Working memory of Toto 2.0: one allocation for a capacity, and tables that all of them share.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "models/network.h"
#include "models/toto2/toto2.h"

namespace toto::toto2 {

/// Dimensions of a Capacity.
enum Dimension : std::size_t {
  kRows,       // tokens of a call, the most
  kWanted,     // of these, tokens that feed the head
  kLanes,      // variates of all requests
  kPatches,    // of context and forecast of all lanes
  kPositions,  // of one lane, the most
  kCaches,     // layers whose keys and values are kept
  kPathLanes,  // variates of all requests, where paths are coherent
};

class Toto2Workspace final : public Workspace {
 public:
  SeriesArrays arrays;  // loc, scale and bounds; values where they are not those staged
  Rotary rotary;
  std::vector<KvCache> kv;
  Toto2Activations act;
  View quantiles;  // [wanted rows][9*P]
  // Of coherent paths.
  View scores;  // float64 [wanted rows][P]
  View rho;     // float32 [lanes][P]
};

std::unique_ptr<Toto2Workspace> lay_out(const Toto2& net, const Capacity& capacity, std::byte* base,
                                        const Capacity& tables_for, std::byte* tables);

Capacity tables_of(const Capacity& capacity);
std::size_t table_bytes(const Toto2& net, const Capacity& tables_for);
void fill_tables(const Toto2& net, const Capacity& tables_for, std::byte* tables);

}  // namespace toto::toto2
