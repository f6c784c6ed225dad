#!/bin/sh
# Tests get-glslang.sh, get-lavapipe.sh and run-in-root.sh without a network: what they refuse, that a failure leaves existing folders unchanged, and, with
# packages made here and a fake apt, that the unpacked tools run from any folder.
set -u
scripts=$1/cmake/backend/vulkan
. "$1/tests/repo/claims.sh"
# refuses STATUS WORDS COMMAND...: the command must exit with this status, and its last line must contain the words.
refuses() {
  expected=$1 words=$2
  shift 2
  out=$("$@" 2>&1 </dev/null)
  status=$?
  if [ $status != "$expected" ] || ! echo "$out" | tail -n 1 | grep -qF -e "$words"; then
    echo "$*: exit $status, expected $expected and a last line with '$words': $out"
    failed=1
  fi
}
program() {  # program NAME BODY: makes a shell script of that name
  rm -f "$1"
  printf '#!/bin/sh\n%s\n' "$2" >"$1"
  chmod +x "$1"
}

for script in get-glslang get-lavapipe; do
  refuses 2 'About ' "$scripts/$script.sh"
  refuses 2 'About ' "$scripts/$script.sh" --help
  refuses 2 'About ' "$scripts/$script.sh" a b c
  mkdir -p "$work/foreign" && : >"$work/foreign/file"
  refuses 1 "was not made by $script. fix: name another folder" "$scripts/$script.sh" "$work/foreign"
  refuses 1 "was not made by $script. fix: name another folder" "$scripts/$script.sh" "$work/foreign/file"
done
claim 'a folder that was refused' file "$(ls "$work/foreign")"

refuses 2 'PROGRAM is an executable' "$scripts/run-in-root.sh"
refuses 2 'PROGRAM is an executable' "$scripts/run-in-root.sh" "$work"
refuses 2 'PROGRAM is an executable' "$scripts/run-in-root.sh" "$work" --validate
refuses 2 "holds no lavapipe with its loader and validation layer. fix: cmake/backend/vulkan/get-lavapipe.sh $work" "$scripts/run-in-root.sh" "$work" true

# The programs that the scripts use, without apt.
mkdir "$work/bin"
for tool in sh dirname basename realpath readlink ls rm mkdir mktemp chmod mv cp ln cat tail sed awk grep sort tr id tar find sleep; do
  ln -s "$(command -v $tool)" "$work/bin/$tool"
done
without_debian() { env PATH="$work/bin" ISOTOPE_DEBIAN_MIRROR= "$@"; }
refuses 1 'apt-get is not here, this takes Debian packages. fix: put glslang' without_debian "$scripts/get-glslang.sh" "$work/prefix"
refuses 1 'apt-get is not here, this takes Debian packages. fix: install a Mesa' without_debian "$scripts/get-lavapipe.sh" "$work/root"
# A fake apt that only knows other archives, such as Ubuntu's.
program "$work/bin/apt-get" ':'
program "$work/bin/dpkg" 'echo amd64'
program "$work/bin/dpkg-deb" 'exit 1'
program "$work/bin/grep" 'case "$*" in *os-release*) exit 1 ;; esac; exec '"$(command -v grep)"' "$@"'
refuses 1 'apt knows no Debian archive here. fix: put glslang' without_debian "$scripts/get-glslang.sh" "$work/prefix"
refuses 1 'apt knows no Debian archive here. fix: install a Mesa' without_debian "$scripts/get-lavapipe.sh" "$work/root"
claim 'what a refusal leaves behind' "bin foreign" "$(ls "$work" | tr '\n' ' ' | sed 's/ $//')"

command -v dpkg-deb >/dev/null 2>&1 && command -v readelf >/dev/null 2>&1 || exit $failed

# An archive with one package: a program that prints its arguments, under the names of the tools, and the C library that it needs.
echo_program=$(command -v /bin/echo)
loader=$(readelf -lW "$echo_program" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
libc=$(ldd "$echo_program" | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')
libraries=usr/lib/$(basename "$(dirname "$libc")")
package=$work/package
mkdir -p "$package/DEBIAN" "$package/usr/bin" "$package/$libraries" "$package/usr/share/doc" "$work/archive"
describe() { printf 'Package: glslang-tools\nVersion: %s\nArchitecture: all\nMaintainer: none\nDescription: none\n' "$1" >"$package/DEBIAN/control"; }
describe 99.1-2
for tool in glslang spirv-val spirv-opt spirv-as spirv-dis; do cp "$echo_program" "$package/usr/bin/$tool"; done
cp -L "$libc" "$package/$libraries/libc.so.6"
cp -L "$loader" "$package/$libraries/$(basename "$loader")"
dpkg-deb --build "$package" "$work/archive/glslang-tools_1_all.deb" >/dev/null || exit 1
for tool in dpkg dpkg-deb; do rm "$work/bin/$tool" && ln -s "$(command -v $tool)" "$work/bin/$tool"; done
# The fake apt logs its calls; `update` fails without a network, `install` copies the archive.
apt() {
  program "$work/bin/apt-get" "case \"\$*\" in
*indextargets*) echo 'Debian|Debian|main|http://mirror.invalid/debian/ /etc/apt/none.sources:1' ;;
*update) $1 ;;
*install*) for word; do [ \"\$last\" = -c ] && folder=\$(dirname \"\$word\"); last=\$word; done; cp $work/archive/*.deb \"\$folder/archives\" ;;
esac"
}
get() { without_debian "$scripts/get-glslang.sh" "$work/deep/prefix"; }
apt true
get >"$work/log" 2>&1 || {
  cat "$work/log"
  failed=1
}
claim 'a version that the tests did not run with' 'get-glslang: glslang-tools is 99.1, the tests ran with' "$(grep -o '^get-glslang: glslang-tools is 99.1, the tests ran with' "$work/log")"
run() { "$1/bin/glslang" one 'two  three'; }
claim 'the tool' 'one two  three' "$(run "$work/deep/prefix")"
claim 'what is left of the system' '' "$(find "$work/deep/prefix/usr" -path '*/share/*' -o -path '*/usr/bin/*')"
: >"$work/deep/prefix/kept"
describe 15.3-1
dpkg-deb --build "$package" "$work/archive/glslang-tools_1_all.deb" >/dev/null
refuses 1 "suite 'forky' has glslang-tools 15.3, 15.4 or later is needed" get
describe 1:15.4-1
apt 'echo "E: no network"; exit 100'
refuses 1 "apt cannot read suite 'forky' at http://mirror.invalid/debian/" get
rm "$work"/archive/*.deb
apt true
refuses 1 'apt cannot fetch glslang-tools' get
rm "$package/usr/bin/spirv-dis"
dpkg-deb --build "$package" "$work/archive/glslang-tools_1_all.deb" >/dev/null
refuses 1 'the suite has no spirv-dis' get
claim 'a prefix after failures' kept "$(ls "$work/deep/prefix" | grep kept)"
claim 'folders beside it' prefix "$(ls "$work/deep")"
mv "$work/deep/prefix" "$work/moved"
claim 'a tool that was moved' 'one two  three' "$(run "$work/moved")"
cp "$echo_program" "$package/usr/bin/spirv-dis"
dpkg-deb --build "$package" "$work/archive/glslang-tools_1_all.deb" >/dev/null
mv "$work/moved" "$work/deep/prefix"
get >/dev/null 2>&1 || failed=1
claim 'a prefix made again' '' "$(ls "$work/deep/prefix" | grep kept)"
exit $failed
