#!/bin/sh
# make_root.sh FILE.tar: a minimal Debian of this system's suite, with the apt sources of this system, as a tar file. A file that is there is kept.
set -u
cd "$(dirname "$0")/../.." || exit 1
file=$1
[ ! -f "$file" ] || exit 0
# shellcheck source=cmake/private_root.sh
. cmake/private_root.sh
entry=$(debian_entry)
mirror=${ISOTOPE_DEBIAN_MIRROR:-${entry%% *}}
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
[ -n "$mirror" ] && [ -n "$suite" ] || fail "apt knows no Debian archive here" "run it on Debian"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
debootstrap --variant=minbase --include=ca-certificates "$suite" "$work/root" "$mirror" || fail "debootstrap failed" "see above"
rm -rf "$work/root/etc/apt" "$work/root/var/cache/apt/archives/"*.deb
cp -RL /etc/apt "$work/root/etc/apt" && cp -RLn /usr/share/keyrings "$work/root/usr/share/" && cp -L /etc/resolv.conf "$work/root/etc/resolv.conf" || exit 1
[ ! -d /usr/local/share/ca-certificates ] || cp -RL /usr/local/share/ca-certificates "$work/root/usr/local/share/" && chroot "$work/root" update-ca-certificates || exit 1
chroot "$work/root" apt-get update -q || fail "apt does not work in the new system" "see above"
tar -C "$work/root" -cf "$file.part" . && mv "$file.part" "$file"
