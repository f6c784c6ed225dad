#!/bin/sh
# rules.sh accepts the source tree, and finds each breach in trees that are made to break a rule.
set -u
rules=$1/tests/repo/rules.sh
sh "$rules" "$1" || exit 1

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
plant() {
  rm -rf "$work/tree"
  mkdir -p "$work/tree/$(dirname "$1")"
  printf '%b\n' "$2" >"$work/tree/$1"
}
# caught FILE TEXT WORDS: a tree whose only file holds TEXT must be refused, with WORDS in the report.
caught() {
  plant "$1" "$2"
  if report=$(sh "$rules" "$work/tree"); then
    echo "not caught in $1: $2"
    failed=1
  elif ! echo "$report" | grep -q "^$1:[0-9]*: .*$3"; then
    echo "caught in $1, but not as '$3': $report"
    failed=1
  fi
}
passes() {
  plant "$1" "$2"
  sh "$rules" "$work/tree" || {
    echo "wrongly refused in $1: $2"
    failed=1
  }
}

caught include/isotope/core/a.hpp 'auto p = std::getenv("HOME");' environment
caught kernels/cpu/a.hpp '  std::printf("x");' prints
caught include/isotope/a.hpp 'std::cout << 1;' prints
caught include/isotope/a.hpp 'if (bad) abort();' exits
caught include/isotope/a.hpp 'std::abort( );' exits
passes include/isotope/a.hpp 'group.abort(cause);'
caught include/isotope/a.hpp 'throw 1;' throws
caught kernels/cpu/a.hpp '#if defined(__GNUC__)' compiler
caught examples/a/main.cpp '#ifdef __linux__' compiler
caught examples/a/main.cpp '#if 1' 'one model source'
caught include/isotope/model/a.hpp '# ifdef FAST' 'one model source'
caught include/isotope/nn/a.hpp 'int x = ISOTOPE_BACKEND;' 'choice macros'
caught examples/a/main.cpp 'using m = iso::backend::metal;' 'name no backend'
caught include/isotope/model/a.hpp 'template <> struct x<backend::cpu> {};' 'name no backend'
caught examples/a/main.cpp 'ISOTOPE_GPU_ONLY(x);' 'name no backend'
caught include/isotope/model/a.hpp 'VkResult r = VK_SUCCESS;' 'name no backend'
caught examples/a/main.cpp 'vkQueueSubmit2(q, 1, &s, f);' 'name no backend'
caught examples/a/main.cpp '#include <isotope/backend/metal.hpp>' 'name no backend'
caught tests/core/a_test.cpp 'if (!gpu) return;' GTEST_SKIP
caught tests/core/a_test.cpp 'if (!gpu) { return; }' GTEST_SKIP
caught tests/core/a_test.cpp 'if (!gpu) {\n    EXPECT_TRUE(x);\n    return;\n  }' GTEST_SKIP
caught tests/programs/a_test.py 'def test_a(f):\n    if not gpu:\n        return' 'with skip'
caught tests/core/a_test.cpp 'setenv("A", "b", 1);' environment
caught tests/core/a_test.cpp 'std::filesystem::current_path(dir);' folder
caught tests/core/a_test.cpp 'std::this_thread::sleep_for(x);' sleep
caught tests/core/a_test.cpp 'auto p = "/tmp/x";' 'fixed paths'
caught include/isotope/plan/a.hpp '#include <iostream>' 'heavy header'
caught include/isotope/core/a.hpp '#include <Eigen/Core>' 'heavy header'
caught include/isotope/core/a.hpp '#include <isotope/plan/graph.hpp>' inwards
caught include/isotope/model/a.hpp '#include <isotope/backend/cpu.hpp>' inwards
caught include/isotope/op/a.hpp '#include "../plan/layout.hpp"' inwards
caught include/isotope/conform/op/a.hpp '#include <isotope/kernels/cpu/portable/matmul.hpp>' inwards
caught kernels/cpu/a.hpp '#include "isotope/nn/linear.hpp"' inwards
caught include/isotope/backend/a.hpp '#include <isotope/eager/eager.hpp>' inwards
caught include/isotope/eager/a.hpp '#include <isotope/model/gpt.hpp>' inwards
caught include/isotope/core/a.hpp '// TODO: more' 'open end'
caught include/isotope/core/a.hpp "$(seq 1 401)" '400 lines'
for kind in comp glsl cu cuh h; do caught kernels/gpu/a.$kind "$(seq 1 401)" '400 lines'; done
for kind in cu cuh h; do caught kernels/gpu/a.$kind '  printf("x");' prints; done

passes include/isotope/core/a.hpp 'int exit_code; // never call exit() or printf("x") here'
passes include/isotope/core/a.hpp 'std::snprintf(buffer, n, "x"); auto y = at_exit(z);'
passes include/isotope/core/compiler.hpp '#if defined(__GNUC__)'
passes include/isotope/backend/a.hpp '#if defined(__linux__)'
passes include/isotope/eager/a.hpp '#include <isotope/eager/element.hpp>'
passes examples/a/main.cpp 'print("ISOTOPE_GPU_X backend::metal"); use(target::backend::name);  // backend::cpu'
passes examples/parity/main.cpp 'using oracle = iso::backend::cpu;'
passes include/isotope/selected.hpp 'using b = backend::ISOTOPE_BACKEND;'
passes tests/core/a_test.cpp 'if (!gpu) GTEST_SKIP() << "no device";'
passes include/isotope/core/a.hpp "$(seq 1 400)"
exit $failed
