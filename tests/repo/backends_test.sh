#!/bin/sh
# CMake and the headers agree about every backend: its name, rank and default precision; auto is the usable one of the highest rank.
set -u
cd "$1" || exit 1
failed=0
say() {
  echo "$1"
  failed=1
}
for file in cmake/backend/*.cmake; do
  name=$(basename "$file" .cmake)
  header=include/isotope/backend/$name.hpp
  [ -f "$header" ] || {
    say "$file has no $header"
    continue
  }
  rank=$(sed -n 's/^ *RANK //p' "$file")
  precision=$(sed -n 's/^ *DEFAULT_PRECISION //p' "$file")
  grep -qE '^ *USABLE (TRUE|"\$\{[a-z_]+\}")$' "$file" || say "$file does not say whether it is USABLE"
  grep -q "name = \"$name\"" "$header" || say "$header does not say name = \"$name\""
  grep -q "preference = $rank;" "$header" || say "$header: preference is not the RANK $rank of $file"
  grep -q "default_precision = precision::$precision;" "$header" || say "$header: default_precision is not the $precision of $file"
done

# The message of selected.hpp lists the folder.
names=$(for file in cmake/backend/*.cmake; do basename "$file" .cmake; done | sort | paste -sd, | sed 's/,/, /g')
grep -qF "is not one of: $names. " include/isotope/selected.hpp || say "include/isotope/selected.hpp does not list the backends of cmake/backend: $names"

# BACKEND=auto, for every set of usable backends: of those that there are, of two ranks, and of a third above them. Both orders of the list.
[ "$(sed -n 's/^ *RANK //p' cmake/backend/*.cmake | sort | uniq -d)" = "" ] || say "two backends have the same RANK"
cpu=$(sed -n 's/^ *RANK //p' cmake/backend/cpu.cmake) vulkan=$(sed -n 's/^ *RANK //p' cmake/backend/vulkan.cmake)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cat >"$work/choose.cmake" <<EOF
include($PWD/cmake/best_backend.cmake)
set(isotope_cpu_RANK $cpu)
set(isotope_vulkan_RANK $vulkan)
set(isotope_third_RANK 7)
foreach(backend IN LISTS USABLE)
  set(isotope_\${backend}_USABLE TRUE)
endforeach()
isotope_best_backend(forwards cpu third vulkan)
isotope_best_backend(backwards vulkan third cpu)
message("\${forwards} \${backwards}")
EOF
while read -r usable best; do
  chosen=$(cmake "-DUSABLE=$usable" -P "$work/choose.cmake" 2>&1)
  [ "$chosen" = "$best $best" ] || say "of $usable, BACKEND=auto is '$chosen', not $best"
done <<EOF
cpu cpu
vulkan vulkan
third third
cpu;vulkan vulkan
cpu;third third
vulkan;third third
cpu;vulkan;third third
EOF
for header in $(grep -lE 'preference = [0-9]+;' include/isotope/backend/*.hpp); do
  [ -f "cmake/backend/$(basename "$header" .hpp).cmake" ] || say "$header has no file in cmake/backend"
done
exit $failed
