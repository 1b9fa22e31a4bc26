// SPDX-License-Identifier: Apache-2.0
#include "models/network.h"

namespace toto {
namespace {

std::size_t floats(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::size_t>(a * b * c) * sizeof(float);
}

}  // namespace

bool Capacity::holds(const Capacity& other) const {
  for (std::size_t i = 0; i < kDimensions; ++i) {
    if (of[i] < other.of[i]) return false;
  }
  return true;
}

std::int64_t bucket(std::int64_t n) {
  if (n <= 4) return n;
  std::int64_t power = 4;
  while (power * 2 < n) power *= 2;
  const std::int64_t quarter = power / 4;
  return power + (n - power + quarter - 1) / quarter * quarter;
}

ResultLayout::ResultLayout(const ProgramKey& key, std::int32_t patch) {
  const std::int32_t horizon = key.horizon(patch);
  const std::int32_t exact_steps = key.exact ? key.exact_steps : 0;
  Offsets offsets;
  exact = offsets.take(floats(key.variates, exact_steps, key.stride()));
  sampled =
      offsets.take(key.sampled ? floats(key.variates, horizon - exact_steps, key.stride()) : 0);
  parameters = offsets.take(floats(key.variates, horizon, key.parameter_floats));
  statistics_bytes = samples = offsets.used();
  samples_bytes = floats(key.variates, horizon, key.trajectories);
}

std::unique_ptr<Workspace> Program::lay_out(const Capacity& capacity, std::byte* /*base*/,
                                            const Capacity& /*tables_for*/,
                                            std::byte* /*tables*/) const {
  auto workspace = std::make_unique<Workspace>();
  workspace->capacity = capacity;
  return workspace;
}

}  // namespace toto
