#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the backend for 64-bit Arm; with an emulator at hand, also runs the differential checks there.
# Usage: cpu_neon_check.sh SOURCE_DIR. Exit status 77: no cross compiler (skipped).
set -euo pipefail

source_dir=$1
compiler=${TOTO_ARM_CXX:-aarch64-linux-gnu-g++}
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if ! command -v "$compiler" >/dev/null; then
  echo "no $compiler: skipped"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Highway is headers only; the rest of /usr/include belongs to this machine, not to Arm.
highway=$(echo '#include <hwy/highway.h>' | c++ -std=c++20 -M -x c++ - | tr ' ' '\n' | grep '/hwy/highway.h$')
mkdir "$work/include"
ln -s "${highway%/highway.h}" "$work/include/hwy"

cat >"$work/main.cpp" <<'CPP'
#include <cstdint>
#include <cstdio>
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
int main() {
  constexpr int kCases = 150;
  std::uint32_t state = 1;
  for (int i = 0; i < kCases; ++i) {
    std::uint8_t bytes[8];
    for (auto& b : bytes) b = static_cast<std::uint8_t>((state = state * 1664525U + 1013904223U) >> 24);
    LLVMFuzzerTestOneInput(bytes, sizeof bytes);
  }
  std::printf("%d cases agree with the reference backend\n", kCases);
}
CPP

flags=(-std=c++20 -O2 -Wall -Wextra -Wpedantic -Wshadow -Werror -ffp-contract=off -DFMT_HEADER_ONLY
       -I"$source_dir/src" -I"$source_dir/include" -I"$source_dir/tests" -isystem "$work/include")
sources=("$source_dir"/src/backend/{,cpu/,reference/}*.cpp "$source_dir"/src/statistics/*.cpp
         "$source_dir"/src/core/{error,cpu_info,status_file,thread_team,trace}.cpp
         "$source_dir/fuzz/fuzz_cpu_ops.cpp" "$work/main.cpp")
compile() { "$compiler" "${flags[@]}" -c "$1" -o "$work/${1//\//_}.o"; }
running=()
for file in "${sources[@]}"; do
  compile "$file" &
  running+=($!)
  if [ ${#running[@]} -ge "$(nproc)" ]; then
    wait "${running[0]}"
    running=("${running[@]:1}")
  fi
done
for job in "${running[@]}"; do wait "$job"; done
echo "compiled for $("$compiler" -dumpmachine)"
[ -n "$emulator" ] || exit 0
"$compiler" -static -pthread -o "$work/check" "$work"/*.o
"$emulator" "$work/check"
