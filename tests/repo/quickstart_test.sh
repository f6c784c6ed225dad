#!/bin/sh
# quickstart refuses what it does not know in one line, with exit code 2 and before it installs or builds anything; and it chooses packages,
# backend, compiler and length of training as it says. The choices are made in a copy of its files, with programs that only pretend.
set -u
source=$1
quickstart=$1/quickstart
failed=0
refuses() {
  words=$1
  shift
  out=$("$quickstart" "$@" 2>&1 </dev/null)
  status=$?
  if [ $status != 2 ] || [ "$(echo "$out" | wc -l)" != 1 ] || ! echo "$out" | grep -qF -e "$words"; then
    echo "./quickstart $*: exit $status, expected 2 and one line with '$words': $out"
    failed=1
  fi
}
refuses "unknown option '--nonsense'" --nonsense
refuses "unknown option 'tset'" tset
refuses "needs a value" --backend
refuses "backend 'cuda' is not available in this version; available: cpu vulkan." --backend cuda
refuses "backend 'metal' is not available in this version; available: cpu vulkan." test --backend=metal
refuses "backend '../../x' is not available" --backend ../../x
refuses "precision 'f64' is not legal for backend cpu: it has f32 bf16." --precision f64
refuses "precision 'f64' is not legal for backend vulkan: it has f32 bf16." --precision f64 --backend vulkan
refuses "belong to './quickstart deps'" --all
"$quickstart" --help | grep -q '^usage: ./quickstart' || {
  echo 'no usage'
  failed=1
}
sh -n "$quickstart" || failed=1

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree" "$work/bin" && cp -r "$quickstart" "$source/cmake" "$work/tree" || exit 1
cd "$work/tree" || exit 1
real_cmake=$(command -v cmake)
PATH=$work/bin:$PATH
program() {  # program NAME BODY: a shell script of that name
  mkdir -p "$(dirname "$1")"
  rm -f "$1"
  printf '#!/bin/sh\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
# says WORDS COMMAND..., silent_on WORDS COMMAND...: the command succeeds and a line of its output has the words, or none has.
says() {
  words=$1
  shift
  out=$("$@" 2>&1 </dev/null) && echo "$out" | grep -qF -e "$words" && return
  echo "$*: expected '$words': $out"
  failed=1
}
silent_on() {
  words=$1
  shift
  out=$("$@" 2>&1 </dev/null) && ! echo "$out" | grep -qF -e "$words" && return
  echo "$*: unexpected '$words': $out"
  failed=1
}

# Packages: nothing is installed, everything is offered.
program "$work/bin/apt-get" 'echo "apt-get $*"'
program "$work/bin/dpkg-query" 'exit 1'
program "$work/bin/apt-cache" 'echo "  Candidate: 9999"'
program "$work/bin/dpkg" 'exit 0'
says libboost1.81-dev ./quickstart deps --list
silent_on glslang-tools ./quickstart deps --list
for package in glslang-tools libvulkan-dev libvulkan1 mesa-vulkan-drivers spirv-tools; do
  says $package ./quickstart deps --list --backend vulkan
  says $package ./quickstart deps --list --all
done
silent_on vulkan-validationlayers ./quickstart deps --list --backend vulkan
says vulkan-validationlayers ./quickstart deps --list --all

# Backend: the usable one of the highest rank, which CMake knows.
backend() { sed "s/RANK .*/RANK $2/;s/USABLE .*/USABLE $3/" cmake/backend/cpu.cmake >"cmake/backend/$1.cmake"; }
backend zebra 99 TRUE
says 'backend auto picks zebra' ./quickstart deps --list --backend auto
backend zebra 99 FALSE
silent_on 'backend auto picks zebra' ./quickstart deps --list --backend auto
backend zebra -1 TRUE
silent_on 'backend auto picks zebra' ./quickstart deps --list --backend auto
rm cmake/backend/zebra.cmake
picked=$("$real_cmake" -S cmake/choice -B "$work/choice" | sed -n 's/.*BACKEND=auto picks \([a-z]*\): .*/\1/p')
case $picked in cpu | vulkan) ;; *)
  echo "cmake/choice picks '$picked'"
  failed=1
  ;;
esac
says "backend auto picks $picked" ./quickstart deps --list --backend auto

# Shader compiler: one that knows matrices is taken, another is replaced, and when that fails quickstart goes on.
program "$work/bin/dpkg-query" 'echo "installed 9999"'
program cmake/get-glslang.sh 'echo "fetching into $*"'
for name in glslang glslangValidator; do program "$work/bin/$name" 'exit 0'; done
silent_on fetching ./quickstart deps --backend vulkan
for name in glslang glslangValidator; do program "$work/bin/$name" 'case "$*" in *bf16*) exit 1 ;; esac'; done
says 'since glslang cannot compile the kernels for matrix units' ./quickstart deps --backend vulkan
says 'fetching into build/glslang' ./quickstart deps --all
silent_on fetching ./quickstart deps
silent_on fetching ./quickstart deps --list --backend vulkan
program cmake/get-glslang.sh 'exit 1'
says 'going on without it' ./quickstart deps --backend vulkan
program build/glslang/bin/glslang 'exit 0'
silent_on 'going on without it' ./quickstart deps --backend vulkan

# Training: on a processor that plays the GPU, a smaller model and fewer steps.
program "$work/bin/cmake" 'exit 0'
for backend in cpu vulkan; do
  program build/$backend-f32/examples/isotope-train 'echo "trains $*"'
  program build/$backend-f32/examples/isotope-generate 'exit 0'
done
program build/vulkan-f32/examples/isotope-info 'echo "device     0 GeForce, 80 threads"'
says 'trains --size char-gpt-cpu --steps 2000 ' ./quickstart
says 'trains --size char-gpt-cpu --steps 2000 ' ./quickstart --backend vulkan
program build/vulkan-f32/examples/isotope-info 'echo "device     0 llvmpipe (LLVM 15.0.6, 256 bits), 2 threads"'
says 'trains --size debug-tiny --steps 600 ' ./quickstart --backend vulkan
exit $failed
