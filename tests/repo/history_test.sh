#!/bin/sh
# bench/history.py keeps results, finds what became slower than noise and shares above the peak, and refuses to measure on a machine that is not quiet.
set -u
. "$1/tests/repo/claims.sh"
history() { python3 -B "$source/bench/history.py" "$@"; }
source=$1
log=$work/log.jsonl
# result NAME MICROSECONDS...: JSON of Google Benchmark with a repetition for each time, and their mean.
result() {
  name=$1
  shift
  rows=
  for usec in "$@"; do rows="$rows{\"name\":\"$name\",\"run_name\":\"$name\",\"run_type\":\"iteration\",\"real_time\":$usec,\"time_unit\":\"us\",\"FLOP/s\":$((1000000 / usec)),\"of_peak_flops\":0.5},"; done
  echo "{\"benchmarks\":[$rows{\"name\":\"${name}_mean\",\"run_type\":\"aggregate\",\"real_time\":1,\"time_unit\":\"us\"}]}"
}
result matmul 100 101 99 >"$work/old.json"
result matmul 108 107 400 >"$work/slow.json"
result matmul 104 103 1000 >"$work/noise.json"
echo 'decode, 8 sequences 1.5 ms' >"$work/lines"
mkdir -p "$work/quiet/proc" "$work/loud/proc" "$work/loud/sys/class/thermal/thermal_zone0" "$work/loud/sys/devices/system/cpu/cpu0/cpufreq"
echo '0.00 0.00 0.00 1/1 1' >"$work/quiet/proc/loadavg"
echo '900.5 1.00 1.00 1/1 1' >"$work/loud/proc/loadavg"
echo 95000 >"$work/loud/sys/class/thermal/thermal_zone0/temp"
echo 4000000 >"$work/loud/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"
echo 1200000 >"$work/loud/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq"
add() { history add "$log" --device here --root "$work/quiet" "$@"; }

refuses 0 '2 cases of a on here' add --commit a "$work/old.json" "$work/lines"
refuses 0 '1 cases of b on here' add --commit b "$work/slow.json"
refuses 0 '1 cases of c on here' add --commit c "$work/noise.json"
claim 'the first line' '{"commit": "a", "device": "here", "case": "matmul", "usec": [100.0, 101.0, 99.0], "flops": 10101, "share": 0.5}' "$(head -n 1 "$log" | sed 's/00000*[0-9]*,/0,/g')"
claim 'a time in other units' '[1500.0]' "$(sed -n 's/.*sequences", "usec": \(.*\)}/\1/p' "$log")"
refuses 1 'matmul: 100 us, 108 us, +8.0 %, 3 pairs  slower' history compare "$log" a b
refuses 0 'matmul: 100 us, 108 us, +8.0 %, 3 pairs' history compare "$log" a b --noise 9
refuses 0 '0 of 1 slower by more than 5 %' history compare "$log" a c
refuses 0 'sequences: only of a' history compare "$log" a c
refuses 0 '0 of 1 slower' history compare "$log" b a --device here
refuses 2 'has no result of x' history compare "$log" a x
refuses 2 'has no result of a' history compare "$log" a b --device elsewhere

refuses 1 'matmul: 101 % of the peak: the rate or the peak is wrong' add --commit d --peak 10000 "$work/old.json"
refuses 1 'matmul: 101 % of the peak' history compare "$log" a d

refuses 1 'load 900.50 on' history guard --root "$work/loud"
refuses 1 'cpu0 may run at 1.20 GHz of 4.00' history guard --root "$work/loud"
refuses 1 'thermal_zone0 has 95 degrees' history guard --root "$work/loud"
refuses 0 '' history guard --root "$work/loud" --anyway
refuses 0 '' history guard --root "$work/quiet"
before=$(cksum <"$log")
refuses 1 'not quiet' history add "$log" --commit e --device here --root "$work/loud" "$work/old.json"
echo 'no result' >"$work/bad"
refuses 2 'bad:1: is no line' add --commit e "$work/bad"
echo '{"benchmarks":[{"name":"x","error_occurred":true,"error_message":"no device"}]}' >"$work/bad"
refuses 2 'x: no device' add --commit e "$work/bad"
claim 'the log after refusals' "$before" "$(cksum <"$log")"
refuses 0 '1 cases of e' history add "$log" --commit e --device here --root "$work/loud" --anyway "$work/old.json"
echo '{"commit":"f"}' >>"$log"
refuses 2 'log.jsonl:7: is no result' history compare "$log" a b
exit $failed
