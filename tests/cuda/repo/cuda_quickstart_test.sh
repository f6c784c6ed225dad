#!/bin/sh
# For the cuda backend, quickstart fetches a compiler where none is new enough, and trains only if there is a GPU. It is tested in a copy of its files.
set -u
. "$1/tests/repo/quickstart_copy.sh"

says libboost-context ./quickstart deps --list --all
silent_on libboost-context ./quickstart deps --list --backend cuda

program "$work/bin/dpkg-query" 'echo "installed 9999"'
program cmake/backend/cuda/get-nvcc.sh 'echo "fetching into $*"'
nvcc() { program "$1" "echo 'Cuda compilation tools, release $2, V$2.1'"; }
for version in 12.8 12.10 13.0; do
  nvcc "$work/bin/nvcc" $version
  silent_on fetching ./quickstart deps --backend cuda
done
export CUDA_PATH="$work/toolkit"
for version in 11.8 12.4; do
  nvcc "$work/bin/nvcc" $version
  nvcc "$work/toolkit/bin/nvcc" $version
  if [ ! -x /usr/local/cuda/bin/nvcc ]; then
    says 'is older than 12.8' ./quickstart deps --backend cuda
    says 'fetching into build/cuda' ./quickstart deps --backend cuda
  fi
  silent_on fetching ./quickstart deps --list --backend cuda
  silent_on fetching ./quickstart deps
done
nvcc build/cuda/bin/nvcc 13.0
silent_on fetching ./quickstart deps --backend cuda

# Kernels are compiled for the GPUs that are here.
program "$work/bin/cmake" 'echo "cmake $*"; [ "$1" != --preset ]'
program "$work/bin/nvidia-smi" 'printf "8.6\n9.0\n9.0\n"'
shows() {  # shows WORDS: what quickstart prints, where configuring fails, has the words
  ./quickstart --backend cuda 2>&1 </dev/null | grep -qF -e "$1" && return
  echo "quickstart does not configure with $1"
  failed=1
}
shows ' -DCUDA_ARCHS=86,90a '
program "$work/bin/nvidia-smi" 'printf "7.5\n12.0\n6.1\n"'
shows ' -DCUDA_ARCHS=120 '
program "$work/bin/nvidia-smi" 'printf "7.5\n"'
shows ' -DCUDA_ARCHS=80 '
program "$work/bin/nvidia-smi" 'echo "NVIDIA-SMI has failed"; exit 9'
shows ' -DCUDA_ARCHS=80 '

program "$work/bin/cmake" 'exit 0'
program build/cuda-bf16/examples/isotope-train 'echo "trains $*"'
program build/cuda-bf16/examples/isotope-generate 'exit 0'
program build/cuda-bf16/examples/isotope-info 'printf "device 0   NVIDIA H100\ndefault    device 0\nprocessor  p\n"'
says 'trains --size char-gpt-cpu --steps 2000 ' ./quickstart --backend cuda
program build/cuda-bf16/examples/isotope-info 'printf "devices    cuda: no driver\nprocessor  p\n"'
says 'nothing is trained: cuda: no driver' ./quickstart --backend cuda
silent_on 'trains ' ./quickstart --backend cuda
program build/cuda-bf16/examples/isotope-info 'printf "device 0   NVIDIA K20\ndefault    cuda: too old\n"'
says 'nothing is trained: cuda: too old' ./quickstart --backend cuda
exit $failed
