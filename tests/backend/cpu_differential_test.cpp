// SPDX-License-Identifier: Apache-2.0
// Every operation of the CPU backend against the reference backend, on every instruction set of
// this machine and with every type of weights.
#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "support/differential_ops.h"

namespace toto {
namespace {

struct Case {
  cpu::Isa isa;
  CpuWeights weights;
  differential::NamedCheck check;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.check.name; }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const cpu::Isa isa : cpu::available_isas()) {
    for (const differential::NamedCheck& check : differential::kChecks) {
      all.push_back({isa, CpuWeights::f32, check});
    }
    for (const CpuWeights weights : {CpuWeights::bf16, CpuWeights::int8}) {
      all.push_back({isa, weights, differential::kChecks[0]});  // only products know weights
    }
  }
  return all;
}

class CpuDifferential : public testing::TestWithParam<Case> {};

TEST_P(CpuDifferential, AgreesWithReference) {
  const Case& c = GetParam();
  const auto exact = make_reference_backend_f64();
  const auto single = make_reference_backend_f32();
#ifdef NDEBUG
  constexpr std::uint64_t kSeeds = 40;
#else
  constexpr std::uint64_t kSeeds = 3;  // unoptimised kernels are slow
#endif
  for (const int threads : {1, 2, 3}) {
    const auto backend = make_cpu_backend({threads, c.weights, std::string(cpu::isa_name(c.isa))});
    const differential::Rounds rounds =
        c.weights == CpuWeights::bf16   ? differential::Rounds::to_bf16
        : c.weights == CpuWeights::int8 ? differential::Rounds::weights_to_int8
                                        : differential::Rounds::nothing;
    const differential::Subject subject{*backend, *exact, *single, rounds};
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      differential::Dice dice(1000 * seed + static_cast<std::uint64_t>(threads));
      ASSERT_EQ(c.check.check(dice, subject), "") << "seed " << seed << ", threads " << threads;
    }
  }
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(cpu::isa_name(info.param.isa)) +
         (info.param.weights == CpuWeights::bf16   ? "_weights_bf16_"
          : info.param.weights == CpuWeights::int8 ? "_weights_int8_"
                                                   : "_") +
         info.param.check.name;
}

INSTANTIATE_TEST_SUITE_P(All, CpuDifferential, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace toto
