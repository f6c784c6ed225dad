#!/bin/sh
# links.sh PROGRAM...: passes if no program names a driver's library in its dynamic section. Skips if no program is built.
set -u
seen=0
failed=0
for program in "$@"; do
  [ -f "$program" ] || continue
  seen=$((seen + 1))
  libraries=$(readelf -dW "$program") || exit 1
  drivers=$(echo "$libraries" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -E '^lib(vulkan|cuda|cudart|nvidia|nvrtc|cublas|OpenCL|GL)[.-]')
  if [ -n "$drivers" ]; then
    echo "$(basename "$program") links" $drivers
    failed=1
  fi
done
if [ $seen = 0 ]; then
  echo "skipped: none of the programs is built"
  exit 77
fi
exit $failed
