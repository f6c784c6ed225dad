#!/bin/sh
# kernel_names.py accepts the source tree, and finds each breach in trees that are made to break a rule.
set -u
names=$1/tests/cuda/kernel_names.py
python3 -B "$names" "$1" || exit 1

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
plant() {  # plant FILE TEXT
  mkdir -p "$work/kernels/cuda/$(dirname "$1")"
  printf '%s\n' "$2" >"$work/kernels/cuda/$1"
}
kernel() { echo "extern \"C\" __global__ void $1(const __grid_constant__ gpu::$2 a) {"; }
caught() {  # caught WORDS FILE TEXT: a tree with this file, too, must be refused.
  rm -rf "$work/kernels"
  plant reference/sum.cu "$(kernel reference_sum t)"
  plant native/dot.cu "$(kernel '__launch_bounds__(sizeof(int) * 32) dot' t)"
  plant native/dot.hpp 'r.add(fatbins::dot, "dot", x); r.add(fatbins::reference_sum,
  "reference_sum", y); r.add(fatbins::dot, name, z);'
  python3 -B "$names" "$work" || failed=1
  plant "$2" "$3"
  report=$(python3 -B "$names" "$work")
  [ $? = 1 ] && echo "$report" | grep -qF -e "$1" && return
  echo "not caught as '$1': $3: $report"
  failed=1
}
caught 'has a kernel reference_sum, too' reference/a.cu "$(kernel reference_sum t)"
caught 'makes the module dot, too' portable/dot.cu ''
caught 'begin with reference_' reference/a.cu "$(kernel a t)"
caught 'begin with reference_' portable/a.cu "$(kernel reference_a t)"
caught 'portable/a.cu:1: a kernel is declared in one line' portable/a.cu '__global__ void a(int n) {'
caught 'portable/a.cu:1: a kernel is declared in one line' portable/a.cu 'extern "C" __global__ void a(const __grid_constant__ t a,'
caught 'native/a.hpp: native/dot.cu has no kernel dots' native/a.hpp 'r.add(fatbins::dot, "dots", x);'
caught 'native/a.hpp: no source makes the module dots' native/a.hpp 'r.add(fatbins::dots, "dot", x);'
exit $failed
