// SPDX-License-Identifier: Apache-2.0
#include "core/cpu_info.h"

#include <algorithm>
#include <thread>

#include "core/status_file.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace toto {
namespace {

CpuFeatures detect() {
  CpuFeatures f;
#if defined(__x86_64__)
  // The compiler's run-time library also asks the operating system whether it saves the registers.
  __builtin_cpu_init();
  f.sse4 = __builtin_cpu_supports("sse4.2") != 0;
  f.avx2 = f.sse4 && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
           __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
  f.avx512 = f.avx2 && __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0;
  f.avx512_bf16 = f.avx512 && __builtin_cpu_supports("avx512bf16") != 0;
#elif defined(__aarch64__)
  f.neon = true;
#endif
  return f;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

int available_cores() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
#endif
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

std::string processor_name() {
  const std::string name = status_field("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

}  // namespace toto
