#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build into a folder, moves that folder, and builds examples/embed.cpp against it in a copy
# outside the source tree: once with find_package(toto), once with pkg-config. Both must print the same.
# Needs CMAKE, BUILD, SOURCE, CXX, CXXFLAGS and LIBDIR in the environment (see CMakeLists.txt).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$SOURCE/tests/data/golden/toto1-tiny-a

fail() { echo "FAILED: $*" >&2; exit 1; }

"$CMAKE" --install "$BUILD" --prefix "$work/staging" >"$work/install.log" || fail "cmake --install"
mv "$work/staging" "$work/prefix" # nothing installed may know where it was
prefix=$work/prefix
if grep -rlF -e "$SOURCE" -e "$BUILD" -e "$work/staging" "$prefix/$LIBDIR/cmake" "$prefix/$LIBDIR/pkgconfig"; then
  fail "installed files name a folder of the machine that built them"
fi
diff -r "$SOURCE/include/toto" "$prefix/include/toto" || fail "a public header is not installed"
"$prefix/bin/toto" --version | grep -qE '^toto [0-9]+\.[0-9]+\.[0-9]+' || fail "toto --version"
if [ -f "$SOURCE/models/toto-nano/model.safetensors" ]; then
  cmp "$SOURCE/models/toto-nano/model.safetensors" "$prefix/share/toto/models/toto-nano/model.safetensors"
fi

cp -r "$SOURCE/examples" "$work/examples"
if ! { "$CMAKE" -S "$work/examples" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" &&
       "$CMAKE" --build "$work/cmake"; } >"$work/build.log" 2>&1; then
  cat "$work/build.log" >&2
  fail "the example does not build with find_package"
fi
"$work/cmake/embed" "$model" >"$work/cmake.txt" || fail "the example does not run"

export PKG_CONFIG_PATH=$prefix/$LIBDIR/pkgconfig
# shellcheck disable=SC2046,SC2086  # lists of flags
"$CXX" -std=c++20 $CXXFLAGS "$work/examples/embed.cpp" -o "$work/embed" \
  $(pkg-config --static --cflags --libs toto) || fail "the example does not build with pkg-config"
"$work/embed" "$model" >"$work/pkgconfig.txt" || fail "the example built with pkg-config does not run"

cmp "$work/cmake.txt" "$work/pkgconfig.txt" || fail "the two programs print different forecasts"
cat "$work/cmake.txt"
rows=$(grep -cE '^ +[0-9]+ +-?[0-9.]+ +-?[0-9.]+ +-?[0-9.]+$' "$work/cmake.txt")
[ "$rows" -eq 24 ] || fail "expected 24 rows of numbers, found $rows"
for series in web api; do grep -qx "$series" "$work/cmake.txt" || fail "no forecast of $series"; done
! "$work/embed" "$work/nowhere" 2>"$work/error.txt" || fail "a missing model is not an error"
grep -q 'model_not_found' "$work/error.txt" || fail "a missing model is not named: $(cat "$work/error.txt")"
