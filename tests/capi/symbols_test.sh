#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What libtoto.so exports: the public interface, under its versions, and nothing else.
#   symbols_test.sh LIBRARY HEADER MAJOR MINOR
set -euo pipefail
library=$1 header=$2
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

soname=$(objdump -p "$library" | sed -nE 's/^ *SONAME *//p')
[ "$soname" = "libtoto.so.$3" ] || fail "the soname is $soname"

symbols=$(nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { print $3 }')
declared=$(grep -oE '\btoto_[a-z_]+\(' "$header" | tr -d '(' | sort -u)
[ "$(wc -l <<<"$declared")" -ge 30 ] || fail "only these functions were found in toto.h: $declared"
exported=$(grep -E '^toto_' <<<"$symbols" | sort -u)
wanted=$(while read -r name; do echo "$name@@TOTO_C_$3"; done <<<"$declared")
[ "$exported" = "$wanted" ] || fail "toto.h and the library differ: $(diff <(echo "$exported") <(echo "$wanted"))"

others=$(grep -vE "^toto_|@@TOTO_CXX_$3\.$4\$" <<<"$symbols" | grep -vE '^(_init|_fini|__bss_start|_edata|_end)' || true)
[ -z "$others" ] || fail "exported, but not public: $(head -n 5 <<<"$others")"
cxx=$(grep -E "@@TOTO_CXX_" <<<"$symbols" | c++filt)
internal=$(grep -E '^toto::(\(anonymous|[A-Za-z]+::Impl::|Engine::|PlanTable::|Sha256::|Toto1::|Backend::|cuda::|cpu::|capi::)' <<<"$cxx" || true)
[ -z "$internal" ] || fail "exported, but internal: $(head -n 5 <<<"$internal")"
for name in 'toto::Model::load(' 'toto::Forecaster::forecast(' 'toto::resolve_settings(' 'typeinfo for toto::Error'; do
  grep -qF "$name" <<<"$cxx" || fail "$name is not exported"
done
echo "$(wc -l <<<"$exported") functions of C, $(wc -l <<<"$cxx") symbols of C++"
[ "$failures" -eq 0 ]
