# Sourced by tests of scripts. $work is a folder that is removed at the end; $failed becomes 1 if a claim is wrong.
# shellcheck shell=sh
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
claim() {  # claim TEXT EXPECTED ACTUAL
  [ "$2" = "$3" ] && return
  echo "$1: expected '$2', got '$3'"
  failed=1
}
# refuses STATUS WORDS COMMAND...: the command must exit with this status, and its output must contain the words.
refuses() {
  expected=$1 words=$2
  shift 2
  out=$("$@" 2>&1 </dev/null)
  status=$?
  if [ $status != "$expected" ] || ! echo "$out" | grep -qF -e "$words"; then
    echo "$*: exit $status, expected $expected and '$words': $out"
    failed=1
  fi
}
# fake_pip WHEEL: makes a pip in $work/pip that copies the file, where it is asked for wheels of listed digests alone.
fake_pip() {
  mkdir -p "$work/pip/pip"
  : >"$work/pip/pip/__init__.py"
  cat >"$work/pip/pip/__main__.py" <<PY
import shutil, sys
if "download" in sys.argv:
    assert "--require-hashes" in sys.argv and "--no-deps" in sys.argv and "--only-binary=:all:" in sys.argv
    shutil.copy("$1", sys.argv[sys.argv.index("--dest") + 1])
PY
}
