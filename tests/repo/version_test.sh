#!/bin/sh
# Versions of commits before, at and behind tags: their form, and that dpkg and rpm (where it is installed) put them into this order.
# version_test.sh SOURCE_DIR
set -u
source=$1
command -v dpkg >/dev/null 2>&1 || {
  echo "skipped: dpkg is not here"
  exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() {
  echo "$1"
  exit 1
}
version() { cmake -DPRINT=ON -DSOURCE="${1:-$work/tree}" -DVERSION=0.1.0 -P "$source/cmake/build_facts.cmake" 2>&1; }
unset GIT_DIR GIT_WORK_TREE
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CEILING_DIRECTORIES="$work"
commit() {  # at a minute of the first hour of 2026, in another time zone
  echo "$1" >"$work/tree/file"
  git -C "$work/tree" add file
  GIT_AUTHOR_DATE="2026-01-01T02:$1:00+0200" GIT_COMMITTER_DATE="2026-01-01T02:$1:00+0200" git -C "$work/tree" commit -qm "$1"
}
mkdir "$work/tree"
[ "$(version)" = 0.1.0 ] || fail "a tree without git is not 0.1.0 but '$(version)'"
git -C "$work/tree" init -q
: >"$work/versions"
note() { version >>"$work/versions"; }
commit 01 && note
version | grep -qE '^0\.1\.0~dev20260101000100\+g[0-9a-f]{12}$' || fail "the first commit is '$(version)'"
mkdir "$work/tree/inside"
[ "$(version "$work/tree/inside")" = 0.1.0 ] || fail "a folder within another repository takes that one's commit: '$(version "$work/tree/inside")'"
echo changed >"$work/tree/file" && note
git -C "$work/tree" tag v0.0.9  # of another version
commit 02 && note
git -C "$work/tree" tag v0.1.0-rc1 && note
[ "$(version)" = 0.1.0~rc1 ] || fail "the tag v0.1.0-rc1 is '$(version)'"
echo changed >"$work/tree/file" && note
commit 03 && note
version | grep -qE '^0\.1\.0~rc1\+dev20260101000300\+g[0-9a-f]{12}$' || fail "the commit after v0.1.0-rc1 is '$(version)'"
commit 04 && git -C "$work/tree" tag v0.1.0-rc2 && note
commit 05 && git -C "$work/tree" tag v0.1.0 && note
[ "$(version)" = 0.1.0 ] || fail "the tag v0.1.0 is '$(version)'"
commit 06 && note
echo 0.1.1~dev20250101000000+g000000000000 >>"$work/versions"

pairs=0
earlier=
while read -r next; do
  [ -z "$earlier" ] || {
    dpkg --compare-versions "$earlier" lt "$next" || fail "dpkg does not put '$earlier' before '$next'"
    ! command -v rpm >/dev/null 2>&1 || [ "$(rpm --eval "%{lua:print(rpm.vercmp('$earlier', '$next'))}")" = -1 ] || fail "rpm does not put '$earlier' before '$next'"
    pairs=$((pairs + 1))
  }
  earlier=$next
done <"$work/versions"
[ "$pairs" = 9 ] || fail "$pairs pairs were compared, not 9: $(cat "$work/versions")"
