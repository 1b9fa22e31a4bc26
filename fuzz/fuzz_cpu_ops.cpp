// SPDX-License-Identifier: Apache-2.0
// Any bytes as the choice of an operation, its shapes and its values: every instruction set of this
// machine must agree with the reference backend, within the bounds of
// tests/backend/differential_ops.h.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "support/differential_ops.h"

namespace {

using toto::differential::Dice;
using toto::differential::kChecks;

struct Setup {
  toto::cpu::Isa isa;
  toto::CpuWeights weights;
};

std::vector<Setup> setups() {
  std::vector<Setup> all;
  for (const toto::cpu::Isa isa : toto::cpu::available_isas()) {
    all.push_back({isa, toto::CpuWeights::f32});
    all.push_back({isa, toto::CpuWeights::bf16});
    all.push_back({isa, toto::CpuWeights::int8});
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const std::vector<Setup> all = setups();
  // The backends are made anew: they keep the weights of all products.
  Dice choice(0, {bytes, size});
  const auto& setup =
      all[static_cast<std::size_t>(choice.integer(0, static_cast<std::int32_t>(all.size()) - 1))];
  const auto& check = kChecks[choice.integer(0, static_cast<std::int32_t>(std::size(kChecks)) - 1)];
  const int threads = choice.integer(1, 3);
  const auto seed = static_cast<std::uint64_t>(choice.integer(0, 65535));
  const auto exact = toto::make_reference_backend_f64();
  const auto single = toto::make_reference_backend_f32();
  toto::cpu::CpuBackend backend(setup.isa, setup.weights, threads);
  const std::size_t used = size < 8 ? size : 8;
  Dice dice(seed, {bytes + used, size - used});
  using toto::differential::Rounds;
  const Rounds rounds = setup.weights == toto::CpuWeights::bf16   ? Rounds::to_bf16
                        : setup.weights == toto::CpuWeights::int8 ? Rounds::weights_to_int8
                                                                  : Rounds::nothing;
  const std::string wrong = check.check(dice, {backend, *exact, *single, rounds});
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s on %s with %d threads: %s\n", check.name,
                 std::string(toto::cpu::isa_name(setup.isa)).c_str(), threads, wrong.c_str());
    std::abort();
  }
  return 0;
}
