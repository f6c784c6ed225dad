#!/bin/sh
# run.sh SOURCE COMPILER FLAGS...: passes when SOURCE does not compile and one `error:` line matches the extended regex of its first line,
# `// expect: <regex>`. The file is compiled, not only parsed: -fsyntax-only leaves templates that are used late uninstantiated.
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
if grep 'error:' "$log" | grep -Eq -e "$regex"; then
  grep 'error:' "$log" | grep -E -m1 -e "$regex"
  exit 0
fi
echo "$source: no error line matches '$regex'. The errors are:"
grep 'error:' "$log" | head -n 20
grep -q 'error:' "$log" || head -n 20 "$log"
exit 1
