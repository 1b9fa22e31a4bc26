#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel of the Python package, installs it into an environment of its own and tests it there. Compiles
# nothing twice where ccache is installed. The last line is "N passed, N failed".
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

tests_passed=0 tests_failed=1
trap 'printf "%s passed, %s failed\n" "$tests_passed" "$tests_failed"' EXIT
# The client libraries that the tests use; none brings torch.
clients=(pytest pandas polars pyarrow duckdb gluonts utilsforecast statsforecast fev matplotlib joblib mypy)

section "Packages"
install_missing "${build_packages[@]}" "${python_packages[@]}"
python_venv venv-python python3 "${wheel_tools[@]}" "${clients[@]}"

section "Wheel"
build_wheel
install_wheel venv-python

section "Tests of the package"
# Engines of clusters are left to scripts/test_scale.sh.
run_pytest venv-python python python/tests
