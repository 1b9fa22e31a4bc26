// SPDX-License-Identifier: Apache-2.0
// What the machine can do at best, measured with the same threads and instructions that the CPU
// backend uses, so that a share of it means something.
#pragma once

#include "backend/cpu/isa.h"
#include "core/thread_team.h"

namespace toto::cpu {

struct Ceilings {
  double f32_flops = 0;  // multiply-adds of float32, two operations each, per second
  double bf16_flops =
      0;  // of bfloat16 products, where the instruction set has them, else f32_flops
  double read_bytes = 0;        // read from memory, per second
  double usual_read_bytes = 0;  // the same in the median: what a neighbour leaves
  double jitter = 1;            // p99 / p50 of a loop of a few milliseconds that reads no memory
};

/// The best of several short measurements: others on the machine only ever slow one down. Takes
/// about `seconds`, and 256 MiB of memory for as long.
Ceilings measure_ceilings(ThreadTeam& team, Isa isa, double seconds = 0.5);

}  // namespace toto::cpu
