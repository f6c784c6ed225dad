#!/bin/sh
# Scripts, presets, targets, flags of programs and linked files that README.md, CONTRIBUTING.md, bench/ and docs/ name must exist.
# The gate must run the commands that README.md gives to newcomers.
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
  for script in $(grep -oE '(^|[ `])(\./quickstart|\.ci/[a-z]+|cmake/[a-z/-]+\.sh)' $file | tr -d ' `' | sort -u); do
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
# Flags after the name of a program, in the same line and piece of code, must be flags of that program. Lines of scripts that take a
# program as an argument are skipped.
for file in README.md CONTRIBUTING.md bench/*.md docs/*.md; do
  [ "$file" = docs/FLAGS.md ] && continue
  sed 's/ #.*//;/python3/d' "$file" | grep -oE 'isotope-(train|generate|info|conform|parity|mlp|embed|serve)[^`|]*' | while read -r program rest; do
    for flag in $(echo "$rest" | grep -oE -e '(^| )--[a-z][a-z0-9-]*'); do
      grep -E "^\| \`$flag\` \|" docs/FLAGS.md | cut -d'|' -f6 | grep -qw "${program#isotope-}" || echo "$file: $program has no flag '$flag'"
    done
  done
done >"${TMPDIR:-/tmp}/flags.$$"
[ ! -s "${TMPDIR:-/tmp}/flags.$$" ] || say "$(cat "${TMPDIR:-/tmp}/flags.$$")"
rm -f "${TMPDIR:-/tmp}/flags.$$"
grep -qE '^[a-z0-9-]+ +[a-z-]+ +\./quickstart test$' .ci/jobs && grep -q '^\./quickstart test ' README.md || say "README.md: its test command is not a job of the gate"
# The program in README.md must be the one that is built.
shown=$(sed -n '/^```cpp$/,/^```$/p' README.md | sed '1d;$d')
[ "$shown" = "$(sed 1d examples/quickstart/main.cpp)" ] || say "README.md: its program differs from examples/quickstart/main.cpp"
# So must its example of embeddings, and that of the document on them.
compiled=$(sed -n '/README begins/,/README ends/p' tests/plan/embedder_test.cpp | sed '1d;$d;s/^  //')
for file in README.md docs/EMBEDDINGS.md; do
  shown=$(sed -n '/^```c++$/,/^```$/p' $file | sed '1,3d;$d')
  [ -n "$compiled" ] && [ "$shown" = "$compiled" ] || say "$file: its example differs from the one in tests/plan/embedder_test.cpp"
done
# So must that in docs/GENERATION.md, in a test.
shown=$(sed -n '/^```cpp$/,/^```$/p' docs/GENERATION.md | sed '1d;$d')
tested=$(sed -n '/^  \/\/ docs\/GENERATION.md:$/,/^}$/p' tests/interop/decoder_folder_test.cpp | sed '1d;$d;s/^  //')
[ "$shown" = "$tested" ] || say "docs/GENERATION.md: its program differs from that in tests/interop/decoder_folder_test.cpp"
# And those of device workers, in the text and above the class.
tested=$(sed -n '/The example begins/,/The example ends/p' tests/worker/example_test.cpp | sed '1d;$d')
shown=$(sed -n '/^```cpp$/,/^```$/p' docs/ARCHITECTURE.md | sed '1d;$d')
[ -n "$tested" ] && [ "$shown" = "$tested" ] || say "docs/ARCHITECTURE.md: its program differs from that in tests/worker/example_test.cpp"
shown=$(sed -n 's|^///     ||p' include/isotope/worker/device_worker.hpp)
[ "$shown" = "$tested" ] || say "worker/device_worker.hpp: its example differs from the one in tests/worker/example_test.cpp"
exit $failed
