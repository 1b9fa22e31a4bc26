#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The drop-ins beside the official packages and torch: toto-ts with this machine's Python, toto-2 and
# chronos-forecasting with Python 3.12 or later where there is one; and the wheel under every Python from 3.10 on that is
# there. Builds the wheel where there is none. The last line is "N passed, N failed".
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

passed=0 failed=1
trap 'printf "%s passed, %s failed\n" "$passed" "$failed"' EXIT
# No torch here: each official package brings the one that it was made for (toto-ts 0.2.0 wants 2.7.0 and no other).
peers=("gluonts>=0.15" pandas pytest "nanobind-backend>=1.0")
if [ -d "${PYENV_ROOT:-$HOME/.pyenv}/versions" ]; then
  for folder in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[0-9]*/bin; do PATH=$PATH:$folder; done
fi

# python_of VERSION: one that starts, not the shim of one that is not chosen.
python_of() {
  local candidate
  for candidate in $(type -aP "python$1" || true); do
    if "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then echo "$candidate"; return; fi
  done
}

add() { # what a run of pytest came to
  passed=$((passed + tests_passed)) sum=$((sum + tests_failed))
}
sum=0 status=0

section "Packages"
install_missing "${build_packages[@]}" "${python_packages[@]}"
if ! compgen -G 'build/wheel/*.whl' >/dev/null; then
  python_venv venv-python python3 "${wheel_tools[@]}"
  build_wheel
fi

versions=(3.10 3.11 3.12 3.13 3.14)
declare -A pythons # by version
for version in "${versions[@]}"; do
  pythons[$version]=$(python_of "$version")
done
# The oldest of 3.12 and later that will do, for torch may not know the newest yet.
torch_python=
for version in 3.12 3.13 3.14; do torch_python=${torch_python:-${pythons[$version]:-}}; done
# Unpacking torch takes minutes of one core: beside the other environments.
if [ -n "$torch_python" ]; then
  python_venv venv-toto-2 "$torch_python" "${peers[@]}" "toto-2==2.0.0" chronos-forecasting &
  unpacking=$!
fi

section "Beside toto-ts"
python_venv venv-toto-ts python3 "${peers[@]}" "toto-ts==0.2.0"
install_wheel venv-toto-ts
run_pytest venv-toto-ts official python/tests/test_official.py || status=1
add

for version in "${versions[@]}"; do
  if [ -z "${pythons[$version]:-}" ]; then continue; fi
  section "Python $version"
  python_venv "venv-$version" "${pythons[$version]}" numpy pytest "nanobind-backend>=1.0"
  install_wheel "venv-$version"
  run_pytest "venv-$version" "python-$version" python/tests/test_forecast.py python/tests/test_errors.py \
    python/tests/test_service.py || status=1
  add
done

if [ -n "$torch_python" ]; then
  section "Beside toto-2 and chronos-forecasting"
  wait "$unpacking"
  install_wheel venv-toto-2
  run_pytest venv-toto-2 official-toto2 python/tests/test_official_toto2.py \
    python/tests/test_official_chronos.py || status=1
  add
else
  say "no Python 3.12 here: nothing was compared with toto-2 and chronos-forecasting"
fi
failed=$sum
exit "$status"
