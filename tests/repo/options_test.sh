#!/bin/sh
# Build options: every legal choice configures, every other one is refused in one line that names the legal ones.
set -u
source=$1
compiler=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
configure() { cmake -S "$source" -B "$work/build" -DCMAKE_CXX_COMPILER="$compiler" -DTESTS=OFF -DEXAMPLES=OFF -DBENCH=OFF "$@" >"$work/log" 2>&1; }
accepts() {
  rm -rf "$work/build"
  configure "$@" && return
  echo "refused: $*"
  cat "$work/log"
  failed=1
}
# refuses TEXT OPTION...: fails, and TEXT stands in one line.
refuses() {
  text=$1
  shift
  rm -rf "$work/build"
  if configure "$@"; then
    echo "accepted: $*"
    failed=1
  elif ! grep -qF "$text" "$work/log"; then
    echo "refused, but without '$text': $*"
    cat "$work/log"
    failed=1
  fi
}

accepts
accepts -DBACKEND=cpu -DPRECISION=f32 -DKERNELS=reference -DCPU_ARCH=
accepts -DBACKEND=cpu -DPRECISION=bf16 -DKERNELS=portable
accepts -DBACKEND=auto
grep -q 'BACKEND=auto picks cpu: ' "$work/log" || {
  echo 'BACKEND=auto does not say why'
  failed=1
}
refuses "BACKEND='vulkan' is not available in this version; available: cpu." -DBACKEND=vulkan
refuses "BACKEND='cuda' is not available in this version; available: cpu." -DBACKEND=cuda
refuses "BACKEND='metal' is not one of: cpu, auto." -DBACKEND=metal
refuses "BACKEND='' is not one of: cpu, auto." -DBACKEND=
refuses "PRECISION='f16' is not legal for backend cpu: it has f32, bf16." -DPRECISION=f16
refuses "PRECISION='f64' is not legal for backend cpu: it has f32, bf16." -DPRECISION=f64
refuses "KERNELS='fast' is not one of: native, portable, reference." -DKERNELS=fast
refuses "CPU_ARCH='pentium9' is not an architecture" -DCPU_ARCH=pentium9
refuses "here the option is -DBACKEND=cpu" -DISOTOPE_BACKEND=cpu
refuses "thread and address cannot be combined" "-DSANITIZE=address;thread"
case $compiler in *clang*) ;; *) refuses "FUZZ=ON needs clang" -DFUZZ=ON ;; esac
refuses "fix: sudo apt-get install libgtest-dev" -DTESTS=ON -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON
refuses "fix: sudo apt-get install libboost1.81-dev or libboost-dev" -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON
exit $failed
