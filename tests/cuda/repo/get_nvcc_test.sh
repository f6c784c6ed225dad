#!/bin/sh
# Tests get-nvcc.sh without a network: what it refuses, that only files with the listed digests are taken, and that a failure leaves an existing folder as it was.
# The packages are made here, and a fake pip copies them.
set -u
. "$1/tests/repo/claims.sh"
cp -R "$1/cmake" "$work/cmake" || exit 1
scripts=$work/cmake/backend/cuda
refuses 2 'About ' "$scripts/get-nvcc.sh"
refuses 2 'About ' "$scripts/get-nvcc.sh" --help
mkdir "$work/foreign" && : >"$work/foreign/file"
refuses 1 'was not made by get-nvcc. fix: name another folder' "$scripts/get-nvcc.sh" "$work/foreign"
claim 'a folder that was refused' file "$(ls "$work/foreign")"

# One package, whose nvcc writes what it is asked for.
mkdir "$work/package"
wheel=$work/package/nvidia_cuda_nvcc-1.0-py3-none-any.whl
fake_pip "$wheel"
python3 - "$wheel" <<'PY'
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
list() { echo "nvidia-cuda-nvcc==1.0 --hash=sha256:$1" >"$scripts/wheels.txt"; }
get() { env PYTHONPATH="$work/pip" "$scripts/get-nvcc.sh" "$work/deep/prefix"; }
list "$(sha256sum "$wheel" | cut -d' ' -f1)"
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
