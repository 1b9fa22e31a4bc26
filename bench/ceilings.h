// SPDX-License-Identifier: Apache-2.0
// The backend under test and what the machine can do at best, for all benchmarks of a program.
#pragma once

#include <benchmark/benchmark.h>

#include "backend/cpu/ceilings.h"
#include "backend/cpu/cpu_backend.h"

namespace toto::bench {

/// One backend for each type of weights, on all cores. TOTO_BENCH_THREADS and TOTO_BENCH_ISA narrow
/// it.
cpu::CpuBackend& backend(CpuWeights weights);

/// Measured once, before the first benchmark that asks.
const cpu::Ceilings& ceilings();

/// Adds the counters: operations and bytes per second, and the share of the ceilings.
void report(benchmark::State& state, CpuWeights weights, double flops, double bytes);

}  // namespace toto::bench
