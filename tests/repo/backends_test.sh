#!/bin/sh
# CMake and the headers agree about every backend: its name, rank and default precision; no two have one rank, and selected.hpp lists them all.
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
for header in $(grep -lE 'preference = [0-9]+;' include/isotope/backend/*.hpp); do
  [ -f "cmake/backend/$(basename "$header" .hpp).cmake" ] || say "$header has no file in cmake/backend"
done
twice=$(sed -n 's/^ *RANK //p' cmake/backend/*.cmake | sort | uniq -d)
[ -z "$twice" ] || say "two files in cmake/backend have the RANK $twice: BACKEND=auto could not tell them apart"
names=$(for file in cmake/backend/*.cmake; do basename "$file" .cmake; done | paste -sd , | sed 's/,/, /g')
grep -qF "there are: $names. " include/isotope/selected.hpp || say "include/isotope/selected.hpp does not list the backends of cmake/backend: $names"
exit $failed
