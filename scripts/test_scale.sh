#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests forecasts at scale with the engines themselves: DuckDB, polars, Ray, Dask, Fugue, Spark (on Debian's Java), in an
# environment of their own. Builds the wheel where there is none. The last line is "N passed, N failed".
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

tests_passed=0 tests_failed=1
trap 'printf "%s passed, %s failed\n" "$tests_passed" "$tests_failed"' EXIT
engines=(numpy pandas polars pyarrow duckdb "ray[data]" "dask[dataframe,distributed]" "fugue[dask,ray,spark]" pyspark
         statsforecast pytest "nanobind-backend>=1.0")

section "Packages"
install_missing "${build_packages[@]}" "${python_packages[@]}" default-jre-headless
python_venv venv-scale python3 "${engines[@]}"
if ! compgen -G 'build/wheel/*.whl' >/dev/null; then
  python_venv venv-python python3 "${wheel_tools[@]}"
  build_wheel
fi
install_wheel venv-scale

section "Tests with the engines"
run_pytest venv-scale scale python/tests/test_batches.py python/tests/test_dataset.py \
  python/tests/test_dataset_resume.py python/tests/test_pieces.py python/tests/test_engines.py python/tests/test_docs.py
# Everything is installed: a test that is skipped is one that does not run at all.
if [ "$tests_skipped" -ne 0 ]; then
  say "$tests_skipped tests were skipped" >&2
  tests_failed=$((tests_failed + tests_skipped))
  exit 1
fi
