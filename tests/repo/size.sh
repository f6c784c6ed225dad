#!/bin/sh
# size.sh LIMIT_KB PROGRAM...: passes if every program, without symbols, is at most LIMIT_KB large. Skips if no program is built.
set -u
limit=$1
shift
stripped=$(mktemp) || exit 1
trap 'rm -f "$stripped"' EXIT
measured=0
failed=0
for program in "$@"; do
  [ -f "$program" ] || continue
  strip -o "$stripped" "$program" || exit 1
  kilobytes=$((($(wc -c <"$stripped") + 1023) / 1024))
  echo "$(basename "$program"): $kilobytes KB, limit $limit KB"
  measured=$((measured + 1))
  [ $kilobytes -le "$limit" ] || failed=1
done
if [ $measured = 0 ]; then
  echo "skipped: none of the programs is built"
  exit 77
fi
exit $failed
