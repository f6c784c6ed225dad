#!/bin/sh
# size.sh LIMIT_KB [--code FOLDER] PROGRAM...: passes if every program, without symbols and the device code in FOLDER, is at most LIMIT_KB large. Skips if no
# program is built.
set -u
limit=$1
shift
folder=
if [ "${1-}" = --code ]; then
  folder=$2
  shift 2
fi
stripped=$(mktemp) || exit 1
trap 'rm -f "$stripped"' EXIT
measured=0
failed=0
for program in "$@"; do
  [ -f "$program" ] || continue
  strip -o "$stripped" "$program" || exit 1
  code=0
  [ -z "$folder" ] || code=$(python3 -B "$(dirname "$0")/contained.py" "$stripped" "$folder") || exit 1
  kilobytes=$((($(wc -c <"$stripped") - code + 1023) / 1024))
  echo "$(basename "$program"): $kilobytes KB, limit $limit KB; $((code / 1024)) KB of device code besides"
  measured=$((measured + 1))
  [ $kilobytes -le "$limit" ] || failed=1
done
if [ $measured = 0 ]; then
  echo "skipped: none of the programs is built"
  exit 77
fi
exit $failed
