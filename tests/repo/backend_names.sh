#!/bin/sh
# backend_names.sh ROOT: code for one backend must be in files and folders that are named for it. Elsewhere the words vulkan and cuda may occur only where the
# lists below allow it, and no condition of CMake or of a script may name the host's backend, cpu. Prints `file:line: rule: text` for every breach and exits
# with 1 if there is one. Comments are searched, too, so that readers of common code need not know a backend.
set -u
cd "$1" || exit 2
found=$(mktemp) || exit 2
trap 'rm -f "$found"' EXIT
top="CMakeLists.txt quickstart .ci cmake examples include kernels tests"

# Allowed are: the verdicts of isotope-conform and the table that is made from them; names of driver libraries; macros of compilers; this rule and its test.
listed='kernels/(conformance\.json|README\.md)|tests/repo/(links|rules|backend_names|backend_names_test)\.sh'
# files: prints every file whose path names no backend.
files() { for path in $top; do [ -e "$path" ] && find "$path" -type f; done | grep -viE 'vulkan|cuda' | sort; }

files | grep -vxE "$listed" | xargs -r grep -niHE 'vulkan|cuda' /dev/null |
  sed -E 's|^([^:]*:[0-9]+):|\1: only files and folders named for a backend name it, or hooks: cmake/backends.cmake: |' >>"$found"
files | grep -E '(^|/)(CMakeLists\.txt|[^/]*\.cmake|quickstart)$|^\.ci/|^cmake/.*\.sh$' | grep -vE '(^|/)cpu[/.]' |
  xargs -r grep -nHE '(^[[:space:]]*(else)?if ?\(|\[ |\<(case|test) ).*[ =(]"?cpu(["); ]|$)' /dev/null |
  sed -E 's|^([^:]*:[0-9]+):|\1: no condition on the backend of the host: |' >>"$found"

[ ! -s "$found" ] || {
  cat "$found"
  exit 1
}
