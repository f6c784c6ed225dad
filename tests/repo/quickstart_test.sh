#!/bin/sh
# quickstart refuses unknown arguments in one line with exit code 2, before it installs or builds anything, and chooses packages,
# backend and length of training as documented. The choices are tested in a copy of its files, with fake programs and an additional backend.
set -u
. "$(dirname "$0")/quickstart_copy.sh"
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
backends=$(ls "$1/cmake/backend" | sed -n 's/\.cmake$//p' | tr '\n' ' ')
refuses "backend 'metal' is not available in this version; available: ${backends% }." test --backend=metal
refuses "backend '../../x' is not available" --backend ../../x
refuses "precision 'f64' is not legal for backend cpu: it has f32 bf16." --precision f64
refuses "belong to './quickstart deps'" --all
refuses "no model 'maxilm'; available: minilm." --model maxilm
refuses "no model '../../x'" --model=../../x
refuses "--model does not belong to './quickstart test'" test --model minilm
"$quickstart" --help | grep -q '^usage: ./quickstart' || {
  echo 'no usage'
  failed=1
}
sh -n "$quickstart" || failed=1

# Adds a backend, which consists only of files: its packages and its training options.
backend() {  # backend RANK USABLE
  mkdir -p cmake/backend/zebra
  sed "s/RANK .*/RANK $1/" cmake/backend/cpu.cmake >cmake/backend/zebra.cmake
  printf 'function(isotope_zebra_usable result)\n  set(${result} %s PARENT_SCOPE)\nendfunction()\n' "$2" >>cmake/backend/zebra.cmake
}
backend 99 TRUE
printf 'stripes 1 1 zebra zebra-tools\ngrass 1 1 zebra-tests zebra-checks\n' >cmake/backend/zebra/dependencies.txt
cat >cmake/backend/zebra/quickstart.sh <<'EOF'
get_tools() { echo "zebra gets its tools"; }
more_programs() { echo isotope-info; }
can_train() { [ ! -f "$1/lame" ] || echo "the zebra is lame"; }
training_options() { [ ! -f "$1/short" ] || echo "--size short"; }
EOF
says libboost1.81-dev ./quickstart deps --list
for package in zebra-tools zebra-checks; do silent_on $package ./quickstart deps --list; done
says zebra-tools ./quickstart deps --list --backend zebra
silent_on zebra-checks ./quickstart deps --list --backend zebra
for package in zebra-tools zebra-checks; do says $package ./quickstart deps --list --all; done

# Backend: the usable one of the highest rank, which CMake determines.
says 'backend auto picks zebra' ./quickstart deps --list --backend auto
backend 99 FALSE
silent_on 'backend auto picks zebra' ./quickstart deps --list --backend auto
backend -1 TRUE
silent_on 'backend auto picks zebra' ./quickstart deps --list --backend auto
picked=$("$real_cmake" -S cmake/choice -B "$work/choice" | sed -n 's/.*BACKEND=auto picks \([a-z]*\): .*/\1/p')
[ -f "$1/cmake/backend/$picked.cmake" ] || {
  echo "cmake/choice picks '$picked'"
  failed=1
}
says "backend auto picks $picked" ./quickstart deps --list --backend auto

# Tools that are not in packages, for the requested backend and for all.
program "$work/bin/dpkg-query" 'echo "installed 9999"'
says 'zebra gets its tools' ./quickstart deps --backend zebra
silent_on 'zebra gets its tools' ./quickstart deps --list --backend zebra
silent_on 'zebra gets its tools' ./quickstart deps

# Training: with the options of the backend, or like the cpu backend.
program "$work/bin/cmake" 'exit 0'
for backend in cpu zebra; do
  program build/$backend-f32/examples/isotope-train 'echo "trains $*"'
  program build/$backend-f32/examples/isotope-generate 'exit 0'
done
says 'trains --size char-gpt-cpu --steps 2000 ' ./quickstart
silent_on isotope-info ./quickstart
says 'trains --size char-gpt-cpu --steps 2000 ' ./quickstart --backend zebra
says 'building isotope-train isotope-generate isotope-info' ./quickstart --backend zebra
: >build/zebra-f32/short
says 'trains --size short ' ./quickstart --backend zebra
: >build/zebra-f32/lame
says 'nothing is trained: the zebra is lame' ./quickstart --backend zebra
silent_on 'trains ' ./quickstart --backend zebra

# A model: fetched unless it is there, and used by isotope-embed, which alone is built besides the backend's programs.
program build/cpu-f32/examples/isotope-embed 'echo "embeds $*"'
program cmake/model/get-minilm.sh 'echo "fetching into $*"; mkdir -p "$1"; : >"$1/config.json"'
says 'fetching into build/minilm' ./quickstart --model minilm
silent_on 'fetching into' ./quickstart --model minilm
says 'embeds --model build/minilm --similarities examples/embed/example.txt' ./quickstart --model=minilm
says 'building isotope-embed' ./quickstart --model minilm
silent_on 'trains ' ./quickstart --model minilm
exit $failed
