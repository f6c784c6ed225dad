# Hooks of ./quickstart, which sources this file: they fetch a current shader compiler if the system's is old, and shorten the training if there is no GPU.
# shellcheck shell=sh

# knows_matrices COMPILER: whether it compiles everything that kernels use.
knows_matrices() {
  for probe in cmake/backend/vulkan/probe/*.comp; do
    "$1" -V --target-env vulkan1.3 -o /dev/null "$probe" >/dev/null 2>&1 || return 1
  done
}
get_tools() {
  script=cmake/backend/vulkan/get-glslang.sh
  why="no glslang is here"
  for compiler in build/glslang/bin/glslang glslang glslangValidator; do  # in the order of shaders.cmake
    if command -v $compiler >/dev/null 2>&1; then
      knows_matrices $compiler && return
      why="$compiler cannot compile the kernels for matrix units"
      break
    fi
  done
  say "unpacking a current glslang into build/glslang (20 MB), since $why: $script build/glslang"
  $script build/glslang || echo "quickstart: going on without it: the kernels for matrix units are left out, the portable ones run" >&2
}

more_programs() { echo isotope-info; }

# training_options BUILD: prints nothing for a GPU, which trains like the cpu backend.
training_options() {
  device=$("$1/examples/isotope-info" | sed -n 's/^device *//p')
  say "device: $device" >&2
  case $device in *llvmpipe* | *SwiftShader*)
    echo "No GPU with a Vulkan driver is here, so Vulkan runs on the processor, many times slower than --backend cpu: a tiny model, and few steps." >&2
    echo "--size debug-tiny --steps 600 --eval-every 300 --seed 1"
    ;;
  esac
}
