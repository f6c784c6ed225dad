#!/bin/sh
# Building for vulkan needs a shader compiler and headers; without either, BACKEND=auto is cpu. An empty path means that something was not found, such as the
# compiler of cuda, which BACKEND=auto prefers.
set -u
. "$1/tests/repo/configure.sh"

mkdir -p "$work/headers/vulkan"
: >"$work/headers/vulkan/vulkan_core.h"
printf '#!/bin/sh\nexit 1\n' >"$work/useless"  # a compiler that compiles nothing
printf '#!/bin/sh\nfor word; do case $word in *coopmat*) exit 1 ;; esac; done\n' >"$work/plain"  # one that knows no matrices
printf '#!/bin/sh\n' >"$work/current"
chmod +x "$work/useless" "$work/plain" "$work/current"
headers=-DISOTOPE_VULKAN_HEADERS=$work/headers
picks 'cpu: ' -DISOTOPE_NVCC= -DISOTOPE_GLSLANG= "$headers"
picks 'cpu: ' -DISOTOPE_NVCC= -DISOTOPE_GLSLANG="$work/plain" -DISOTOPE_VULKAN_HEADERS=
picks 'vulkan: ' -DISOTOPE_NVCC= -DISOTOPE_GLSLANG="$work/plain" "$headers"
refuses "needs a GLSL compiler, and neither glslang nor glslangValidator was found. fix: sudo apt-get install glslang-tools, or cmake/backend/vulkan/get-glslang.sh" \
  -DBACKEND=vulkan -DISOTOPE_GLSLANG= "$headers"
refuses "vulkan/vulkan_core.h was not found. fix: sudo apt-get install libvulkan-dev" -DBACKEND=vulkan -DISOTOPE_GLSLANG="$work/plain" -DISOTOPE_VULKAN_HEADERS=
refuses "ISOTOPE_GLSLANG='$work/none' is not there" -DBACKEND=vulkan -DISOTOPE_GLSLANG="$work/none" "$headers"
refuses "$work/useless cannot compile buffer references. fix: glslang 12" -DBACKEND=vulkan -DISOTOPE_GLSLANG="$work/useless" "$headers"
accepts -DBACKEND=vulkan -DPRECISION=bf16 -DISOTOPE_GLSLANG="$work/plain" "$headers"
grep -qF "$work/plain lacks coopmat, coopmat_bf16, coopmat2: kernels for matrix units are left out; cmake/backend/vulkan/get-glslang.sh" "$work/log" || {
  echo 'no word of kernels that are left out'
  failed=1
}
accepts -DBACKEND=vulkan -DISOTOPE_GLSLANG="$work/current" "$headers"
if grep -q lacks "$work/log"; then
  echo 'a compiler that knows everything is said to lack something'
  failed=1
fi
refuses "PRECISION='f64' is not legal for backend vulkan: it has f32, bf16." -DBACKEND=vulkan -DPRECISION=f64 -DISOTOPE_GLSLANG="$work/plain" "$headers"
exit $failed
