#!/bin/sh
# use.sh ROOT.tar FOLDER RESULTS: installs the packages of FOLDER in a new copy of the system ROOT.tar, uses and removes them. Writes a line `passed WHAT`,
# `failed WHAT` or `skipped WHAT` for each check. isotope-dev builds README's program in four ways: with find_package, with g++ alone, with the flags of
# isotope.pc, and for each other backend that it has, without that backend's compilers.
set -u
tar=$(realpath "$1")
folder=$(realpath "$2")
results=$(realpath "$3")
here=$(realpath "$(dirname "$0")")
source=$here/../..
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
tar -C "$root" -xf "$tar" && mkdir -p "$root/work/log" && cp "$folder"/*.deb "$root/work" || exit 1
sed -n '/^```cpp$/,/^```$/p' "$source/README.md" | sed '1d;$d' >"$root/work/main.cpp"
cat >"$root/work/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES CXX)
find_package(isotope REQUIRED)
add_executable(app main.cpp)
target_link_libraries(app PRIVATE isotope::isotope)
CMAKE

# Nothing of this system's environment but a proxy reaches the root.
within() {
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive HOME=/root \
    ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} chroot "$root" sh -ec "cd /work; $1"
}
# check WHAT COMMANDS: runs commands in the root. The shell ends at the first that fails, for which `! command` does not count.
check() {
  number=$((number + 1))
  if within "$2" >"$root/work/log/$number" 2>&1; then
    echo "passed $1" >>"$results"
  else
    echo "failed $1" >>"$results"
    tail -n 15 "$root/work/log/$number"
    return 1
  fi
}
number=0
# A file of the packages, named for the package: its name would be that of a registered one otherwise.
deb() { (cd "$root/work" && ls "$1"_*.deb); }
version() { dpkg-deb -f "$root/work/$(deb "$1")" Version; }
trains='grep -q "^step 100 *loss 0"'  # the program learns its text

check "apt installs isotope-dev" "apt-get install -y --no-install-recommends ./$(deb isotope-dev) g++ cmake make pkg-config" || exit 0
check "isotope-dev has the version of its file" "[ \"\$(dpkg-query -W -f '\${Version}' isotope-dev)\" = '$(version isotope-dev)' ]"
check "README's program builds with find_package and trains" "cmake -S . -B find -DCMAKE_BUILD_TYPE=Debug; cmake --build find; find/app | tee out; $trains out"
check "README's program builds with g++ alone and trains" "g++ -std=c++20 main.cpp -pthread -o plain; ./plain | tee out; $trains out"
check "README's program builds with the flags of isotope.pc and trains" \
  "g++ -std=c++20 \$(pkg-config --cflags isotope) main.cpp \$(pkg-config --libs isotope) -o pc; ./pc | tee out; $trains out"
host=$(sed -n 's/^set(isotope_BACKEND \(.*\))$/\1/p' "$root/usr/share/cmake/isotope/isotopeConfig.cmake")
for file in "$root"/usr/share/cmake/isotope/backend/*.cmake; do
  backend=$(basename "$file" .cmake)
  [ "$backend" != "$host" ] || continue
  packages=$(sed -n 's/^consumer //p' "$source/cmake/backend/$backend/packages")
  check "README's program builds for $backend, without its compilers" "${packages:+apt-get install -y --no-install-recommends $packages;} for tool in glslang glslangValidator nvcc; do if command -v \$tool; then exit 1; fi; done
    cmake -S . -B $backend -DCMAKE_BUILD_TYPE=Debug -DISOTOPE_BACKEND=$backend; cmake --build $backend" || continue
  check "README's program builds for $backend with g++ alone" "g++ -std=c++20 -DISOTOPE_BACKEND=$backend main.cpp -pthread -o $backend-plain"
  # It trains, but for a backend whose driver comes from no package: there it says in one line what is missing.
  if within "$backend/app" >"$root/work/out" 2>&1 && grep -q '^step 100 *loss 0' "$root/work/out"; then
    echo "passed README's program trains with $backend" >>"$results"
  elif [ -z "$packages" ] && [ "$(wc -l <"$root/work/out")" = 1 ] && grep -q "^$backend: .* (fix: " "$root/work/out"; then
    echo "skipped README's program trains with $backend: $(cat "$root/work/out")" >>"$results"
  else
    echo "failed README's program trains with $backend: $(head -c 300 "$root/work/out" | tr '\n' ' ')" >>"$results"
  fi
done

# Another package of programs, which gives way to each of these and cannot be installed beside it.
check "a package that provides isotope-programs is made" "mkdir -p other/DEBIAN other/usr/bin; echo >other/usr/bin/isotope-info
  printf 'Package: isotope-other\nVersion: 1\nArchitecture: all\nMaintainer: A <a@b.example>\nProvides: isotope-programs\nDescription: another\n' >other/DEBIAN/control
  dpkg-deb -b other other.deb; apt-get install -y ./other.deb"

for file in "$root"/work/isotope-*.deb; do
  name=$(dpkg-deb -f "$file" Package)
  [ "$name" != isotope-dev ] || continue
  check "apt installs $name" "apt-get install -y --no-install-recommends ./$(deb "$name")" || continue
  check "the programs of $name print its version, have manual pages and help" "for program in \$(dpkg -L $name | grep ^/usr/bin/); do
    name=\$(basename \$program); [ \"\$(\$program --version | head -n 1)\" = \"\$name $(version "$name")\" ]; \$program --help >/dev/null; [ -f /usr/share/man/man1/\$name.1.gz ] || dpkg -L $name | grep -q man1/\$name.1.gz; done"
  check "$name takes the place of other programs and refuses them" "[ \"\$(dpkg-query -W -f '\${db:Status-Status}' isotope-other)\" != installed ]
    if dpkg -i other.deb; then exit 1; fi"
  [ ! -x "$root/usr/bin/isotope-train" ] || [ "${name#isotope-"$host"}" = "$name" ] ||
    check "isotope-train of $name trains" "isotope-train --size char-gpt-cpu --steps 3 --seed 1 --checkpoint-dir run"
done
check "apt removes the packages and all their files" "packages=\$(dpkg-query -W -f '\${db:Status-Status} \${Package}\\n' 'isotope-*' | sed -n 's/^installed //p'); dpkg -L \$packages | sort -u >files;
  apt-get purge -y \$packages; while read -r file; do [ ! -f \"\$file\" ]; done <files; [ ! -e /usr/include/isotope ]; if ls /usr/bin/isotope-*; then exit 1; fi"

# The RPMs, in the same system, whose libraries the programs find.
for file in "$folder"/*.rpm; do
  [ -f "$file" ] || continue
  name=$(rpm -qp --qf '%{NAME}' "$file")
  rpm=$(rpm -qp --qf '%{VERSION}' "$file")
  if rpm --root "$root" --nodeps -i "$file" && rpm --root "$root" -V --nodeps "$name" && [ "$(rpm --root "$root" -q --qf '%{VERSION}' "$name")" = "$rpm" ]; then
    echo "passed rpm installs $name" >>"$results"
  else
    echo "failed rpm installs $name" >>"$results"
    continue
  fi
  if [ "$name" = isotope-dev ]; then
    check "a project finds isotope-dev of the RPM" "rm -rf found; cmake -S . -B found"
  else
    check "the programs of the RPM $name print its version" "for program in /usr/bin/isotope-*; do [ \"\$(\$program --version | head -n 1)\" = \"\$(basename \$program) $rpm\" ]; done"
  fi
  rpm --root "$root" -e --nodeps "$name" && [ -z "$(ls "$root"/usr/bin/isotope-* "$root"/usr/share/doc/"$name" 2>/dev/null)" ] &&
    echo "passed rpm removes $name" >>"$results" || echo "failed rpm removes $name" >>"$results"
done
