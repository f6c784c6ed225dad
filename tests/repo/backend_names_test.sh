#!/bin/sh
# backend_names.sh accepts the source tree, and finds each breach in trees that are made to break the rule.
set -u
names=$1/tests/repo/backend_names.sh
sh "$names" "$1" || exit 1

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
plant() {
  rm -rf "$work/tree"
  mkdir -p "$work/tree/$(dirname "$1")"
  printf '%b\n' "$2" >"$work/tree/$1"
}
caught() {  # caught FILE TEXT WORDS: a tree whose only file holds TEXT must be refused, with WORDS in the report.
  plant "$1" "$2"
  report=$(sh "$names" "$work/tree")
  [ $? = 1 ] && echo "$report" | grep -q "^$1:[0-9]*: .*$3" && return
  echo "not caught in $1 as '$3': $2: $report"
  failed=1
}
passes() {
  plant "$1" "$2"
  sh "$names" "$work/tree" && return
  echo "wrongly refused in $1: $2"
  failed=1
}

caught CMakeLists.txt 'if(isotope_backend STREQUAL vulkan)' 'named for a backend'
caught include/isotope/core/a.hpp 'bool b = false;  // vulkan: a switch' 'named for a backend'
caught examples/a/main.cpp 'cudaMalloc(&p, n);' 'named for a backend'
caught tests/op/a_test.cpp '#include <isotope/backend/vulkan.hpp>' 'named for a backend'
caught .ci/jobs 'a - .ci/suite Vulkan-f32' 'named for a backend'
caught quickstart 'groups="$groups vulkan"' 'named for a backend'
caught CMakeLists.txt 'if(isotope_backend STREQUAL cpu)' 'no condition'
caught tests/a.cmake '  elseif(NOT backend STREQUAL "cpu" AND x)' 'no condition'
caught quickstart '[ "$backend" = cpu ] || programs=more' 'no condition'
caught .ci/a 'case $backend in cpu) ;; esac' 'no condition'

passes cmake/backend/vulkan.cmake 'if(vulkan)'
passes tests/vulkan/a_test.cpp '#include <isotope/backend/vulkan.hpp>'
passes kernels/conformance.json '{"backend": "vulkan"}'
passes cmake/targets.cmake 'set(isotope_host cpu)'
passes quickstart 'backend=cpu\n[ "$size" != char-gpt ] || options="--size char-gpt-cpu"'
passes tests/cpu/tests.cmake 'if(isotope_backend STREQUAL cpu)'
exit $failed
