#!/bin/sh
# compile.sh <file.cu> <object.o> [g++ option...]: compiles device code for the emulated device, for a test program of one's own that is linked so:
#   g++ -std=c++20 -I tests/cuda/emulator -rdynamic main.cpp object.o tests/cuda/emulator/runtime.cpp tests/cuda/emulator/runtime_hopper.cpp -lboost_context -lubsan
# The program runs a kernel with launch("NAME", {blocks, 1, 1}, {threads, 1, 1}, shared_bytes, arguments) of runtime.hpp. Addresses are those of the host.
set -eu
emulator=$(dirname "$(realpath "$0")")
root=$(realpath "$emulator/../../..")
file=$1 object=$2
shift 2
wrapped=${object%.o}_wrapped.cpp
"$emulator/wrap_kernels.sh" "$file" > "$wrapped"
contract=
if grep -qE '^// flags:.*-fmad=false' "$file" || expr "$(realpath "$file")" : '.*/reference/' > /dev/null; then contract=-ffp-contract=off; fi
case $(uname -m) in x86_64) machine="-mfma -mf16c" ;; *) machine= ;; esac
${CXX:-g++} -std=c++20 -O2 -g -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-parameter $machine $contract -fsanitize=alignment,bounds -fno-sanitize-recover=all \
  "$@" -I "$root/kernels/cuda" -I "$root/include" -I "$emulator" -include "$emulator/device_language.h" -c "$wrapped" -o "$object"
