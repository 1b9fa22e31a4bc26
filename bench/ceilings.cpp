// SPDX-License-Identifier: Apache-2.0
#include "ceilings.h"

#include <cstdlib>
#include <memory>
#include <string>

namespace toto::bench {
namespace {

std::unique_ptr<cpu::CpuBackend> make(CpuWeights weights) {
  const char* isa = std::getenv("TOTO_BENCH_ISA");
  const char* threads = std::getenv("TOTO_BENCH_THREADS");
  return std::make_unique<cpu::CpuBackend>(cpu::find_isa(isa == nullptr ? "" : isa), weights,
                                           threads == nullptr ? 0 : std::atoi(threads));
}

}  // namespace

cpu::CpuBackend& backend(CpuWeights weights) {
  static const std::unique_ptr<cpu::CpuBackend> f32 = make(CpuWeights::f32);
  static const std::unique_ptr<cpu::CpuBackend> bf16 = make(CpuWeights::bf16);
  return weights == CpuWeights::f32 ? *f32 : *bf16;
}

const cpu::Ceilings& ceilings() {
  static const cpu::Ceilings measured = cpu::measure_ceilings(
      backend(CpuWeights::f32).team(), backend(CpuWeights::f32).instruction_set(), 3.0);
  return measured;
}

void report(benchmark::State& state, CpuWeights weights, double flops, double bytes) {
  const cpu::Ceilings& at_best = ceilings();
  const double peak = weights == CpuWeights::f32 ? at_best.f32_flops : at_best.bf16_flops;
  const auto rate = [&](double amount) {
    return benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
  };
  state.counters["flop/s"] = rate(flops);
  state.counters["%peak"] = rate(100 * flops / peak);
  state.counters["B/s"] = rate(bytes);
  state.counters["%read"] = rate(100 * bytes / at_best.read_bytes);
}

}  // namespace toto::bench
