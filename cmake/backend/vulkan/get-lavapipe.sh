#!/bin/sh
# cmake/backend/vulkan/get-lavapipe.sh ROOT [SUITE]: fetches lavapipe, Mesa's Vulkan driver for processors, from a newer Debian suite (forky), with loader,
# validation layer and vulkaninfo, into a private root that may be moved. cmake/backend/vulkan/run-in-root.sh runs programs in it.
# About 80 MB are downloaded, which take 350 MB unpacked.
set -u
[ $# -ge 1 ] && [ $# -le 2 ] && [ -n "$1" ] && [ "${1#-}" = "$1" ] || {
  sed -n '2,4s/^# //p' "$0" >&2
  exit 2
}
# shellcheck disable=SC2034
instead="install a Mesa of 25.2 or later with its lavapipe driver by other means, or run on a GPU"
# shellcheck source=cmake/private_root.sh
. "$(dirname -- "$0")/../../private_root.sh"

open_root "$1"
unpack "${2:-forky}" mesa-vulkan-drivers libvulkan1 vulkan-validationlayers vulkan-tools libstdc++6

"$(dirname -- "$0")/run-in-root.sh" "$new" --validate "$new/usr/bin/vulkaninfo" --summary >"$work/summary" 2>&1 || {
  tail -n 5 "$work/summary" >&2
  fail "the unpacked driver does not run" "try another suite (forky, sid)"
}
sed -n 's/^[[:space:]]*\(deviceName\|driverInfo\|apiVersion\)[[:space:]]*=/\1/p' "$work/summary"
close_root
