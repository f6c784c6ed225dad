#!/bin/sh
# Building for cuda needs nvcc, and BACKEND=auto takes cuda only if an NVIDIA driver is here, too. An empty path means that something was not found. The compilers
# are scripts that answer as nvcc does, since nothing is compiled.
set -u
. "$1/tests/repo/configure.sh"

fake() {  # fake NAME VERSION ARCHITECTURE...
  name=$1 version=$2
  shift 2
  printf '#!/bin/sh\ncase $1 in\n--version) echo "Cuda compilation tools, release %s, V%s.1" ;;\n--list-gpu-code) printf "%%s\\n" %s ;;\nesac\n' "$version" "$version" "$*" >"$work/$name"
  chmod +x "$work/$name"
}
fake current 13.0 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120
fake earlier 12.8 sm_80 sm_90
: >"$work/driver"
nvcc=-DISOTOPE_NVCC=$work/current
driver=-DISOTOPE_CUDA_DRIVER=$work/driver
picks 'cuda: ' "$nvcc" "$driver"
for missing in "$nvcc -DISOTOPE_CUDA_DRIVER=" "-DISOTOPE_NVCC= $driver"; do
  # shellcheck disable=SC2086
  accepts -DBACKEND=auto $missing
  if grep -qF 'picks cuda' "$work/log"; then
    echo "BACKEND=auto picks cuda with $missing"
    failed=1
  fi
done

refuses "BACKEND=cuda needs nvcc 12.8 or later, and no nvcc was found. fix: cmake/backend/cuda/get-nvcc.sh build/cuda" -DBACKEND=cuda -DISOTOPE_NVCC=
refuses "ISOTOPE_NVCC='$work/none' is not there" -DBACKEND=cuda "-DISOTOPE_NVCC=$work/none"
refuses "PRECISION='f64' is not legal for backend cuda: it has f32, bf16." -DBACKEND=cuda -DPRECISION=f64 "$nvcc"
refuses "CUDA_ARCHS='sm_90': 'sm_90' is not an architecture" -DBACKEND=cuda "$nvcc" -DCUDA_ARCHS=sm_90
refuses "CUDA_ARCHS='70' names no architecture that $work/current knows" -DBACKEND=cuda "$nvcc" -DCUDA_ARCHS=70
refuses "here the option is -DCUDA_ARCHS=80" -DBACKEND=cuda "$nvcc" -DISOTOPE_CUDA_ARCHS=80
accepts -DBACKEND=cuda -DPRECISION=f32 "$nvcc" -DCUDA_ARCHS=80,90a
accepts -DBACKEND=cuda "$nvcc"
if grep -q 'left out' "$work/log"; then
  echo 'a compiler that knows everything is said to lack something'
  failed=1
fi
accepts -DBACKEND=cuda "-DISOTOPE_NVCC=$work/earlier"
grep -qF "$work/earlier does not know the architectures 86, 89, 100, 120: they are left out" "$work/log" || {
  echo 'no word of architectures that are left out'
  failed=1
}

# A GPU that is newer than the compiler runs PTX of the lowest architecture.
for archs in 100 121a,103; do
  accepts -DBACKEND=cuda "-DISOTOPE_NVCC=$work/earlier" -DCUDA_ARCHS=$archs
  grep -qF "$work/earlier does not know the architectures $(echo $archs | sed 's/,/, /'): kernels are compiled for 80, whose PTX the driver" "$work/log" || {
    echo "no word of PTX for $archs"
    failed=1
  }
done
grep -q '"80,compute_80"' "$work/build/fatbins/isotope/fatbins/build.hpp" || {
  echo 'the kernels are not compiled for 80'
  failed=1
}

# A compiler on PATH that is too old is passed over.
mkdir "$work/bin"
fake bin/nvcc 11.8 sm_80
PATH=$work/bin:$PATH
accepts -DBACKEND=auto
if grep -qF "ISOTOPE_NVCC:FILEPATH=$work/bin" "$work/build/CMakeCache.txt"; then
  echo 'nvcc 11.8 is taken'
  failed=1
fi
fake bin/nvcc 12.9 sm_80
accepts -DBACKEND=cuda
grep -qF "ISOTOPE_NVCC:FILEPATH=$work/bin/nvcc" "$work/build/CMakeCache.txt" || {
  echo 'nvcc on PATH is not taken'
  failed=1
}
exit $failed
