#!/bin/sh
# The judge of the job minilm accepts a program that prints the recorded vectors, and rejects one that changes them a little, exchanges two, makes them longer or
# lets them depend on the batch. A fake isotope-embed looks vectors up.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fixture=$1/tests/fixtures/minilm
failed=0
cat >"$work/isotope-embed" <<'PY'
#!/usr/bin/env python3
import json, pathlib, struct, sys
fixture, how = sys.argv[2].split("|")
_, _, _, text, _, out = sys.argv
texts = [json.loads(line) for line in pathlib.Path(fixture, "texts.jsonl").read_text().splitlines()]
data = pathlib.Path(fixture, "expected.npy").read_bytes()
rows = [list(struct.unpack("<384f", data[128 + 1536 * k:128 + 1536 * (k + 1)])) for k in range(len(texts))]
lines = pathlib.Path(text).read_text().splitlines()
vectors = [list(rows[texts.index(line)]) for line in lines]
if how == "changed":
    vectors[1][0] += 6e-3
elif how == "exchanged":
    vectors[0], vectors[1] = vectors[1], vectors[0]
elif how == "longer":
    vectors = [[1.001 * x for x in v] for v in vectors]
elif how == "batch" and len(lines) == 1:
    vectors[0][5] *= 1 + 1e-6
elif how == "fewer":
    vectors.pop()
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 384), }" % len(vectors)
header = header.ljust(117) + "\n"
pathlib.Path(out).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + b"".join(struct.pack("<384f", *v) for v in vectors))
PY
chmod +x "$work/isotope-embed"
judged() {  # judged HOW STATUS
  out=$(python3 -B "$fixture/judge.py" "$work/isotope-embed" "$fixture|$1" 2>&1)
  status=$?
  failures=$(echo "$out" | sed -n '$s/^[0-9]* passed, \([0-9]*\) failed, 0 skipped$/\1/p')
  [ $status = "$2" ] && [ "${failures:-none}" != none ] && [ $((failures > 0)) = "$2" ] && return
  echo "$1: exit $status, expected $2: $out"
  failed=1
}
judged as-they-are 0
for how in changed exchanged longer batch fewer; do judged $how 1; done
exit $failed
