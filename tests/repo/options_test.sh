#!/bin/sh
# Build options: every valid choice configures, and every other one is refused in one line that lists the valid ones.
set -u
. "$(dirname "$0")/configure.sh"
backends=$(cd "$1/cmake/backend" && ls ./*.cmake | sed 's|./||;s|\.cmake$||' | sort | paste -sd, | sed 's/,/, /g')

accepts
accepts -DBACKEND=cpu -DPRECISION=f32 -DKERNELS=reference -DCPU_ARCH=
accepts -DBACKEND=cpu -DPRECISION=bf16 -DKERNELS=portable
refuses "BACKEND='metal' is not one of: $backends, auto." -DBACKEND=metal
refuses "BACKEND='' is not one of: $backends, auto." -DBACKEND=
refuses "PRECISION='f16' is not legal for backend cpu: it has f32, bf16." -DPRECISION=f16
refuses "PRECISION='f64' is not legal for backend cpu: it has f32, bf16." -DPRECISION=f64
refuses "KERNELS='fast' is not one of: native, portable, reference." -DKERNELS=fast
refuses "CPU_ARCH='pentium9' is not an architecture" -DCPU_ARCH=pentium9
refuses "here the option is -DBACKEND=cpu" -DISOTOPE_BACKEND=cpu
refuses "thread and address cannot be combined" "-DSANITIZE=address;thread"

case $compiler in *clang*) ;; *) refuses "FUZZ=ON needs clang" -DFUZZ=ON ;; esac
refuses "fix: sudo apt-get install libgtest-dev" -DTESTS=ON -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON
refuses "fix: sudo apt-get install libboost1.81-dev or libboost-dev" -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON
exit $failed
