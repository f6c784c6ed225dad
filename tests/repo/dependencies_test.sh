#!/bin/sh
# cmake/dependencies.txt is the one list of packages: every row is whole, every package that CMake looks for has a row, and no other file
# names a version.
set -u
cd "$1" || exit 1
list=cmake/dependencies.txt
failed=0
say() {
  echo "$1"
  failed=1
}
rows=$(grep -v '^#' $list)
[ -n "$rows" ] || say "$list is empty"
bad=$(echo "$rows" | awk 'NF != 5 || $4 !~ /^(tools|core|programs|tests|bench|vulkan|vulkan-tests|ci|unpacked)$/ || $3 == "-" { print }')
[ -z "$bad" ] || say "$list: a row is 'name minimum tested group packages': $bad"
twice=$(echo "$rows" | awk '{ print $1 }' | sort | uniq -d)
[ -z "$twice" ] || say "$list: named twice: $twice"
for name in $(grep -rhoE 'isotope_find\([A-Za-z0-9]+' CMakeLists.txt cmake examples tests bench | sed 's/.*(//' | grep -v '^name$' | sort -u); do
  echo "$rows" | grep -q "^$name " || say "$list has no row for '$name', which CMake looks for"
done
pinned=$(grep -nE 'find_package\((Boost|Eigen3|GTest|benchmark|CLI11|tomlplusplus|rapidcheck) [0-9]' CMakeLists.txt cmake/*.cmake */CMakeLists.txt)
[ -z "$pinned" ] || say "a version outside $list: $pinned"
version=$(sed -n 's/^  VERSION //p' CMakeLists.txt)
grep -q "^## $version" CHANGELOG.md || say "CHANGELOG.md has no section for version $version"
grep -q "ISOTOPE_FACT_VERSION \"$version\"" include/isotope/build_info.hpp || say "include/isotope/build_info.hpp does not say version $version"
exit $failed
