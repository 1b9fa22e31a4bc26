// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/ceilings.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <vector>

#include "backend/cpu/ceiling_kernels.h"
#include "backend/cpu/pages.h"

namespace toto::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Results go here, so that no compiler can leave the loops out.
std::atomic<float> sink{0};

struct Times {
  double shortest, median;
};

/// Repeats work(thread) on the whole team for about `seconds`; times of one repetition.
template <typename Work>
Times repeat(ThreadTeam& team, double seconds, const Work& work) {
  const auto begin = Clock::now();
  std::vector<double> times;
  do {
    const auto start = Clock::now();
    team.run(team.size(), work);
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds);
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

double peak(ThreadTeam& team, const PeakLoop& loop, double seconds) {
  constexpr std::size_t kSteps = 50000;  // about 0.2 ms: longer than a fork, shorter than a slice
  const Times time = repeat(team, seconds, [&](int) noexcept {
    sink.store(loop.run(kSteps), std::memory_order_relaxed);
  });
  return team.size() * loop.flops * kSteps / time.shortest;
}

/// How unsteady the machine is by itself: other work on it, time stolen by a hypervisor.
double measure_jitter(ThreadTeam& team, const PeakLoop& loop) {
  constexpr std::size_t kSteps = 1'250'000;  // about 5 ms
  std::array<double, 200> times{};
  for (double& time : times) {
    const auto start = Clock::now();
    team.run(team.size(),
             [&](int) noexcept { sink.store(loop.run(kSteps), std::memory_order_relaxed); });
    time = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::sort(times.begin(), times.end());
  return times[times.size() * 99 / 100] / times[times.size() / 2];
}

}  // namespace

Ceilings measure_ceilings(ThreadTeam& team, Isa isa, double seconds) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;  // far more than caches hold
  constexpr std::size_t kPiece = 1024;
  const CeilingKernels kernels = ceiling_kernels(isa);
  Ceilings c;
  c.f32_flops = peak(team, kernels.f32, 0.25 * seconds);
  c.bf16_flops = peak(team, kernels.bf16, 0.25 * seconds);
  const Pages memory = allocate_pages(kBytes);
  auto* floats = reinterpret_cast<float*>(memory.get());
  const auto part = [&](int thread) {
    return share(kBytes / sizeof(float) / kPiece, team.size(), thread);
  };
  team.run(team.size(), [&](int thread) noexcept {  // pages come into being where they are read
    std::fill(floats + part(thread).begin * kPiece, floats + part(thread).end * kPiece, 1.0F);
  });
  const Times time = repeat(team, 0.5 * seconds, [&](int thread) noexcept {
    const Range mine = part(thread);
    sink.store(
        kernels.read(floats + mine.begin * kPiece, static_cast<std::size_t>(mine.size()) * kPiece),
        std::memory_order_relaxed);
  });
  c.read_bytes = static_cast<double>(kBytes) / time.shortest;
  c.usual_read_bytes = static_cast<double>(kBytes) / time.median;
  c.jitter = measure_jitter(team, kernels.f32);
  return c;
}

}  // namespace toto::cpu
