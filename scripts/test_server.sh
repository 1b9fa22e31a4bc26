#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests `toto serve` with clients that know nothing of it: tritonclient, kserve, schemathesis, prometheus-client,
# curl. They live in an environment of their own. TOTO_PROGRAM names another program than that of the release
# preset, one built with a sanitizer for example. Arguments go to pytest. The last line is "N passed, N failed".
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

passed=0 failed=1
trap 'printf "%s passed, %s failed\n" "$passed" "$failed"' EXIT
venv=build/venv-server
report=build/server.xml

section "Packages"
install_missing "${python_packages[@]}" curl zstd chromium
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check pytest "tritonclient[http]>=2.60" "kserve>=0.19" \
  "schemathesis>=4.20" prometheus-client axe-playwright-python

section "Tests of the server"
[ -n "${TOTO_PROGRAM:-}" ] || [ -x build/release/toto ] || build release toto_cli
status=0
rm -f "$report"
"$venv/bin/python" -m pytest -q --junit-xml="$report" "${@:-tests/server}" || status=$?
count_of() { grep -oE "$1=\"[0-9]+\"" "$report" | head -n 1 | grep -oE '[0-9]+'; }
if [ -s "$report" ]; then
  failed=$(($(count_of failures) + $(count_of errors)))
  passed=$(($(count_of tests) - failed - $(count_of skipped)))
fi
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
exit "$status"
