#!/bin/sh
# CMake and the headers agree on every backend's name, rank and default precision, and BACKEND=auto is the usable one of the highest rank.
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
  grep -q "name = \"$name\"" "$header" || say "$header does not say name = \"$name\""
  grep -q "preference = $rank;" "$header" || say "$header: preference is not the RANK $rank of $file"
  grep -q "default_precision = precision::$precision;" "$header" || say "$header: default_precision is not the $precision of $file"
done

# CMakePresets.json has the presets of all backends.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cmake -P cmake/presets.cmake "$work/presets.json" && diff CMakePresets.json "$work/presets.json" || say "CMakePresets.json is not what the backends say. fix: cmake -P cmake/presets.cmake"

# Tests BACKEND=auto for every set of usable backends of three ranks, and for both orders of the list.
[ "$(sed -n 's/^ *RANK //p' cmake/backend/*.cmake | sort | uniq -d)" = "" ] || say "two backends have the same RANK"
cat >"$work/choose.cmake" <<EOF
include($PWD/cmake/best_backend.cmake)
set(isotope_low_RANK 0)
set(isotope_middle_RANK 1)
set(isotope_high_RANK 7)
foreach(backend IN LISTS USABLE)
  set(isotope_\${backend}_USABLE TRUE)
endforeach()
isotope_best_backend(forwards low high middle)
isotope_best_backend(backwards middle high low)
message("\${forwards} \${backwards}")
EOF
while read -r usable best; do
  chosen=$(cmake "-DUSABLE=$usable" -P "$work/choose.cmake" 2>&1)
  [ "$chosen" = "$best $best" ] || say "of $usable, BACKEND=auto is '$chosen', not $best"
done <<EOF
low low
middle middle
high high
low;middle middle
low;high high
middle;high high
low;middle;high high
EOF
for header in $(grep -lE 'preference = [0-9]+;' include/isotope/backend/*.hpp); do
  [ -f "cmake/backend/$(basename "$header" .hpp).cmake" ] || say "$header has no file in cmake/backend"
done
exit $failed
