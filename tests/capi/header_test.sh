#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# toto.h in every language it promises, with every warning.
#   header_test.sh INCLUDE C_COMPILER CXX_COMPILER
set -euo pipefail
text='#include "toto/toto.h"
#include "toto/toto.h"
toto_model_options a = TOTO_MODEL_OPTIONS_INIT;
toto_forecaster_options b = TOTO_FORECASTER_OPTIONS_INIT;
toto_series c = TOTO_SERIES_INIT;
toto_forecast_options d = TOTO_FORECAST_OPTIONS_INIT;
toto_parameters e = TOTO_PARAMETERS_INIT;
toto_warmup_shape f = TOTO_WARMUP_SHAPE_INIT;
toto_counters g = TOTO_COUNTERS_INIT;'
for std in c99 c11 c17; do
  "$2" -std=$std -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$1" -x c - <<<"$text"
done
for std in c++11 c++17 c++20; do
  "$3" -std=$std -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$1" -x c++ - <<<"$text"
done
# Nothing but names that begin with toto_ or TOTO_, and what its own includes bring.
before=$(mktemp) after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT
printf '#include <stddef.h>\n#include <stdint.h>\n' | "$2" -std=c99 -dM -E -x c - | sort >"$before"
echo '#include "toto/toto.h"' | "$2" -std=c99 -dM -E -I"$1" -x c - | sort >"$after"
if comm -13 "$before" "$after" | grep -vE '^#define TOTO_'; then
  echo "FAILED: macros without the prefix" >&2
  exit 1
fi
