# Sourced by tests of build options, with the arguments SOURCE_DIR BINARY_DIR COMPILER. `accepts OPTION...` expects that the options configure, `refuses TEXT
# OPTION...` that they do not and why, `picks WORDS OPTION...` which backend BACKEND=auto chooses. $failed becomes 1 if one of them fails; $work is a folder.
# shellcheck shell=sh
source=$1
compiler=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
configure() { cmake -S "$source" -B "$work/build" -DCMAKE_CXX_COMPILER="$compiler" -DTESTS=OFF -DEXAMPLES=OFF -DBENCH=OFF "$@" >"$work/log" 2>&1; }
accepts() {
  rm -rf "$work/build"
  configure "$@" && return
  echo "refused: $*"
  cat "$work/log"
  failed=1
}
# refuses TEXT OPTION...: configuring fails, and one line of the output contains TEXT.
refuses() {
  text=$1
  shift
  rm -rf "$work/build"
  if configure "$@"; then
    echo "accepted: $*"
    failed=1
  elif ! grep -qF "$text" "$work/log"; then
    echo "refused, but without '$text': $*"
    cat "$work/log"
    failed=1
  fi
}
picks() {
  words=$1
  shift
  accepts -DBACKEND=auto "$@"
  grep -qF "BACKEND=auto picks $words" "$work/log" || {
    echo "BACKEND=auto does not pick '$words': $*"
    cat "$work/log"
    failed=1
  }
}
