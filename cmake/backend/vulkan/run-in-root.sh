#!/bin/sh
# cmake/backend/vulkan/run-in-root.sh ROOT [--validate] PROGRAM [ARGUMENT...]: runs a program that was built here with the C library, Vulkan loader and lavapipe
# of a root that cmake/backend/vulkan/get-lavapipe.sh made. A program that requests the validation layer gets that of the root; --validate loads it into any
# program. PROGRAM is an executable, not a script. Libraries that the root lacks are taken from the system.
set -u
me=run-in-root
validate=no
root=${1-}
[ $# = 0 ] || shift
if [ "${1-}" = --validate ]; then
  validate=yes
  shift
fi
[ $# -ge 1 ] && [ -n "$root" ] && [ "${root#-}" = "$root" ] || {
  sed -n '2,4s/^# //p' "$0" >&2
  exit 2
}
refuse() {
  echo "$me: $1. fix: $2" >&2
  exit 2
}
root=$(realpath -m -- "$root")
loader=
for file in "$root"/usr/lib/*-linux-gnu*/ld-linux*.so.*; do [ ! -e "$file" ] || loader=$file; done
driver=
for file in "$root"/usr/share/vulkan/icd.d/lvp_icd*.json; do [ ! -e "$file" ] || driver=$file; done
layers=$root/usr/share/vulkan/explicit_layer.d
[ -n "$loader" ] && [ -n "$driver" ] && [ -e "$layers/VkLayer_khronos_validation.json" ] ||
  refuse "'$root' holds no lavapipe with its loader and validation layer" "cmake/backend/vulkan/get-lavapipe.sh $root"
program=$(command -v -- "$1") || refuse "no program '$1'" "give its path"
shift

# Use the driver and layers of the root, and none of the system.
export VK_DRIVER_FILES="$driver" VK_ICD_FILENAMES="$driver" VK_LAYER_PATH="$layers" VK_IMPLICIT_LAYER_PATH="$layers/none"
if [ $validate = yes ]; then
  export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_VALIDATE_SYNC=1
fi
exec "$loader" --argv0 "$program" --library-path "${loader%/*}" "$program" "$@"
