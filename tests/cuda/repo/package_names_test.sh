#!/bin/sh
# A package of programs is named for the one architecture whose device code it has, or `fat`; each name in cmake/backend/cuda/packages is what its options give.
# package_names_test.sh SOURCE_DIR BINARY_DIR COMPILER
set -u
source=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
rows=$(sed -n 's/^programs //p' "$source/cmake/backend/cuda/packages" | sed -n '1p;4p;$p')
echo "$rows" >"$work/rows"
[ "$(wc -l <"$work/rows")" = 3 ] || exit 1
while read -r name options; do
  # shellcheck disable=SC2086
  cmake -S "$source" -B "$work/$name" -DBACKEND=cuda -DISOTOPE_NVCC="$source/tests/cuda/emulator/nvcc" -DCMAKE_CXX_COMPILER="$3" -DTESTS=OFF -DBENCH=OFF $options >"$work/log" 2>&1 || {
    tail -n 5 "$work/log"
    exit 1
  }
  grep -qF "set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME \"$name\")" "$work/$name/CPackConfig.cmake" || {
    echo "'$options' does not make $name: $(grep PROGRAMS_PACKAGE_NAME "$work/$name/CPackConfig.cmake")"
    failed=1
  }
done <"$work/rows"
exit $failed
