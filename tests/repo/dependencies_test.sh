#!/bin/sh
# cmake/dependencies.txt and the dependencies.txt of backends are the only lists of packages: every row is complete, every package that CMake searches has
# a row, and no other file names a version.
set -u
cd "$1" || exit 1
list=cmake/dependencies.txt
lists="$list $(ls cmake/backend/*/dependencies.txt)"
failed=0
say() {
  echo "$1"
  failed=1
}
for file in $lists; do
  name=$(basename "$(dirname "$file")")
  groups="$name|$name-tests|unpacked"
  [ "$file" != $list ] || groups="tools|core|programs|tests|bench|ci"
  grep -qv '^#' "$file" || say "$file is empty"
  bad=$(grep -v '^#' "$file" | awk -v groups="^($groups)$" 'NF != 5 || $4 !~ groups || $3 == "-" { print }')
  [ -z "$bad" ] || say "$file: a row is 'name minimum tested group packages', the group one of $groups: $bad"
done
# shellcheck disable=SC2086
rows=$(cat $lists | grep -v '^#')
twice=$(echo "$rows" | awk '{ print $1 }' | sort | uniq -d)
[ -z "$twice" ] || say "$list: named twice: $twice"
for name in $(grep -rhoE 'isotope_find\([A-Za-z0-9-]+' CMakeLists.txt cmake examples tests bench | sed 's/.*(//' | grep -v '^name$' | sort -u); do
  echo "$rows" | grep -q "^$name " || say "$list has no row for '$name', which CMake looks for"
done
pinned=$(grep -nE 'find_package\((Boost|Eigen3|GTest|benchmark|CLI11|tomlplusplus|rapidcheck) [0-9]' CMakeLists.txt cmake/*.cmake */CMakeLists.txt)
[ -z "$pinned" ] || say "a version outside $list: $pinned"
version=$(sed -n 's/^  VERSION //p' CMakeLists.txt)
grep -q "^## $version" CHANGELOG.md || say "CHANGELOG.md has no section for version $version"
grep -q "ISOTOPE_FACT_VERSION \"$version\"" include/isotope/build_info.hpp || say "include/isotope/build_info.hpp does not say version $version"
exit $failed
