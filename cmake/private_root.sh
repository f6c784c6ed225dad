# Sourced by scripts that fetch tools, such as get-*.sh of a backend. Unpacks packages of another Debian suite, with all their dependencies including the C
# library, into a folder. The system's packages, apt sources and lists are only read; maintainer scripts are not run; root rights are not needed.
# Mirror, key, proxies and passwords are those of the system's apt; ISOTOPE_DEBIAN_MIRROR=URI chooses another mirror.
#
# The folder is made under a temporary name and renamed at the end, so a failure leaves an existing one as it was:
#   open_root ROOT; unpack SUITE PACKAGE...; the caller arranges and tests $new; close_root

# shellcheck shell=sh disable=SC2154
me=$(basename -- "$0" .sh)
mark=.made-by-isotope  # only a folder that contains this file is ever replaced
work=
new=

# fail WHAT FIX: prints one line and exits with 1. The caller sets $instead to what the user can do if fetching is impossible.
fail() {
  echo "$me: $1. fix: $2" >&2
  exit 1
}

open_root() {
  root=$(realpath -m -- "$1")
  if [ -e "$root" ] && [ ! -f "$root/$mark" ] && [ -n "$(ls -A -- "$root" 2>/dev/null || echo file)" ]; then
    fail "'$root' is there and was not made by $me" "name another folder, or remove it"
  fi
  trap 'rm -rf "$work" "$new"' EXIT
  trap 'exit 1' HUP INT TERM
  work=$(mktemp -d) || exit 1
  mkdir -p "$(dirname "$root")" && new=$(mktemp -d "$root.new.XXXXXX") && chmod 755 "$new" ||
    fail "'$(dirname "$root")' cannot be written" "name another folder"
}

# Prints `URI FILE:N` of apt's first entry for Debian itself; N counts stanzas in FILE.sources and lines in FILE.list.
debian_entry() {
  # shellcheck disable=SC2016
  entry=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI) $(SOURCESENTRY)' 'Created-By: Packages' 2>/dev/null |
    sed -n 's/^Debian|Debian|main|//p' | sed -n 1p)
  if [ -z "$entry" ] && grep -qx 'ID=debian' /etc/os-release 2>/dev/null; then  # before the first apt-get update, entries have no origin
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    # shellcheck disable=SC2016
    entry=$(apt-get indextargets --no-release-info --format '$(RELEASE)|$(COMPONENT)|$(REPO_URI) $(SOURCESENTRY)' 'Created-By: Packages' 2>/dev/null |
      sed -n "s/^$codename|main|//p" | sed -n 1p)
  fi
  echo "$entry"
}

# The accepted signing keys: the key files that apt's entry FILE:N names, and Debian's. If there are none, apt accepts all keys that it trusts.
signing_keys() {
  number=${1##*:}
  case ${1%:*} in
  *.sources) awk -v n="$number" 'BEGIN { RS = "" } NR == n' "${1%:*}" | sed -n 's/^[Ss]igned-[Bb]y: *//p' ;;
  *.list) sed -n "${number}s/.*signed-by=\([^] ]*\).*/\1/p" "${1%:*}" | tr ',' '\n' ;;
  esac 2>/dev/null | tr ' ' '\n' | grep '^/'
  ls /usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp 2>/dev/null
}

# Compares the fetched packages with their rows in the dependencies.txt beside the script. Too old a version is refused, and one that differs from the tested
# version is reported.
check_versions() {
  rows=$work/rows
  grep ' unpacked ' "$(dirname -- "$0")/dependencies.txt" >"$rows"
  while read -r _ minimum tested _ package; do
    for file in "$work/archives/${package}_"*.deb; do
      [ -e "$file" ] || continue
      version=$(dpkg-deb -f "$file" Version | sed 's/^[0-9]*://; s/[-+~].*//')
      dpkg --compare-versions "$version" ge "$minimum" ||
        fail "suite '$suite' has $package $version, $minimum or later is needed" "a newer suite (forky, sid)"
      [ "$version" = "$tested" ] || echo "$me: $package is $version, the tests ran with $tested"
    done
  done <"$rows"
}

# unpack SUITE PACKAGE...: fills $new.
unpack() {
  suite=$1
  shift
  for tool in apt-get dpkg dpkg-deb; do
    command -v $tool >/dev/null 2>&1 || fail "$tool is not here, this takes Debian packages" "$instead"
  done
  entry=$(debian_entry)
  mirror=${ISOTOPE_DEBIAN_MIRROR:-${entry%% *}}
  [ -n "$mirror" ] || fail "apt knows no Debian archive here" "$instead"
  keys=$(signing_keys "${entry##* }" | sort -u | tr '\n' ' ')
  mkdir -p "$work/sources" "$work/preferences" "$work/lists/partial" "$work/archives/partial"
  {
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nArchitectures: %s\nTargets: Packages\n' "$mirror" "$suite" "$(dpkg --print-architecture)"
    [ -z "$keys" ] || echo "Signed-By: $keys"
  } >"$work/sources/suite.sources"
  : >"$work/status"  # apt sees no installed packages, so it fetches everything, the C library too
  cat >"$work/apt.conf" <<CONF
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$work/sources";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "$work/preferences";
Dir::State "$work";
Dir::State::Lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work";
Dir::Cache::archives "$work/archives";
APT::Default-Release "";
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
Acquire::Retries "3";
Debug::NoLocking "true";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
CONF
  apt-get -c "$work/apt.conf" -qq -o APT::Update::Error-Mode=any update >"$work/log" 2>&1 || {
    tail -n 5 "$work/log" >&2
    fail "apt cannot read suite '$suite' at $mirror" "see whether the network is there and the mirror has the suite; ISOTOPE_DEBIAN_MIRROR=URI names another"
  }
  apt-get -c "$work/apt.conf" -qq install -y --download-only "$@" >"$work/log" 2>&1 || {
    tail -n 5 "$work/log" >&2
    fail "apt cannot fetch $* from suite '$suite'" "try again, or another suite (forky, sid)"
  }
  check_versions
  # In suites where /lib is a separate folder, its files are moved to /usr/lib.
  mkdir -p "$new/usr/lib" "$new/usr/lib64"
  ln -s usr/lib "$new/lib"
  ln -s usr/lib64 "$new/lib64"
  for package in "$work"/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$new" --keep-directory-symlink --no-same-owner --no-same-permissions ||
      fail "'$(basename "$package")' cannot be unpacked" "see whether the disk is full"
  done
  libc=$(find "$new/usr/lib" -name libc.so.6 | sed -n 1p)
  libraries=$(dirname "${libc#"$new"/}")
  loader=$(find "$new/$libraries" -name 'ld-linux*.so.*' | sed -n 1p)
  [ -n "$libc" ] && [ -n "$loader" ] || fail "suite '$suite' brought no C library" "try another suite (forky, sid)"
  loader=${loader#"$new"/}
  echo "$suite: $*" >"$new/$mark"
}

close_root() {
  rm -rf "$root.old.$$"
  [ ! -e "$root" ] || mv "$root" "$root.old.$$" || exit 1
  mv "$new" "$root" || {
    [ ! -e "$root.old.$$" ] || mv "$root.old.$$" "$root"
    exit 1
  }
  rm -rf "$root.old.$$"
}
