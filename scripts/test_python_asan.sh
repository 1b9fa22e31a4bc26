#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The module of the Python package built with AddressSanitizer and UndefinedBehaviorSanitizer (clang), under its tests.
# The last line is "N passed, N failed".
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

tests_passed=0 tests_failed=1
trap 'printf "%s passed, %s failed\n" "$tests_passed" "$tests_failed"' EXIT
built=build/asan-python

section "Packages"
install_missing "${build_packages[@]}" "${python_packages[@]}" clang libclang-rt-14-dev
python_venv venv-python python3 "${wheel_tools[@]}" pytest pandas polars pyarrow gluonts

section "Module"
mkdir -p "$built"
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake --preset asan -B "$built" "${launcher[@]}" -DTOTO_PYTHON=ON -DTOTO_BUILD_TESTS=OFF -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
  -DCMAKE_SHARED_LINKER_FLAGS=-shared-libasan -DCMAKE_MODULE_LINKER_FLAGS=-shared-libasan "-DPython_EXECUTABLE=$root/build/venv-python/bin/python" >"$built/configure.log" 2>&1 ||
  { tail -n 30 "$built/configure.log" >&2; exit 1; }
cmake --build "$built" -j "$jobs" --target toto_python >"$built/build.log" 2>&1 ||
  { grep -E '^FAILED|error' "$built/build.log" | head -n 30 >&2; exit 1; }
rm -rf "$built/package"
mkdir -p "$built/package/toto_cpp"
cp -r python/toto_cpp/. "$built/package/toto_cpp"
cp -r models "$built/package/toto_cpp/models"
cp "$built"/python/_core*.so "$built"/python/libtoto_cpp.so "$built/package/toto_cpp"

section "Tests"
runtime=$(clang++ -print-file-name=libclang_rt.asan-x86_64.so)
# Python itself leaves memory behind. Of the tests those that call the module; what starts other programs, or measures
# memory, is left to scripts/test_python.sh.
export PYTHONPATH=$root/$built/package ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$runtime
run_pytest venv-python python-asan python/tests/test_forecast.py python/tests/test_errors.py python/tests/test_service.py \
  python/tests/test_compat.py python/tests/test_frames.py python/tests/test_evaluation.py python/tests/test_plot.py \
  python/tests/test_batches.py python/tests/test_guards.py python/tests/test_value_offset.py -k "not the_command_line and not long_tables"
