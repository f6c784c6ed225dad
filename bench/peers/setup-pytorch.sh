#!/bin/bash
# Makes a private root with PyTorch of a newer Debian suite, the peer that compare-step.py times. Nothing of the host's package state changes.
# usage: setup-pytorch.sh DIR [SUITE]      SUITE: sid (default), forky, trixie ...
#        then: DIR/python PROGRAM.py ...   runs a program with that PyTorch, and sees the host's own files; DIR may be moved afterwards
# needs: apt, Debian's archive keyring and network, no root rights. Packages are unpacked, their maintainer scripts are not run.
#        ISOTOPE_DEBIAN_MIRROR=URI overrides the mirror, which is otherwise the one that apt uses for Debian itself.
# exit:  0 done or already there (the last line printed is torch's version), 1 failed (DIR is then left as it was), 2 usage
set -euo pipefail

[ $# -ge 1 ] && [ $# -le 2 ] && [ -n "$1" ] && [ "${1#-}" = "$1" ] || { sed -n '3,7s/^# //p' "$0" >&2; exit 2; }
root=$(realpath -m -- "$1")
suite=${2:-sid}
# OpenBLAS is named because the resolver settles for the slow reference BLAS. Its OpenMP build shares torch's own threads;
# the pthread build brings a second pool that fights them (bench/CPU.md has the figures).
packages=(python3-torch python3-numpy libopenblas0-openmp)
stamp=$root/.isotope-peer
wanted="$suite ${packages[*]}"

fail() { echo "setup-pytorch: $*" >&2; exit 1; }

# A stamp whose python does not import torch is a root that broke since: it is made again.
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && version=$("$root/python" -c 'import torch, numpy; print(torch.__version__)' 2>/dev/null); then
    echo "$version"
    exit 0
fi
[ ! -e "$root" ] || [ -f "$stamp" ] || [ -z "$(ls -A -- "$root" 2>/dev/null)" ] ||
    fail "'$root' exists and is not a root made by this script. fix: name another folder or remove it"
command -v apt-get >/dev/null || fail "apt-get is not here. fix: run on Debian or a derivative of it"

mirror=${ISOTOPE_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' |
    awk -F'|' '$1 == "Debian" && $2 == "Debian" && $3 == "main" && !uri { uri = $4 } END { print uri }')}
[ -n "$mirror" ] || fail "apt knows no Debian repository. fix: set ISOTOPE_DEBIAN_MIRROR to one"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -f "$keyring" ] || fail "'$keyring' is missing. fix: apt-get install debian-archive-keyring"

work=$(mktemp -d)
fresh=$root.new.$$
trap 'rm -rf "$work" "$fresh"' EXIT
mkdir -p "$work"/{lists/partial,archives/partial,parts} "$fresh"
: >"$work/status" # an empty package database: apt then fetches everything down to the suite's own C library
printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nArchitectures: %s\nSigned-By: %s\n' \
    "$mirror" "$suite" "$(dpkg --print-architecture)" "$keyring" >"$work/parts/peer.sources"
apt=(-qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/parts" -o Dir::State::Lists="$work/lists"
    -o Dir::State::status="$work/status" -o Dir::Cache="$work" -o Dir::Cache::archives="$work/archives"
    -o APT::Install-Recommends=false -o Acquire::Languages=none -o Acquire::Retries=3
    -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=true)
apt-get "${apt[@]}" update >&2 || fail "apt cannot read suite '$suite' at $mirror. fix: check the suite's name and the network"
apt-get "${apt[@]}" install -y --download-only "${packages[@]}" >/dev/null || fail "apt cannot fetch ${packages[*]} from '$suite'. fix: try another suite (sid, forky)"

for package in "$work"/archives/*.deb; do dpkg-deb -x "$package" "$fresh"; done

# The root's own loader and libraries, named on the command line, so that neither a chroot nor the host's libraries come in.
# OpenBLAS comes first on the path: which BLAS a Debian system uses is decided by maintainer scripts, and none ran here.
cat >"$fresh/python" <<'LAUNCH'
#!/bin/bash
# Runs this root's python3 on the host's files.
root=$(cd -- "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")" && pwd)
for loader in "$root"/usr/lib/*-linux-gnu*/ld-linux*.so.* "$root"/lib/*-linux-gnu*/ld-linux*.so.*; do [ -e "$loader" ] && break; done
libraries=$(dirname -- "$loader")
blas=$root/usr/lib/${libraries##*/}/openblas-openmp
[ -d "$blas" ] || { echo "python: '$blas' is missing. fix: make the root again with setup-pytorch.sh" >&2; exit 1; }
export PYTHONHOME=$root/usr PYTHONNOUSERSITE=1
unset PYTHONPATH
exec "$loader" --argv0 "$root/usr/bin/python3" --library-path "$blas:$libraries:$root/usr/lib/${libraries##*/}:$root/lib/${libraries##*/}:$root/usr/lib" \
    "$(realpath -- "$root/usr/bin/python3")" "$@"
LAUNCH
chmod +x "$fresh/python"
version=$("$fresh/python" -c 'import torch, numpy; print(torch.__version__)') || fail "the unpacked python3 does not import torch (see above); suite '$suite' may be in the middle of a transition. fix: try another suite"
echo "$wanted" >"$fresh/.isotope-peer"

rm -rf "$root"
mv "$fresh" "$root"
echo "$(ls "$work"/archives/*.deb | wc -l) packages of $suite, $(du -sh "$root" | cut -f1) unpacked" >&2
echo "$version"
