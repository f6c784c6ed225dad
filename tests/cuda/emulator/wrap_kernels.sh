#!/bin/sh
# wrap_kernels.sh <file.cu> [module] > <wrapped.cpp>: a C++ file that includes the device code and exports isotope_emulated_NAME for each kernel. With `module` the
# result becomes a shared library of its own, and what it holds in static variables is overwritten before each launch.
set -eu
file=$(realpath "$1")
echo "#include \"$file\""
statics='nullptr, 0'
if [ "${2:-}" = module ]; then
  echo 'extern "C" __attribute__((visibility("hidden"))) char __bss_start[], _end[];'
  statics='__bss_start, std::size_t(_end - __bss_start)'
fi
cat <<'HEAD'
namespace isotope_emulated {
constexpr int first_of() { return 0; }
template <class... More> constexpr int first_of(int n, More...) { return n; }
}  // namespace isotope_emulated
namespace isotope::cuda::gpu {}
HEAD
kernels=$(grep -cE '__global__ .*\(' "$file" || true)
found=$(grep -cE '^ *extern "C" __global__ void .*\(const __grid_constant__ ' "$file" || true)
if [ "$kernels" != "$found" ]; then
  echo "$file: $kernels lines have __global__, but $found are of the form: extern \"C\" __global__ void NAME(const __grid_constant__ TYPE a)" >&2
  exit 1
fi
sed -nE 's/^ *extern "C" __global__ void (__launch_bounds__\((.*)\) +)?([A-Za-z0-9_]+)\(const __grid_constant__ ([^)]*[^) ]) +[A-Za-z_0-9]+\).*$/\3|\2|\4/p' "$file" |
  while IFS='|' read -r name bounds type; do
    cat <<END
namespace isotope::cuda::gpu {
extern "C" {
extern ISOTOPE_EMULATOR_EXPORT const isotope_emulated::kernel isotope_emulated_$name;
const isotope_emulated::kernel isotope_emulated_$name = {"$name", sizeof($type), [](const void* a) { $name(*static_cast<const $type*>(a)); },
                                                         isotope_emulated::first_of($bounds), $statics};
}
}  // namespace isotope::cuda::gpu
END
  done
