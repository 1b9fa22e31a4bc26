#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel of the Python package, installs it into an environment of its own and tests it there. Compiles
# nothing twice where ccache is installed. The last line is "N passed, N failed".
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

passed=0 failed=1
trap 'printf "%s passed, %s failed\n" "$passed" "$failed"' EXIT
venv=build/venv-python
report=build/python.xml
# A recent pip, the build requirements of pyproject.toml, the client libraries that the tests use; none brings torch.
tools=(pip "scikit-build-core>=1.0" "nanobind>=3.1" "nanobind-backend>=1.0" ninja)
clients=(pytest pandas polars pyarrow gluonts utilsforecast joblib mypy)

section "Packages"
install_missing "${build_packages[@]}" "${python_packages[@]}"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade "${tools[@]}" "${clients[@]}"

section "Wheel"
mkdir -p build
# As in `build`, so that the compiler's cache knows the files that are in both.
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
rm -rf build/wheel
if ! CXX=${CXX:-/usr/bin/c++} "$venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
  --no-build-isolation --wheel-dir build/wheel . >build/wheel.log 2>&1; then
  grep -E 'error|FAILED' build/wheel.log | head -n 30 >&2
  say "the wheel was not built (the whole log: build/wheel.log)" >&2
  exit 1
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps build/wheel/*.whl
say "$(basename build/wheel/*.whl), $(($(stat -c %s build/wheel/*.whl) / 1000)) kB"

section "Tests of the package"
status=0
rm -f "$report"
# Two processes must not share the plan cache of whoever runs this.
XDG_CACHE_HOME=$root/build/python-cache "$venv/bin/python" -m pytest --junit-xml="$report" python/tests || status=$?
count_of() { grep -oE "$1=\"[0-9]+\"" "$report" | head -n 1 | grep -oE '[0-9]+'; }
if [ -s "$report" ]; then
  failed=$(($(count_of failures) + $(count_of errors)))
  passed=$(($(count_of tests) - failed - $(count_of skipped)))
fi
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
exit "$status"
