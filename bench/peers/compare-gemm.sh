#!/bin/sh
# bench/peers/compare-gemm.sh ROOT [ARGUMENT...]: times products of the native kernels beside OpenBLAS, oneDNN and Eigen of a newer Debian suite
# (sid), which go into the private root ROOT the first time (70 MB); ARGUMENTs are those of gemm.cpp. SUITE=NAME takes another suite,
# CXX and ARCH the compiler and its -march. OPENBLAS_CORETYPE=SkylakeX helps an OpenBLAS that does not know a processor with AVX-512.
set -u
[ $# -ge 1 ] && [ -n "$1" ] && [ "${1#-}" = "$1" ] || {
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
}
here=$(cd -- "$(dirname -- "$0")" && pwd)
peers=$(realpath -m -- "$1")
shift
if [ ! -f "$peers/.made-by-isotope" ]; then
  (
    # shellcheck disable=SC2034
    instead="install libopenblas-dev, libdnnl-dev and libeigen3-dev by other means"
    # shellcheck source=cmake/private_root.sh
    . "$here/../../cmake/private_root.sh"
    open_root "$peers"
    unpack "${SUITE:-sid}" libdnnl-dev libeigen3-dev libopenblas-openmp-dev libgomp1 libstdc++6
    close_root
  ) || exit 1
fi
for file in "$peers"/usr/lib/*-linux-gnu*/ld-linux*.so.*; do loader=$file; done
libraries=${loader%/*}
program=$peers/gemm
"${CXX:-g++}" -std=c++20 -O3 -march="${ARCH:-native}" -fopenmp -w -I "$here/../../include" -isystem "$peers/usr/include" -isystem "$peers/usr/include/eigen3" \
  "$here/gemm.cpp" -o "$program" -L "$libraries/openblas-openmp" -L "$libraries" -lopenblas -ldnnl \
  -Wl,--unresolved-symbols=ignore-in-shared-libs || exit 1
exec "$loader" --library-path "$libraries/openblas-openmp:$libraries" "$program" "$@"
