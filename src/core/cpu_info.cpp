// SPDX-License-Identifier: Apache-2.0
#include "core/cpu_info.h"

#include <algorithm>
#include <thread>

#include "core/status_file.h"

#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace toto {
namespace {

#if defined(__x86_64__)
/// Linux keeps the tile registers, 8 KiB for each thread, from a process that does not ask for
/// them.
bool may_use_amx() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // the state component of XSAVE
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

/// Not every compiler's run-time library knows these names: bits of leaf 7.
bool has_amx_bf16() {
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBf16) != 0 && (d & kTile) != 0;
}
#endif

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
  f.amx_bf16 = f.avx512_bf16 && has_amx_bf16() && may_use_amx();
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
