# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts of this folder and by .ci/run: section headings, missing packages, the build.
# Sourced by bash, never run by itself.
# shellcheck shell=bash disable=SC2034

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 70
started=$SECONDS
jobs=$(nproc)
# What was compiled in one clone serves the others too; what says where a line is may then name a line of
# the other clone.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

build_packages=(g++ cmake ninja-build ccache libfmt-dev libhwy-dev nlohmann-json3-dev
                libcli11-dev libgtest-dev libgmock-dev pkg-config
                libhowardhinnant-date-dev zlib1g-dev libzstd-dev tzdata
                libboost1.81-dev prometheus-cpp-dev libsqlite3-dev)
python_packages=(python3 python3-venv)
test_packages=(zsh fish man-db # what help and completion are tried in
               g++-aarch64-linux-gnu qemu-user-static) # what the vector code for Arm is tried with

clock() { printf '%02d:%02d' $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)); }
section() { printf '\n== %s  %s\n' "$(clock)" "$*"; }
say() { printf '   %s\n' "$*"; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

installed() { dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^.i'; }

# install_missing PACKAGE...: Debian packages that are not there; asks the network only if one is missing.
install_missing() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian machine: make sure you have what Debian calls: $*"
    return 0
  fi
  local package missing=()
  for package in "$@"; do
    installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "all packages are there"
    return 0
  fi
  say "installing: ${missing[*]}"
  mkdir -p build
  if ! { as_root apt-get update &&
         as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
           "${missing[@]}"; } </dev/null >build/apt.log 2>&1; then
    tail -n 20 build/apt.log >&2
    say "could not install ${missing[*]} (the whole log: build/apt.log)" >&2
    return 1
  fi
}

# build PRESET [TARGET...]: configures, with `cmake_flags`, then builds; what the compiler says is kept in
# build/PRESET.log.
cmake_flags=()
build() {
  local preset=$1 launcher=() log=build/$1.log
  shift
  mkdir -p build
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  if ! cmake --preset "$preset" "${launcher[@]}" "${cmake_flags[@]}" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    return 1
  fi
  if ! cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"} >>"$log" 2>&1; then
    grep -E '^FAILED|: (fatal )?error|undefined reference' "$log" | head -n 30 >&2
    say "the build failed (the whole log: $log)" >&2
    return 1
  fi
}

# run_tests PRESET [ctest arguments]: sets `tests_passed`, `tests_failed`, `tests_skipped`.
run_tests() {
  local preset=$1 report log status=0
  shift
  report=$root/build/$preset.junit.xml
  log=build/$preset.tests.log
  tests_passed=0 tests_failed=1 tests_skipped=0
  rm -f "$report"
  ctest --preset "$preset" -j "$jobs" --output-junit "$report" "$@" >"$log" 2>&1 || status=$?
  if [ ! -s "$report" ]; then
    tail -n 30 "$log" >&2
    return 1
  fi
  local suite
  suite=$(tr '\n\t' '  ' <"$report" | grep -oE '<testsuite [^>]*>' | head -n 1)
  local all disabled
  all=$(attribute "$suite" tests)
  if ! [[ $all =~ ^[0-9]+$ ]]; then
    say "cannot read $report" >&2
    return 1
  fi
  tests_failed=$(attribute "$suite" failures)
  disabled=$(attribute "$suite" disabled)
  tests_skipped=$(attribute "$suite" skipped)
  tests_passed=$((all - tests_failed - tests_skipped - disabled))
  if [ "$status" -ne 0 ]; then
    sed -n '/The following tests FAILED/,$p' "$log" >&2
    grep -aE '(Failure$|: error|ERROR: |SUMMARY: |WARNING: ThreadSanitizer)' "$log" | head -n 40 >&2
    say "the whole log: $log" >&2
  fi
  return "$status"
}

# python_venv VENV PYTHON PACKAGE...: an environment in build/VENV with these packages of PyPI.
python_venv() {
  local venv=build/$1 python=$2
  shift 2
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
  quiet_pip "$venv" install --upgrade pip "$@"
}

# quiet_pip VENV ARGUMENT...: pip of this environment, heard only when it fails. Its warnings are about indexes of the machine.
# Modules are compiled when they are imported: most of those of the large packages never are.
quiet_pip() {
  local venv=$1
  shift
  PIP_NO_COMPILE=1 "$venv/bin/python" -m pip "$@" --quiet --disable-pip-version-check >"$venv.log" 2>&1 && return
  grep -v "^WARNING: Location" "$venv.log" | tail -n 30 >&2
  return 1
}

# build_wheel [FOLDER [arguments of pip]]: the wheel of the Python package in build/FOLDER (wheel), by the environment
# build/venv-python. Without arguments it is that of a machine that has no CUDA compiler: kernels take minutes to build.
wheel_tools=("scikit-build-core>=1.0" "nanobind>=3.1" "nanobind-backend>=1.0" ninja)
build_wheel() {
  local folder=build/${1:-wheel} file
  # As in `build`, so that the compiler's cache knows the files that are in both.
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  fi
  rm -rf "$folder"
  if [ $# -lt 2 ]; then set -- "${1:-wheel}" -C cmake.define.TOTO_CUDA=OFF; fi
  if ! CXX=${CXX:-/usr/bin/c++} build/venv-python/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --wheel-dir "$folder" . "${@:2}" >"$folder.log" 2>&1; then
    grep -E 'error|FAILED' "$folder.log" | head -n 30 >&2
    say "the wheel was not built (the whole log: $folder.log)" >&2
    return 1
  fi
  file=$(echo "$folder"/*.whl)
  say "$(basename "$file"), $(($(stat -c %s "$file") / 1000)) kB"
  if [ "$(stat -c %s "$file")" -gt 20000000 ]; then
    say "larger than the 20 MB that it may have" >&2
    return 1
  fi
}

# install_wheel VENV [FOLDER]: puts it into an environment of build.
install_wheel() {
  quiet_pip "build/$1" install --force-reinstall --no-deps "build/${2:-wheel}"/*.whl
}

# run_pytest VENV NAME [arguments]: sets `tests_passed`, `tests_failed`, `tests_skipped`.
run_pytest() {
  local venv=$1 report=build/$2.xml status=0
  shift 2
  rm -f "$report"
  tests_passed=0 tests_failed=1 tests_skipped=0
  # Two processes must not share the plan cache of whoever runs this.
  XDG_CACHE_HOME=$root/build/python-cache "build/$venv/bin/python" -m pytest --show-capture=no --junit-xml="$report" "$@" || status=$?
  if [ -s "$report" ]; then
    local suite
    suite=$(tr '\n\t' '  ' <"$report" | grep -oE '<testsuite [^>]*>' | head -n 1)
    tests_skipped=$(attribute "$suite" skipped)
    tests_failed=$(($(attribute "$suite" failures) + $(attribute "$suite" errors)))
    tests_passed=$(($(attribute "$suite" tests) - tests_failed - tests_skipped))
  fi
  if [ "$status" -ne 0 ] && [ "$tests_failed" -eq 0 ]; then tests_failed=1; fi
  return "$status"
}

attribute() { sed -E "s/.* $2=\"([0-9]+)\".*/\1/" <<<"$1"; }
