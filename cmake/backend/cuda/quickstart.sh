# Hooks of ./quickstart, which sources this file: they fetch nvcc if none is here that is new enough, and train nothing if there is no GPU.
# shellcheck shell=sh

get_tools() {
  script=cmake/backend/cuda/get-nvcc.sh
  why="no nvcc is here"
  for compiler in nvcc "${CUDA_PATH:-}/bin/nvcc" /usr/local/cuda/bin/nvcc build/cuda/bin/nvcc; do  # in the order of fatbins.cmake
    command -v "$compiler" >/dev/null 2>&1 || continue
    release=$("$compiler" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\),.*/\1 \2/p')
    # shellcheck disable=SC2086
    set -- ${release:-0 0}
    [ "$1" -lt 12 ] || { [ "$1" = 12 ] && [ "$2" -lt 8 ]; } || return 0
    why="$compiler is older than 12.8"
  done
  say "unpacking nvcc into build/cuda (110 MB, under NVIDIA's license), since $why: $script build/cuda"
  $script build/cuda || echo "quickstart: going on without it: nothing can be built for cuda" >&2
}

# configure_options: kernels are compiled for the GPUs that are here and have at least compute capability 8.0, which takes a fraction of the time for all. Without one
# they are compiled for the lowest architecture, whose PTX later GPUs run, too.
configure_options() {
  architectures=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d '.' | sed -n '/^[89][0-9]$/p;/^[0-9][0-9][0-9]$/p' | sed 's/^90$/90a/' | sort -u | paste -sd, -)
  echo "-DCUDA_ARCHS=${architectures:-80}"
}

more_programs() { echo isotope-info; }

# can_train BUILD: prints what isotope-info says if it cannot open a device.
can_train() {
  default=$("$1/examples/isotope-info" | sed -n 's/^\(default\|devices\)  *//p')
  case $default in "device "*) ;; *) echo "$default" ;; esac
}
