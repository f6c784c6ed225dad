#!/bin/sh
# cmake/backend/vulkan/get-glslang.sh PREFIX [SUITE]: fetches a current glslang and SPIRV-Tools from a newer Debian suite (forky) as PREFIX/bin/glslang,
# spirv-val, spirv-opt, spirv-as and spirv-dis. PREFIX is a private folder that may be moved; the build looks in build/glslang. About 20 MB are downloaded, in 10 s.
set -u
[ $# -ge 1 ] && [ $# -le 2 ] && [ -n "$1" ] && [ "${1#-}" = "$1" ] || {
  sed -n '2,3s/^# //p' "$0" >&2
  exit 2
}
# shellcheck disable=SC2034
instead="put glslang 15.4 or later on PATH (the Vulkan SDK has one, https://github.com/KhronosGroup/glslang its source), or configure with -DISOTOPE_GLSLANG=FILE; without it the kernels for matrix units are left out and all else runs"
# shellcheck source=cmake/private_root.sh
. "$(dirname -- "$0")/../../private_root.sh"
tools="glslang spirv-val spirv-opt spirv-as spirv-dis"

open_root "$1"
unpack "${2:-forky}" glslang-tools spirv-tools

# Only the tools and the libraries are kept. Each tool is started by the fetched dynamic loader, since that of the system may be older.
mkdir "$new/bin" "$new/tools" || exit 1
for tool in $tools; do
  cp -L "$new/usr/bin/$tool" "$new/tools/$tool" 2>/dev/null || fail "the suite has no $tool" "try another suite (forky, sid)"
  cat >"$new/bin/$tool" <<RUN
#!/bin/sh
prefix=\$(dirname -- "\$(readlink -f -- "\$0")")/..
exec "\$prefix/$loader" --library-path "\$prefix/$libraries" "\$prefix/tools/$tool" "\$@"
RUN
  chmod 755 "$new/bin/$tool"
done
find "$new/$libraries" -mindepth 1 -maxdepth 1 -type d -exec rm -rf {} +
for folder in usr/bin usr/sbin usr/share etc var; do rm -rf "${new:?}/$folder"; done

for tool in glslang spirv-val; do
  "$new/bin/$tool" --version >"$work/version" 2>&1 || fail "the unpacked $tool does not run: $(tail -n 1 "$work/version")" "try another suite (forky, sid)"
  sed -n 1p "$work/version"
done
close_root
