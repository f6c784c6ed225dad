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
refuses "BACKEND='cuda' is not available in this version; available: cpu, vulkan." -DBACKEND=cuda
refuses "BACKEND='metal' is not one of: cpu, vulkan, auto." -DBACKEND=metal
refuses "BACKEND='' is not one of: cpu, vulkan, auto." -DBACKEND=
refuses "PRECISION='f16' is not legal for backend cpu: it has f32, bf16." -DPRECISION=f16
refuses "PRECISION='f64' is not legal for backend cpu: it has f32, bf16." -DPRECISION=f64
refuses "KERNELS='fast' is not one of: native, portable, reference." -DKERNELS=fast
refuses "CPU_ARCH='pentium9' is not an architecture" -DCPU_ARCH=pentium9
refuses "here the option is -DBACKEND=cpu" -DISOTOPE_BACKEND=cpu
refuses "thread and address cannot be combined" "-DSANITIZE=address;thread"

# The vulkan backend needs a shader compiler and headers, and without one of them auto is cpu. An empty path stands for what was not found.
picks() {
  words=$1
  shift
  accepts -DBACKEND=auto "$@"
  grep -qF "BACKEND=auto picks $words" "$work/log" || {
    echo "BACKEND=auto does not pick '$words': $*"
    cat "$work/log"
    failed=1
  }
}
mkdir -p "$work/headers/vulkan"
: >"$work/headers/vulkan/vulkan_core.h"
printf '#!/bin/sh\nexit 1\n' >"$work/useless"  # a compiler that compiles nothing
printf '#!/bin/sh\nfor word; do case $word in *coopmat*) exit 1 ;; esac; done\n' >"$work/plain"  # one that knows no matrices
printf '#!/bin/sh\n' >"$work/current"
chmod +x "$work/useless" "$work/plain" "$work/current"
headers=-DISOTOPE_VULKAN_HEADERS=$work/headers
picks 'cpu: ' -DISOTOPE_GLSLANG= "$headers"
picks 'cpu: ' -DISOTOPE_GLSLANG="$work/plain" -DISOTOPE_VULKAN_HEADERS=
picks 'vulkan: ' -DISOTOPE_GLSLANG="$work/plain" "$headers"
refuses "needs a GLSL compiler, and neither glslang nor glslangValidator was found. fix: sudo apt-get install glslang-tools, or cmake/get-glslang.sh" \
  -DBACKEND=vulkan -DISOTOPE_GLSLANG= "$headers"
refuses "vulkan/vulkan_core.h was not found. fix: sudo apt-get install libvulkan-dev" -DBACKEND=vulkan -DISOTOPE_GLSLANG="$work/plain" -DISOTOPE_VULKAN_HEADERS=
refuses "ISOTOPE_GLSLANG='$work/none' is not there" -DBACKEND=vulkan -DISOTOPE_GLSLANG="$work/none" "$headers"
refuses "$work/useless cannot compile buffer references. fix: glslang 12" -DBACKEND=vulkan -DISOTOPE_GLSLANG="$work/useless" "$headers"
accepts -DBACKEND=vulkan -DPRECISION=bf16 -DISOTOPE_GLSLANG="$work/plain" "$headers"
grep -qF "$work/plain lacks coopmat, coopmat_bf16, coopmat2: kernels for matrix units are left out; cmake/get-glslang.sh" "$work/log" || {
  echo 'no word of kernels that are left out'
  failed=1
}
accepts -DBACKEND=vulkan -DISOTOPE_GLSLANG="$work/current" "$headers"
if grep -q lacks "$work/log"; then
  echo 'a compiler that knows everything is said to lack something'
  failed=1
fi
refuses "PRECISION='f64' is not legal for backend vulkan: it has f32, bf16." -DBACKEND=vulkan -DPRECISION=f64 -DISOTOPE_GLSLANG="$work/plain" "$headers"

case $compiler in *clang*) ;; *) refuses "FUZZ=ON needs clang" -DFUZZ=ON ;; esac
refuses "fix: sudo apt-get install libgtest-dev" -DTESTS=ON -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON
refuses "fix: sudo apt-get install libboost1.81-dev or libboost-dev" -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON
exit $failed
