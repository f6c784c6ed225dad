#!/bin/sh
# cmake/backend/cuda/get-nvcc.sh PREFIX: unpacks nvcc from NVIDIA's packages on PyPI (wheels.txt, under NVIDIA's license) as PREFIX/bin/nvcc, with cuobjdump and
# nvdisasm. PREFIX is a private folder that may be moved; the build looks in build/cuda. About 110 MB are downloaded, which take 270 MB unpacked.
set -u
[ $# = 1 ] && [ -n "$1" ] && [ "${1#-}" = "$1" ] || {
  sed -n '2,3s/^# //p' "$0" >&2
  exit 2
}
# shellcheck disable=SC2034
instead="install the CUDA toolkit 12.8 or later, or configure with -DISOTOPE_NVCC=FILE"
# shellcheck source=cmake/private_root.sh
. "$(dirname -- "$0")/../../private_root.sh"
beside=$(dirname -- "$0")

open_root "$1"
command -v python3 >/dev/null 2>&1 || fail "python3 is not here, it fetches the packages" "install python3, or $instead"
case $(uname -m) in
x86_64) targets=x86_64-linux ;;
aarch64) targets=sbsa-linux ;;
*) fail "NVIDIA has no nvcc for $(uname -m)" "$instead" ;;
esac
python3 -B "$beside/../../fetch_wheels.py" "$beside/wheels.txt" 'nvidia/cu[0-9]+' "$work" "$new" >"$work/log" 2>&1 || {
  tail -n 5 "$work/log" >&2
  fail "NVIDIA's packages cannot be fetched from PyPI" "see whether the network is there, or $instead"
}
# nvcc looks for headers and libraries of its target where the toolkit has them.
mkdir -p "$new/targets/$targets" || exit 1
for folder in include lib; do ln -s "../../$folder" "$new/targets/$targets/$folder"; done

cat >"$work/probe.cu" <<'CU'
#include <cuda_bf16.h>
#include <cstdint>
extern "C" __global__ void probe(std::uint64_t* p) { *p += threadIdx.x; }
CU
"$new/bin/nvcc" -std=c++20 -fatbin -arch=sm_80 -o "$work/probe.fatbin" "$work/probe.cu" >"$work/log" 2>&1 || {
  tail -n 5 "$work/log" >&2
  fail "the unpacked nvcc does not compile" "see whether g++ is here, or $instead"
}
"$new/bin/nvcc" --version | sed -n 's/^Cuda compilation tools, //p'
echo "wheels.txt" >"$new/$mark"
close_root
