#!/bin/sh
# Tests get-nvcc.sh without a network: what it refuses, that only files with the listed digests are taken, and that a failure leaves an existing folder as it was.
# The packages are made here, and a fake pip copies them.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cp -R "$1/cmake" "$work/cmake" || exit 1
scripts=$work/cmake/backend/cuda
failed=0
claim() {  # claim TEXT EXPECTED ACTUAL
  [ "$2" = "$3" ] && return
  echo "$1: expected '$2', got '$3'"
  failed=1
}
# refuses STATUS WORDS COMMAND...: the command must exit with this status, and its output must contain the words.
refuses() {
  expected=$1 words=$2
  shift 2
  out=$("$@" 2>&1 </dev/null)
  status=$?
  if [ $status != "$expected" ] || ! echo "$out" | grep -qF -e "$words"; then
    echo "$*: exit $status, expected $expected and '$words': $out"
    failed=1
  fi
}
refuses 2 'About ' "$scripts/get-nvcc.sh"
refuses 2 'About ' "$scripts/get-nvcc.sh" --help
mkdir "$work/foreign" && : >"$work/foreign/file"
refuses 1 'was not made by get-nvcc. fix: name another folder' "$scripts/get-nvcc.sh" "$work/foreign"
claim 'a folder that was refused' file "$(ls "$work/foreign")"

# One package, whose nvcc writes what it is asked for.
mkdir -p "$work/pip/pip" "$work/package"
python3 - "$work/package/nvidia_cuda_nvcc-1.0-py3-none-any.whl" <<'PY'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for name, mode, text in (("bin/nvcc", 0o755, "#!/bin/sh\necho 'Cuda compilation tools, release 1.0'\n"), ("include/a.h", 0o644, "x\n")):
        entry = zipfile.ZipInfo("nvidia/cu1/" + name)
        entry.external_attr = mode << 16
        wheel.writestr(entry, text)
    wheel.writestr("nvidia/cu1/../../outside", "x\n")
    wheel.writestr("elsewhere/a", "x\n")
PY
: >"$work/pip/pip/__init__.py"
cat >"$work/pip/pip/__main__.py" <<PY
import shutil, sys
if "download" in sys.argv:
    assert "--require-hashes" in sys.argv
    shutil.copy("$work/package/nvidia_cuda_nvcc-1.0-py3-none-any.whl", sys.argv[sys.argv.index("--dest") + 1])
PY
list() { echo "nvidia-cuda-nvcc==1.0 --hash=sha256:$1" >"$scripts/wheels.txt"; }
get() { env PYTHONPATH="$work/pip" "$scripts/get-nvcc.sh" "$work/deep/prefix"; }
list "$(sha256sum "$work/package/"*.whl | cut -d' ' -f1)"
claim 'the version' 'release 1.0' "$(get 2>&1)"
claim 'what is unpacked' 'bin include targets' "$(ls "$work/deep/prefix" | tr '\n' ' ' | sed 's/ $//')"
claim 'where headers are, too' x "$(cat "$work"/deep/prefix/targets/*/include/a.h)"
claim 'beside the prefix' prefix "$(ls "$work/deep")"
: >"$work/deep/prefix/kept"
list 0000000000000000000000000000000000000000000000000000000000000000
refuses 1 'is not the file that wheels.txt names: its digest differs' get
refuses 1 'fix: see whether the network is there, or install the CUDA toolkit' get
claim 'a prefix after a failure' kept "$(ls "$work/deep/prefix" | grep kept)"
claim 'folders beside it' prefix "$(ls "$work/deep")"
exit $failed
