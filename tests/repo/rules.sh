#!/bin/sh
# rules.sh ROOT: checks conventions of the source that compilers do not check. Each is a search that must find nothing. Prints
# `file:line: rule: text` for every breach and exits with 1 if there is one. Comments are not searched.
set -u
cd "$1" || exit 2
found=$(mktemp) || exit 2
trap 'rm -f "$found" "$found.files"' EXIT

# code FOLDER...: prints every line of the C++ files below the folders as file:line:text, without comments.
code() {
  for folder in "$@"; do [ -d "$folder" ] && find "$folder" -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.h' -o -name '*.cuh' -o -name '*.cu' \); done | sort |
    xargs -r grep -nH '' /dev/null | sed 's|//.*||'
}
# breach RULE REGEX: records the lines from stdin whose text matches, with the name of the rule.
breach() { sed -nE "s#^([^:]*:[0-9]+):(.*($2).*)\$#\1: $1: \2#p" >>"$found"; }

# directive RULE REGEX FOLDER...: records preprocessor lines that match.
directive() {
  rule=$1 regex=$2
  shift 2
  code "$@" | sed -nE 's/^([^:]*:[0-9]+:)[[:space:]]*[#][[:space:]]*/\1/p' | sed -nE "s~^([^:]*:[0-9]+):(($regex).*)\$~\1: $rule: #\2~p" >>"$found"
}

# abort() without an argument ends the process; communicator::abort(cause) ends a group of ranks.
functions='\<(getenv|secure_getenv|setenv|exit|_Exit|quick_exit|printf|fprintf|puts|fputs|perror|system)\>[[:space:]]*\(|\<abort[[:space:]]*\([[:space:]]*\)'
code include kernels | breach 'the library never reads the environment, prints or exits' "$functions|\<environ\>|std::(cout|cerr|clog)"
code include kernels | breach 'the library throws nothing: return a result<T>' '\<throw\>'

platforms='__GNUC__|__clang__|_MSC_VER|__NVCC__|__CUDACC__|__linux__|__unix__|_WIN32|__APPLE__|__x86_64__|__aarch64__'
directive 'conditions on the compiler or platform belong in core/compiler.hpp and backend/' "(el)?if.*($platforms)" include kernels examples
sed -i -e '/^include\/isotope\/core\/compiler.hpp:.*conditions on the compiler/d' -e '/^include\/isotope\/core\/processor_name.hpp:.*conditions on the compiler/d' -e '/^include\/isotope\/backend\/.*conditions on the compiler/d' "$found"

code include kernels examples | grep -v '^include/isotope/selected.hpp:' |
  breach 'selected.hpp alone reads the choice macros' '\<ISOTOPE_(BACKEND|PRECISION|KERNELS)\>'
directive 'one model source: no conditional compilation' '(el)?if' include/isotope/model examples
# Exceptions are isotope-parity, which compares two backends, and isotope-conform, which tests cpu in every build.
named='models and programs name no backend: take iso::selected, or an op is missing'
code include/isotope/model examples | sed 's/"[^"]*"//g' | breach "$named" \
  '(^|[^:[:alnum:]_])((iso|isotope)::)?backend::[a-z_]+\>|\<(ISOTOPE|VK|CU)_[A-Z_]+\>|\<vk[A-Z][A-Za-z0-9]+\>[[:space:]]*\('
directive "$named" 'include[[:space:]]*[<"](isotope/|(\.\./)+)?(backend|kernels)[/.]' examples
sed -i -E '/^examples\/(parity|conform)\/.*models and programs name no backend/d' "$found"

# A return without a value would end a test early without a reason. In a lambda it must be on the lambda's line.
early="a test that cannot run says so with GTEST_SKIP"
code tests | grep '_test.cpp:' | breach "$early" '\<if[[:space:]]*\(.*\)[[:space:]]*(\{[[:space:]]*)?return;'
code tests | grep -E '_test.cpp:[0-9]+:[[:space:]]*return;' | breach "$early" 'return;'
[ ! -d tests ] || find tests -path '*/programs/*_test.py' | sort | xargs -r grep -nHE '^[[:space:]]+return$' /dev/null |
  sed 's|\(:[0-9]*\):|\1: a test that cannot run says so with skip:|' >>"$found"
code tests | breach 'tests leave environment, folder and locale alone' '\<(getenv|setenv|putenv|unsetenv|chdir|setlocale)\>[[:space:]]*\(|locale::global|current_path\([^)]'
code tests | breach 'tests have no clocks and do not sleep' '\<(sleep_for|sleep_until|usleep|nanosleep|steady_clock|system_clock|high_resolution_clock)\>'
code tests | breach 'tests have unique folders, no fixed paths' '"/(tmp|home|var)/'

directive 'a heavy header in the core costs every user compile time' \
  'include[[:space:]]*<(iostream|regex|chrono|random|functional|ranges|Eigen/[A-Za-z]*)>' \
  include/isotope/core include/isotope/op include/isotope/plan include/isotope/nn include/isotope/optim include/isotope/model

# Includes point inwards: core <- op <- plan <- nn, optim <- model, and core, op, plan <- backend <- kernels.
inwards() { directive "$1 may not include that: includes point inwards" "include[[:space:]]*[<\"](isotope/|(\.\./)+)($2)/" "$1"; }
outer='io|train|interop|config|conform|eager|generate|calibrate|worker|serve'
inwards include/isotope/core "op|plan|nn|optim|model|backend|kernels|$outer"
inwards include/isotope/op "plan|nn|optim|model|backend|kernels|$outer"
inwards include/isotope/plan "nn|optim|model|backend|kernels|$outer"
inwards include/isotope/nn "model|backend|kernels|$outer"
inwards include/isotope/optim "model|backend|kernels|$outer"
inwards include/isotope/model "backend|kernels|$outer"
inwards include/isotope/conform "nn|optim|model|backend|kernels|train|generate|serve"  # specifications share no code with the kernels that they judge
inwards include/isotope/backend "nn|optim|model|$outer"
inwards kernels "nn|optim|model|$outer"
inwards include/isotope/eager "nn|optim|model|io|train|config|conform|generate|calibrate|worker|serve"

# The following searches include comments.
for folder in include kernels examples tests bench cmake; do [ -d $folder ] && find $folder -type f ! -path 'tests/repo/*'; done | sort >"$found.files"
xargs -r grep -nHE '\<(TODO|FIXME|XXX)\>' /dev/null <"$found.files" | sed 's|\(:[0-9]*\):|\1: an open end belongs in the issue list:|' >>"$found"
grep -E '\.(hpp|cpp|h|cuh|cu|comp|glsl)$' "$found.files" | xargs -r awk 'FNR == 401 { print FILENAME ":401: a file has at most 400 lines: split it" }' >>"$found"

if [ -s "$found" ]; then
  cat "$found"
  exit 1
fi
