#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles by itself and twice, and exports what it declares (or the shared library
# would lack it).
#   public_headers_test.sh INCLUDE COMPILER
set -euo pipefail
cd "$1"
compiler=$2
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

count=0
while read -r header; do
  count=$((count + 1))
  printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
    "$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only -I. -x c++ - ||
    fail "$header does not compile by itself"
  [ "$header" = toto/toto.hpp ] && continue # only includes others
  for pragma in 'push(default)' pop; do
    [ "$(grep -cxF "#pragma GCC visibility $pragma" "$header")" -eq 1 ] || fail "$header has no visibility $pragma"
  done
done < <(find toto -name '*.h' -o -name '*.hpp' | sort)
[ "$count" -ge 8 ] || fail "only $count headers were found"
echo "$count headers"
[ "$failures" -eq 0 ]
