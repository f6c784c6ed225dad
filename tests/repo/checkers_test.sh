#!/bin/sh
# The checkers must fail when they should: compile-fail and compile-time runners, limits on programs, the count of test results, the list of jobs.
set -u
source=$1
compiler=$3
. "$1/tests/repo/claims.sh"

compile_fail() {
  printf '%b\n' "$1" >"$work/a.cpp"
  sh "$source/tests/compile_fail/run.sh" "$work/a.cpp" "$compiler" -std=c++20 >/dev/null 2>&1
  echo $?
}
claim 'the message asked for' 0 "$(compile_fail '// expect: need a [0-9]+\nstatic_assert(false, "need a 7");')"
claim 'another message' 1 "$(compile_fail '// expect: need a 8\nstatic_assert(false, "need a 7");')"
claim 'a file that compiles' 1 "$(compile_fail '// expect: .\nint main() {}')"
claim 'no expectation' 1 "$(compile_fail 'static_assert(false, "need a 7");')"
claim 'the text of a note is not enough' 1 "$(compile_fail '// expect: wanted_name\nvoid f(int wanted_name);\nint main() { f("x"); }')"
claim 'a note asked for' 0 "$(compile_fail '// expect: need\n// note: need a 7\n// never: need a 8\nstatic_assert(false, "need a 7");')"
claim 'an error inside a template used late' 0 \
  "$(compile_fail '// expect: late\ntemplate <class T> void f() { static_assert(sizeof(T) == 0, "late"); }\nint main() { f<int>(); }')"
claim 'a note that is missing' 1 "$(compile_fail '// expect: need\n// note: wanted_name\nstatic_assert(false, "need a 7");')"
claim 'a line that must not be there' 1 "$(compile_fail '// expect: need\n// never: need a 7\nstatic_assert(false, "need a 7");')"

compile_time() {
  printf '%b\n' "$1" >"$work/a.cpp"
  python3 "$source/tests/compile_time/run.py" "$work/a.cpp" "$compiler" -std=c++20 >/dev/null 2>&1
  echo $?
}
claim 'within the limits' 0 "$(compile_time '// limit: ratio=60 megabytes=4000 flags=-O2 -g\nint main() {}')"
claim 'too slow' 1 "$(compile_time '// limit: ratio=0.00001 megabytes=4000\nint main() {}')"
claim 'too large' 1 "$(compile_time '// limit: ratio=60 megabytes=1\nint main() {}')"
claim 'does not compile' 1 "$(compile_time '// limit: ratio=60 megabytes=4000\nint main() { x; }')"
claim 'no limit' 1 "$(compile_time 'int main() {}')"

size() {
  sh "$source/tests/repo/size.sh" "$@" >/dev/null 2>&1
  echo $?
}
printf 'int main() {}' >"$work/a.cpp"
"$compiler" "$work/a.cpp" -o "$work/a"
claim 'a small program' 0 "$(size 1000 "$work/a")"
claim 'a large program' 1 "$(size 1 "$work/a")"
claim 'no program' 77 "$(size 1 "$work/none")"
mkdir "$work/code"
head -c 3000000 /dev/zero | tr '\0' 'x' >"$work/code/a.fatbin"
printf 'asm(".section .rodata\\n.incbin \\"%s\\"\\n.text"); int main() {}' "$work/code/a.fatbin" >"$work/a.cpp"
"$compiler" "$work/a.cpp" -o "$work/a"
claim 'a program with much device code' 0 "$(size 1000 --code "$work/code" "$work/a")"
claim 'the same without a word of it' 1 "$(size 1000 "$work/a")"
echo other >"$work/code/a.fatbin"
claim 'the same with other device code' 1 "$(size 1000 --code "$work/code" "$work/a")"

links() {
  sh "$source/tests/repo/links.sh" "$@" >/dev/null 2>&1
  echo $?
}
printf 'int f() { return 0; }' >"$work/f.cpp"
"$compiler" -shared -fPIC -Wl,-soname,libOpenCL.so.1 "$work/f.cpp" -o "$work/libf.so"
printf 'int f();\nint main() { return f(); }' >"$work/b.cpp"
"$compiler" "$work/b.cpp" "$work/libf.so" -o "$work/b"
claim 'a program without a driver' 0 "$(links "$work/a")"
claim 'a program that links a driver' 1 "$(links "$work/a" "$work/b")"
claim 'no program to look at' 77 "$(links "$work/none")"

# A project with one test for each outcome; the counts must be those of ctest.
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(outcomes NONE)
enable_testing()
add_test(NAME good COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME also_good COMMAND ${CMAKE_COMMAND} -E echo "<failure> <skipped>")
add_test(NAME skips COMMAND sh -c "exit 77")
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME says_skipped COMMAND sh -c "echo '[  SKIPPED ] a.b'")
set_tests_properties(says_skipped PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED")
add_test(NAME disabled COMMAND ${CMAKE_COMMAND} -E true)
set_tests_properties(disabled PROPERTIES DISABLED TRUE)
if(BROKEN)
  add_test(NAME bad COMMAND ${CMAKE_COMMAND} -E false)
  add_test(NAME missing COMMAND ${CMAKE_CURRENT_BINARY_DIR}/no-such-program)
endif()
CMAKE
results() {
  cmake -S "$work/project" -B "$work/build" -DBROKEN="$1" >/dev/null
  ctest --test-dir "$work/build" --output-junit "$work/tests.xml" >/dev/null 2>&1
}
results OFF
claim 'passed and skipped' '2 passed, 0 failed, 3 skipped' "$("$source/.ci/summary" "$work/tests.xml" $?)"
claim 'ctest failed without a failed test' '2 passed, 1 failed, 3 skipped' "$("$source/.ci/summary" "$work/tests.xml" 8)"
results ON
claim 'a failed test and a missing program' '2 passed, 2 failed, 3 skipped' "$("$source/.ci/summary" "$work/tests.xml" $?)"
claim 'failed tests fail the summary' 1 "$("$source/.ci/summary" "$work/tests.xml" 0 >/dev/null; echo $?)"
claim 'no result file' 1 "$("$source/.ci/summary" "$work/none.xml" 0 >/dev/null; echo $?)"

# With many cases in one process, each case counts, even if the process ended in the middle.
together() { "$source/.ci/together" "$work/build" "$@" | tail -n 1; }
results OFF
claim 'tests that are no GoogleTest' '2 passed, 0 failed, 3 skipped' "$(together)"
claim 'behind a command' '1 passed, 0 failed, 0 skipped' "$(together --behind env A=b -- -R ^good$)"
claim 'a selection of nothing' '0 passed, 1 failed, 0 skipped' "$(together -- -R no_such_test)"
cat >"$work/cases.cpp" <<'CPP'
#include <gtest/gtest.h>
#include <csignal>
TEST(cases, pass) {}
TEST(cases, pass_too) {}
TEST(cases, skip) { GTEST_SKIP() << "why"; }
#ifdef BAD
TEST(cases, fail) { EXPECT_EQ(1, 2); }
TEST(ending, comes_first) {}
TEST(ending, ends_all) { std::abort(); }
TEST(leaving, comes_first) {}
TEST(leaving, ends_all) { std::_Exit(0); }
TEST(behind, passes) { std::atexit([] { std::_Exit(1); }); }
extern "C" void crash_in_driver();
int cases_before = 0;
TEST(driver, comes_first) { cases_before = 1; }
TEST(driver, crashes_after_another) { if (cases_before) crash_in_driver(); }
TEST(driver_always, comes_first) { cases_before = 1; }
TEST(driver_always, crashes) { crash_in_driver(); }
#endif
CPP
echo '#include <csignal>
extern "C" void crash_in_driver() { std::raise(SIGSEGV); }' >"$work/driver.cpp"
gtest_project() {
  cat >"$work/project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(cases CXX)
enable_testing()
find_package(GTest REQUIRED)
include(GoogleTest)
add_library(some_driver SHARED $work/driver.cpp)
add_executable(cases $work/cases.cpp $source/tests/crash_report.cpp)
set_target_properties(cases PROPERTIES CXX_STANDARD 20)
target_compile_definitions(cases PRIVATE $1)
target_link_libraries(cases PRIVATE GTest::gtest_main some_driver)
gtest_discover_tests(cases)
CMAKE
  rm -rf "$work/build"
  cmake -S "$work/project" -B "$work/build" -DCMAKE_CXX_COMPILER="$compiler" >/dev/null && cmake --build "$work/build" >/dev/null
}
gtest_project GOOD
claim 'cases of GoogleTest' '2 passed, 0 failed, 1 skipped' "$(together)"
claim 'one of its cases' '1 passed, 0 failed, 0 skipped' "$(together -- -R pass_too)"
gtest_project BAD
claim 'a case that fails' '2 passed, 1 failed, 1 skipped' "$(together -- -R ^cases)"
claim 'cases of a process that ended' '1 passed, 1 failed, 0 skipped' "$(together -- -R ^ending)"
claim 'cases of a process that left without a word' '1 passed, 1 failed, 0 skipped' "$(together -- -R ^leaving)"
claim 'a process that fails behind its cases' '1 passed, 1 failed, 0 skipped' "$(together -- -R ^behind)"
claim 'cases of a process that crashed run again' '2 passed, 0 failed, 0 skipped' "$(together -- -R '^driver\.')"
claim 'a crash that comes again' '1 passed, 1 failed, 0 skipped' "$(together -- -R '^driver_always\.')"
claim 'what is said of a crash' 'SEGV in driver.crashes_after_another, within libsome_driver.so; its cases run again, each alone' \
  "$("$source/.ci/together" "$work/build" -- -R '^driver\.' | sed -n 's/^ended early: cases 1 (2 cases): //p')"
claim 'cases that fail' 1 "$("$source/.ci/together" "$work/build" >/dev/null; echo $?)"

# The list of jobs: the sum of counts, and the exit status.
cat >"$work/jobs" <<'JOBS'
# comment
one     -      echo 5 passed, 0 failed, 1 skipped
two     watch  true
three   -      false
four    -      echo 3 passed, 2 failed, 0 skipped
five    -      echo 0 passed, 0 failed, 2 skipped
JOBS
run() { "$source/.ci/run" --no-deps --logs "$work/logs" --jobs "$work/jobs" "$@"; }
monitor() { "$source/.ci/monitor" --once --logs "$work/logs" --jobs "$work/jobs" "$@"; }
claim 'the sum of the jobs' '9 passed, 3 failed, 3 skipped' "$(run | tail -n 1)"
claim 'jobs that fail' 1 "$(run >/dev/null; echo $?)"
claim 'jobs that pass' 0 "$(run one two >/dev/null; echo $?)"
claim 'jobs that only skip' 1 "$(run five >/dev/null; echo $?)"
claim 'an unknown job' 2 "$(run six 2>/dev/null; echo $?)"
claim 'the monitor runs the watched jobs' 'two' "$(monitor | sed -n '1s/ .*//p')"
claim 'the monitor passes' 0 "$(monitor >/dev/null; echo $?)"
claim 'the monitor fails' 1 "$(monitor three >/dev/null; echo $?)"

mkdir -p "$work/no-git/.ci"
cp "$source/.ci/lint" "$work/no-git/.ci/lint"
claim 'lint where git lists no files' 1 "$("$work/no-git/.ci/lint" format 2>/dev/null; echo $?)"
exit $failed
