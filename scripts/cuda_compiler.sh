#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Finds a CUDA 13 compiler, or installs one into build/cuda-compiler from NVIDIA's packages on PyPI:
# scripts/cuda_compiler.sh. The last line says where it is; what CMake wants to know of it is
# -DTOTO_CUDA_HOME=that folder. Nothing outside build/ changes.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

# The compiler driver, its host headers, the optimiser, the runtime (static), the header that the
# 16-bit types include, and the headers of profiler ranges: CUDA 13.0, update 2.
packages=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
          nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-nvtx==13.0.85)
venv=build/cuda-compiler

release_of() { "$1" --version 2>/dev/null | sed -nE 's/.*release ([0-9]+)\..*/\1/p'; }

# A toolkit is used where its compiler is new enough and the static runtime lies beside it.
home_of() { # NVCC: the folder that the compiler calls its own
  local top
  top=$("$1" -dryrun -c -x cu /dev/null -o /dev/null 2>&1 | sed -nE 's/^#\$ TOP=(.*)$/\1/p')
  [ -n "$top" ] && (cd "$top" 2>/dev/null && pwd)
}

section "CUDA compiler"
nvcc=$(command -v nvcc || true)
if [ -n "$nvcc" ]; then
  release=$(release_of "$nvcc")
  home=$(home_of "$nvcc" || true)
  if [ "${release:-0}" -ge 13 ] && [ -n "$home" ] && find -L "$home" -name libcudart_static.a | grep -q .; then
    say "on the PATH: CUDA $release"
    echo "$home"
    exit
  fi
  say "the one on the PATH is CUDA ${release:-of an unknown release}, 13 with its static runtime is needed"
fi

if [ "$(cat "$venv/packages" 2>/dev/null)" != "${packages[*]}" ]; then
  say "installing ${packages[*]} into $venv"
  install_missing "${python_packages[@]}"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --no-deps "${packages[@]}"
  echo "${packages[*]}" >"$venv/packages"
fi
home=$(find "$root/$venv/lib" -path '*/site-packages/nvidia/cu13' -type d | head -n 1)
if [ "$(release_of "$home/bin/nvcc")" != 13 ]; then
  rm -f "$venv/packages"
  say "what was installed into $venv does not run" >&2
  exit 1
fi
say "in $venv: CUDA 13"
echo "$home"
