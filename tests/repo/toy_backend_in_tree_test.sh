#!/bin/sh
# A backend consists only of files. Those of tests/extend/toy_in_tree are copied into a copy of the source tree, which then has presets for the backend,
# configures, calls its hooks and runs its tests. No other file is changed.
set -u
source=$1
compiler=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir "$tree" || exit 1
fail() {
  echo "$1"
  [ ! -f "$work/log" ] || tail -n 30 "$work/log"
  exit 1
}
for path in CMakeLists.txt CMakePresets.json cmake quickstart include kernels examples tests bench CHANGELOG.md; do cp -RP "$source/$path" "$tree" || exit 1; done

toy=$source/tests/extend/toy_in_tree
for file in $(cd "$toy" && find . -type f) ./include/isotope/backend/toy/toy_backend.hpp; do
  [ ! -e "$tree/$file" ] || fail "$file is there: a backend brings files of its own alone"
done
cp -R "$toy/." "$tree" && mkdir "$tree/include/isotope/backend/toy" && cp "$source/tests/extend/toy_backend.hpp" "$tree/include/isotope/backend/toy" || exit 1

cd "$tree" || exit 1
cmake -P cmake/presets.cmake || fail 'no presets'
cmake --list-presets >"$work/log" 2>&1 && grep -q '"toy-f32"' "$work/log" && grep -q '"asan-toy"' "$work/log" || fail 'the presets toy-f32 and asan-toy are not there'
sh tests/repo/backends_test.sh . || fail 'CMake and the header do not agree'
./quickstart deps --list --backend toy >"$work/log" 2>&1 || fail 'quickstart does not know it'

cmake --preset toy-f32 -DCMAKE_CXX_COMPILER="$compiler" >"$work/log" 2>&1 || fail 'the toy backend does not configure'
grep -q 'isotope: backend toy, precision f32' "$work/log" || fail 'another backend was configured'
cmake --build build/toy-f32 --target isotope_device_code toy_suite >"$work/log" 2>&1 || fail 'its suite does not build'
[ -f build/toy-f32/toy_code ] || fail 'the code of its device was not made'
ctest --test-dir build/toy-f32 -R '^toy\.suite$' --no-tests=error --output-on-failure >"$work/log" 2>&1 || fail 'its suite fails'
