#!/bin/sh
# The tables of docs/SCALING.md are those that bench/scaling.py prints, and the check finds a digit and a table that are not.
set -u
. "$1/tests/repo/claims.sh"
scaling() { python3 -B "$source/bench/scaling.py" "$@"; }
source=$1
page=$source/docs/SCALING.md
scaling --check "$page" || failed=1
sed 's/^| 124M, 4 rows, tensor 2, LL128 | [0-9]/&9/' "$page" >"$work/digit.md"
refuses 1 'table steps is not what scaling.py prints. fix: ' scaling --check "$work/digit.md"
sed 's/^<!-- table weak -->$//' "$page" >"$work/table.md"
refuses 1 'table weak is not what scaling.py prints. fix: ' scaling --check "$work/table.md"
scaling --write "$work/digit.md" || failed=1
claim 'the page, written again' "$(cksum <"$page")" "$(cksum <"$work/digit.md")"
refuses 2 "'--other' is no command. fix: scaling.py [--check FILE | --write FILE]" scaling --other
exit $failed
