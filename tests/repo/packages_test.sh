#!/bin/sh
# cpack makes isotope-dev of a build: its fields, its files, and that a project finds it and chooses among what it has.
# packages_test.sh SOURCE_DIR BINARY_DIR COMPILER
set -u
source=$1
build=$2
compiler=$3
for tool in dpkg-deb cpack gzip; do
  command -v $tool >/dev/null 2>&1 || {
    echo "skipped: $tool is not here"
    exit 77
  }
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() {
  echo "$1"
  [ ! -f "$work/log" ] || tail -n 20 "$work/log"
  exit 1
}
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/out" -D CPACK_COMPONENTS_ALL=headers -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip >"$work/log" 2>&1 || fail "cpack failed"
set -- "$work"/out/*.deb
[ $# = 1 ] && [ -f "$1" ] || fail "cpack did not make one package but $*"
deb=$1

if cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/none" -D CPACK_COMPONENTS_ALL=programs -D CPACK_ISOTOPE_COMMIT="$work/none" >"$work/log" 2>&1; then
  fail "cpack packages programs that are not built of these sources"
fi
tr -s '\n ' ' ' <"$work/log" | grep -q "the programs were built as version '', and the sources are version .* fix: build, then run cpack" || fail "cpack does not say that programs are not built"

# The version is that of the sources, unless a commit was made in the meantime.
release=$(sed -n 's/^ *VERSION \([0-9.]*\)$/\1/p' "$source/CMakeLists.txt")
version=$(dpkg-deb -f "$deb" Version)
case $version in "$release" | "$release"[~+]*) ;; *) fail "its version is '$version', not one of $release" ;; esac
dpkg --validate-version "$version" || fail "dpkg does not take its version"
[ "$(dpkg-deb -f "$deb" Package)" = isotope-dev ] && [ "$(dpkg-deb -f "$deb" Architecture)" = all ] || fail "it is not isotope-dev for all machines"
dpkg-deb -f "$deb" Depends | grep -q 'libboost-dev (>= 1.75.0)' || fail "it depends on '$(dpkg-deb -f "$deb" Depends)', not on Boost"

dpkg-deb -x "$deb" "$work/root" || fail "it cannot be unpacked"
(cd "$work/root/usr/include" && find isotope -type f ! -path '*/kernels/*' -name '*.hpp' | sort) >"$work/packed"
(cd "$source/include" && find isotope -type f ! -path '*/kernels/*' -name '*.hpp' | sort) >"$work/headers"
[ -s "$work/headers" ] && [ -z "$(comm -23 "$work/headers" "$work/packed")" ] || fail "headers are missing: $(comm -23 "$work/headers" "$work/packed")"
for file in include/isotope/kernels/cpu/all.hpp share/cmake/isotope/isotopeConfig.cmake share/doc/isotope-dev/copyright share/doc/isotope-dev/changelog.gz share/pkgconfig/isotope.pc; do
  [ -f "$work/root/usr/$file" ] || fail "the file $file is missing"
done
gzip -dc "$work/root/usr/share/doc/isotope-dev/changelog.gz" | head -n 1 | grep -qF "isotope ($version) " || fail "the changelog is for another version"
! grep -rlF -e "$source" "$work/root" >"$work/named" || fail "these files name the source tree: $(cat "$work/named")"

backend=$(ls "$work/root/usr/share/cmake/isotope/backend")
backend=${backend%.cmake}
mkdir "$work/app"
cat >"$work/app/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES CXX)
find_package(isotope 0.1 REQUIRED)
get_target_property(choices isotope::isotope INTERFACE_COMPILE_DEFINITIONS)
message(STATUS "choices ${choices}")
CMAKE
app() { cmake -S "$work/app" -B "$work/app/build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/root/usr" "$@" >"$work/log" 2>&1; }
takes() {
  words=$1
  shift
  app "$@" && grep -qF "choices $words" "$work/log" || fail "a project with $* does not get $words"
}
refuses() {
  words=$1
  shift
  ! app "$@" && tr -s '\n ' ' ' <"$work/log" | grep -qF "$words" || fail "a project with $* is not told: $words"
}
takes "ISOTOPE_BACKEND=$backend;ISOTOPE_PRECISION=bf16;ISOTOPE_KERNELS=portable" -DISOTOPE_BACKEND=$backend -DISOTOPE_PRECISION=bf16 -DISOTOPE_KERNELS=portable
refuses "ISOTOPE_BACKEND='metal' is not in this package; it has: $backend." -DISOTOPE_BACKEND=metal
refuses "ISOTOPE_PRECISION='f16' is not legal for backend $backend: it has f32, bf16." -DISOTOPE_BACKEND=$backend -DISOTOPE_PRECISION=f16
refuses "ISOTOPE_KERNELS='fast' is not one of: native, portable, reference." -DISOTOPE_PRECISION= -DISOTOPE_KERNELS=fast

# The flags of isotope.pc compile a header that needs limits and choices.
command -v pkg-config >/dev/null 2>&1 || {
  echo "pkg-config is not here, so isotope.pc was not used"
  exit 0
}
export PKG_CONFIG_PATH="$work/root/usr/share/pkgconfig"
flags=$(pkg-config --cflags isotope) || fail "pkg-config does not read isotope.pc"
case " $flags " in *" -ffp-contract=off "*) ;; *) fail "isotope.pc lacks -ffp-contract=off: $flags" ;; esac
echo '#include <isotope/core/error.hpp>' >"$work/app/main.cpp"
# shellcheck disable=SC2086
"$compiler" -std=c++20 $flags -fsyntax-only "$work/app/main.cpp" >"$work/log" 2>&1 || fail "the flags of isotope.pc do not compile: $flags"
