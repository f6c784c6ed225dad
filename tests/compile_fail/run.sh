#!/bin/sh
# run.sh SOURCE COMPILER FLAGS...: passes when SOURCE does not compile and one `error:` line matches the extended regex of its first line,
# `// expect: <regex>`. Lines `// note: <regex>` below it must match a line of the compiler's output, lines `// never: <regex>` none.
# The file is compiled, not only parsed: -fsyntax-only leaves templates that are used late uninstantiated.
set -u
source=$1
shift
regex=$(sed -n '1s|^// expect: ||p' "$source")
if [ -z "$regex" ]; then
  echo "$source: the first line is not '// expect: <regex>'"
  exit 1
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
if "$@" -fdiagnostics-color=never -S -o /dev/null "$source" >"$log" 2>&1; then
  echo "$source compiles; it must not"
  exit 1
fi
if ! grep 'error:' "$log" | grep -Eq -e "$regex"; then
  echo "$source: no error line matches '$regex'. The errors are:"
  grep 'error:' "$log" | head -n 20
  grep -q 'error:' "$log" || head -n 20 "$log"
  exit 1
fi
sed -n 's|^// note: ||p' "$source" | while read -r note; do
  grep -Eq -e "$note" "$log" || { echo "$source: no line of the output matches '$note':" && head -n 30 "$log" && exit 1; }
done || exit 1
sed -n 's|^// never: ||p' "$source" | while read -r never; do
  ! grep -E -m1 -e "$never" "$log" || { echo "$source: this line must not match '$never'" && exit 1; }
done || exit 1
grep 'error:' "$log" | grep -E -m1 -e "$regex"
