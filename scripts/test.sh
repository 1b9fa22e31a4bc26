#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing (Debian 12), builds the release preset and the Python package, and runs every test.
# The last line is "N passed, N failed"; the exit status is 0 only if nothing failed.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

passed=0 failed=1 # until the tests have run, whatever stops us counts as one failure
trap 'printf "%s passed, %s failed\n" "$passed" "$failed"' EXIT

section "Packages"
install_missing "${build_packages[@]}" "${test_packages[@]}"

section "Build (preset release)"
build release
say "built build/release/toto"

section "Tests"
status=0
run_tests release || status=$?
passed=$tests_passed failed=$tests_failed
say "$tests_passed passed, $tests_failed failed, $tests_skipped skipped in $(clock)"

python=$(scripts/test_python.sh 2>&1 | tee /dev/stderr | tail -n 1) || status=1
if [[ $python =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
  passed=$((passed + BASH_REMATCH[1]))
  failed=$((failed + BASH_REMATCH[2]))
fi

section "Done"
exit "$status"
