# Sourced by tests of quickstart, with the argument SOURCE_DIR. Changes to a copy of its files, where fake programs report that no package is installed and
# every package is offered. $failed becomes 1 if a claim is wrong.
# shellcheck shell=sh
source=$1
quickstart=$1/quickstart
failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree" "$work/bin" && cp -r "$quickstart" "$source/cmake" "$work/tree" || exit 1
cd "$work/tree" || exit 1
real_cmake=$(command -v cmake)
PATH=$work/bin:$PATH
program() {  # program NAME BODY: makes a shell script of that name
  mkdir -p "$(dirname "$1")"
  rm -f "$1"
  printf '#!/bin/sh\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
# says WORDS COMMAND..., silent_on WORDS COMMAND...: the command must succeed, and a line of its output must contain the words, or none may.
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

# Packages: none is installed, and all are offered.
program "$work/bin/apt-get" 'echo "apt-get $*"'
program "$work/bin/dpkg-query" 'exit 1'
program "$work/bin/apt-cache" 'echo "  Candidate: 9999"'
program "$work/bin/dpkg" 'exit 0'
