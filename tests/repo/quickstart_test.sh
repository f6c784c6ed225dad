#!/bin/sh
# quickstart refuses what it does not know in one line, with exit code 2 and before it installs or builds anything.
set -u
quickstart=$1/quickstart
failed=0
refuses() {
  words=$1
  shift
  out=$("$quickstart" "$@" 2>&1 </dev/null)
  status=$?
  if [ $status != 2 ] || [ "$(echo "$out" | wc -l)" != 1 ] || ! echo "$out" | grep -qF -e "$words"; then
    echo "./quickstart $*: exit $status, expected 2 and one line with '$words': $out"
    failed=1
  fi
}
refuses "unknown option '--nonsense'" --nonsense
refuses "unknown option 'tset'" tset
refuses "needs a value" --backend
refuses "backend 'vulkan' is not available in this version; available: cpu." --backend vulkan
refuses "backend 'vulkan' is not available in this version; available: cpu." test --backend=vulkan
refuses "backend '../../x' is not available" --backend ../../x
refuses "precision 'f64' is not legal for backend cpu: it has f32 bf16." --precision f64
refuses "belong to './quickstart deps'" --all
"$quickstart" --help | grep -q '^usage: ./quickstart' || {
  echo 'no usage'
  failed=1
}
sh -n "$quickstart" || failed=1
exit $failed
