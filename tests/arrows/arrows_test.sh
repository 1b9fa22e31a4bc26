#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What one component may include, with the include path it is compiled with. A header of each folder that
# it may see compiles. Of the other folders no header is found, and including one fails for that reason.
#   arrows_test.sh SOURCE PAIRS FLAGS COMPILER      PAIRS: lines "may FOLDER" and "must_not FOLDER"
set -euo pipefail
cd "$1"
pairs=$2 compiler=$4
mapfile -t flags <"$3"
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

headers() { # FOLDER: as they are included
  find "$1" \( -name '*.h' -o -name '*.hpp' \) -not -path '*/cuda/*' | sort | sed -E 's,^(src|include)/,,'
}
compile() { "$compiler" -std=c++20 -fsyntax-only -x c++ "${flags[@]}" - 2>&1; }

includes=0 hidden=0 seen='' probe=''
while read -r rule folder; do
  mapfile -t found < <(headers "$folder")
  [ ${#found[@]} -gt 0 ] || fail "$folder has no header"
  includes=$((includes + 1))
  if [ "$rule" = may ]; then
    seen+="#include \"${found[0]}\""$'\n'
    continue
  fi
  status=0
  said=$(echo "#include \"${found[0]}\"" | compile) || status=$?
  if [ "$status" -eq 0 ]; then
    fail "\"${found[0]}\" compiles"
  elif ! grep -qE 'No such file or directory|file not found' <<<"$said"; then
    fail "\"${found[0]}\" is refused for another reason: $said"
  fi
  for header in "${found[@]}"; do
    probe+="#if __has_include(\"$header\")"$'\n'"#error $header is found"$'\n#endif\n'
    hidden=$((hidden + 1))
  done
done <"$pairs"
said=$(compile <<<"$seen") || fail "headers that should compile: $said"
said=$(compile <<<"$probe") || fail "headers that must not be seen: $said"

[ "$includes" -ge 10 ] || fail "only $includes folders were tried"
echo "$includes includes tried, $hidden headers hidden"
[ "$failures" -eq 0 ]
