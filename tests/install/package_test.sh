#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build into a folder, moves that folder, and builds the examples against it in a copy outside
# the source tree: with find_package(toto), shared and static, and with pkg-config alone; in C++ and in C.
# All must find the model that ships with toto, and print the same.
# Needs CMAKE, BUILD, SOURCE, CC, CXX, SANITIZE and LIBDIR in the environment (see CMakeLists.txt).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$SOURCE/tests/data/golden/toto1-tiny-a
unset TOTO_MODEL_ID

fail() { echo "FAILED: $*" >&2; exit 1; }

"$CMAKE" --install "$BUILD" --prefix "$work/staging" >"$work/install.log" || fail "cmake --install"
mkdir "$work/moved"
mv "$work/staging" "$work/moved/prefix" # nothing installed may know where it was
prefix=$work/moved/prefix
if grep -rlF -e "$SOURCE" -e "$BUILD" -e "$work/staging" "$prefix/$LIBDIR/cmake" "$prefix/$LIBDIR/pkgconfig"; then
  fail "installed files name a folder of the machine that built them"
fi
diff -r "$SOURCE/include/toto" "$prefix/include/toto" || fail "a public header is not installed"
"$prefix/bin/toto" --version | grep -qE '^toto [0-9]+\.[0-9]+\.[0-9]+' || fail "toto --version"
for shipped in toto-nano toto-nano-2; do
  for file in model.safetensors generation_config.json; do
    cmp "$SOURCE/models/$shipped/$file" "$prefix/share/toto/models/$shipped/$file"
  done
done
grep -q '^toto.-forecast .- Forecasts' "$prefix/share/man/man1/toto-forecast.1" || fail "there is no page for man"
for file in bash-completion/completions/toto zsh/site-functions/_toto fish/vendor_completions.d/toto.fish; do
  grep -q horizon "$prefix/share/$file" || fail "$file completes nothing"
done
for file in libtoto.a libtoto.so libtoto.so.0; do
  [ -e "$prefix/$LIBDIR/$file" ] || fail "$file is not installed"
done

# Forecasts of two series, 12 steps each, by the model of that name.
check() { # FILE MODEL
  local rows
  grep -qxF "model $2" "$1" || fail "$1 is not by $2: $(head -n 1 "$1")"
  rows=$(grep -cE '^ +[0-9]+ +-?[0-9.]+ +-?[0-9.]+ +-?[0-9.]+$' "$1")
  [ "$rows" -eq 24 ] || fail "expected 24 rows of numbers in $1, found $rows"
  for series in web api; do grep -qx "$series" "$1" || fail "$1 has no forecast of $series"; done
}

cp -r "$SOURCE/examples" "$work/examples"
mkdir "$work/static"
cat >"$work/static/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(static_example LANGUAGES C CXX)
find_package(toto REQUIRED COMPONENTS static)
add_executable(embed ../examples/embed.cpp)
target_link_libraries(embed PRIVATE toto::toto_static)
END
mkdir "$work/only_c"
cat >"$work/only_c/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(c_example LANGUAGES C)
find_package(toto REQUIRED)
add_executable(embed ../examples/embed.c)
target_link_libraries(embed PRIVATE toto::toto m)
END
for project in examples static only_c; do
  if ! { "$CMAKE" -S "$work/$project" -B "$work/build/$project" -DCMAKE_PREFIX_PATH="$prefix" \
           -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_EXE_LINKER_FLAGS="$SANITIZE" \
           -DCMAKE_C_FLAGS="-Wall -Wextra -pedantic -Werror" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" &&
         "$CMAKE" --build "$work/build/$project"; } >"$work/build.log" 2>&1; then
    cat "$work/build.log" >&2
    fail "$project does not build with find_package"
  fi
done
run() { # NAME PROGRAM [MODEL]
  local name=$1
  shift
  "$@" >"$work/$name.txt" || fail "$name does not run"
}
run shared "$work/build/examples/embed"
run shared_c "$work/build/examples/embed_c"
run only_c "$work/build/only_c/embed"
run static "$work/build/static/embed"
if readelf -d "$work/build/static/embed" | grep -q 'NEEDED.*libtoto'; then fail "toto_static is shared"; fi
readelf -d "$work/build/examples/embed" | grep -qF '[libtoto.so.0]' || fail "toto::toto is not the shared library"

export PKG_CONFIG_PATH=$prefix/$LIBDIR/pkgconfig LD_LIBRARY_PATH=$prefix/$LIBDIR
# shellcheck disable=SC2046,SC2086  # lists of flags
"$CXX" "$work/examples/embed.cpp" -o "$work/embed" $SANITIZE $(pkg-config --cflags --libs toto) ||
  fail "the example does not build with pkg-config"
# shellcheck disable=SC2046,SC2086
"$CC" -std=c99 -Wall -Wextra -pedantic -Werror "$work/examples/embed.c" -o "$work/embed_c" $SANITIZE \
  $(pkg-config --cflags --libs toto-c) -lm || fail "the example in C does not build with pkg-config"
run pkgconfig "$work/embed"
run pkgconfig_c "$work/embed_c"

for name in shared shared_c only_c static pkgconfig pkgconfig_c; do
  check "$work/$name.txt" toto-nano-2
  cmp "$work/shared.txt" "$work/$name.txt" || fail "$name prints other forecasts"
done
cat "$work/shared.txt"

# The installed program too, in its own folder and through a link from elsewhere.
ln -s "$prefix/bin/toto" "$work/toto"
for program in "$prefix/bin/toto" "$work/toto"; do
  "$program" model info --json | grep -q '"toto-nano-2"' || fail "$program does not find the model that ships"
  "$program" model info toto-nano --json | grep -q '"toto-nano"' || fail "$program does not find toto-nano"
done

# A model by its path, the environment, and none at all.
run tiny "$work/embed" "$model"
check "$work/tiny.txt" "$model"
TOTO_MODEL_ID=$model run environment "$work/embed_c"
cmp "$work/tiny.txt" "$work/environment.txt" || fail "TOTO_MODEL_ID is not read"
refused() { # CODE PROGRAM...
  local code=$1 status=0
  shift
  "$@" >"$work/out.txt" 2>"$work/error.txt" || status=$?
  [ "$status" -ne 0 ] || fail "$* succeeds"
  grep -qF "$code" "$work/error.txt" || fail "expected $code, found: $(cat "$work/error.txt")"
}
refused model_not_found "$work/embed" "$work/nowhere"
refused nowhere "$work/embed_c" "$work/nowhere"
rm -r "$prefix/share/toto"
refused toto-nano-2 "$work/embed"
refused toto-nano-2 "$work/embed_c"
refused toto-nano-2 "$work/build/static/embed"

# Another standard of C++ is refused by name.
if "$CXX" -std=c++17 -I"$prefix/include" -fsyntax-only "$work/examples/embed.cpp" 2>"$work/error.txt"; then
  fail "the headers compile as C++17"
fi
grep -qF 'toto needs C++20' "$work/error.txt" || fail "C++17: $(head -n 3 "$work/error.txt")"
