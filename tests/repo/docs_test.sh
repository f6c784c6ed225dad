#!/bin/sh
# The commands in README.md and CONTRIBUTING.md exist: scripts, presets, targets and the files they link to.
set -u
cd "$1" || exit 1
failed=0
say() {
  echo "$1"
  failed=1
}
for file in README.md CONTRIBUTING.md; do
  for preset in $(grep -oE -e '--preset [a-z0-9-]+' $file | sed 's/.* //' | sort -u); do
    grep -q "\"name\": \"$preset\"" CMakePresets.json || say "$file: no preset '$preset'"
  done
  for folder in $(grep -oE 'build/[a-z0-9-]+/' $file | sed 's|build/||;s|/||' | sort -u); do
    [ "$folder" = ci ] || grep -q "\"name\": \"$folder\"" CMakePresets.json || say "$file: build/$folder is not the folder of a preset"
  done
  for script in $(grep -oE '(^|[ `])(\./quickstart|\.ci/[a-z]+|cmake/[a-z-]+\.sh)' $file | tr -d ' `' | sort -u); do
    [ -e "$script" ] || say "$file: no script '$script'"
  done
  for target in $(grep -oE -e '--target [a-z_0-9-]+' $file | sed 's/.* //' | sort -u); do
    case $target in
    isotope-*) [ -f "examples/${target#isotope-}/main.cpp" ] || say "$file: no program '$target'" ;;
    *) grep -rqE "(add_custom_target|add_executable)\($target " cmake examples tests bench || say "$file: no target '$target'" ;;
    esac
  done
  for link in $(grep -oE '\]\([^)#:]+\)' $file | sed 's/^](//;s/)$//' | sort -u); do
    [ -e "$link" ] || say "$file: links to '$link', which is not there"
  done
done
# The program that README.md shows is the one that is built.
shown=$(sed -n '/^```cpp$/,/^```$/p' README.md | sed '1d;$d')
[ "$shown" = "$(sed 1d examples/quickstart/main.cpp)" ] || say "README.md: its program differs from examples/quickstart/main.cpp"
exit $failed
