#!/bin/sh
# For the vulkan backend, quickstart chooses packages, shader compiler and length of training as documented. It is tested in a copy of its files.
set -u
. "$1/tests/repo/quickstart_copy.sh"

silent_on glslang-tools ./quickstart deps --list
for package in glslang-tools libvulkan-dev libvulkan1 mesa-vulkan-drivers spirv-tools; do
  says $package ./quickstart deps --list --backend vulkan
  says $package ./quickstart deps --list --all
done
silent_on vulkan-validationlayers ./quickstart deps --list --backend vulkan
says vulkan-validationlayers ./quickstart deps --list --all

# Shader compiler: one that supports cooperative matrices is used, another one is replaced, and if that fails quickstart continues.
program "$work/bin/dpkg-query" 'echo "installed 9999"'
program cmake/backend/vulkan/get-glslang.sh 'echo "fetching into $*"'
for name in glslang glslangValidator; do program "$work/bin/$name" 'exit 0'; done
silent_on fetching ./quickstart deps --backend vulkan
for name in glslang glslangValidator; do program "$work/bin/$name" 'case "$*" in *bf16*) exit 1 ;; esac'; done
says 'since glslang cannot compile the kernels for matrix units' ./quickstart deps --backend vulkan
says 'fetching into build/glslang' ./quickstart deps --all
silent_on fetching ./quickstart deps
silent_on fetching ./quickstart deps --list --backend vulkan
program cmake/backend/vulkan/get-glslang.sh 'exit 1'
says 'going on without it' ./quickstart deps --backend vulkan
program build/glslang/bin/glslang 'exit 0'
silent_on 'going on without it' ./quickstart deps --backend vulkan

# Training: if the device is a software driver, a smaller model and fewer steps.
program "$work/bin/cmake" 'exit 0'
program build/vulkan-f32/examples/isotope-train 'echo "trains $*"'
program build/vulkan-f32/examples/isotope-generate 'exit 0'
program build/vulkan-f32/examples/isotope-info 'echo "device     0 GeForce, 80 threads"'
says 'trains --size char-gpt-cpu --steps 2000 ' ./quickstart --backend vulkan
program build/vulkan-f32/examples/isotope-info 'echo "device     0 llvmpipe (LLVM 15.0.6, 256 bits), 2 threads"'
says 'trains --size debug-tiny --steps 600 ' ./quickstart --backend vulkan
exit $failed
