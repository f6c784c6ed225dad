#!/usr/bin/env python3
"""Keeps results of benchmarks by commit, device and case as JSON lines, and says what became slower.

history.py guard [--anyway]                                  says whether this machine is quiet enough to measure
history.py add LOG --commit SHA --device NAME [--peak RATE] [--anyway] RESULT...
                                                             adds results to LOG: JSON of Google Benchmark (--benchmark_out), or lines `CASE TIME UNIT`
history.py compare LOG OLD NEW [--device NAME] [--noise 5]   compares two commits

A line has commit, device, case, usec (one for each repetition), and where the result has a rate of operations: flops and share, of --peak operations per second,
or of the peak that the benchmark measured (of_peak_flops). A share above 1 is a mistake in the rate or in the peak, and is flagged. OLD and NEW are paired by case and
repetition; what counts is the median of the ratios of pairs. add refuses to record from a machine that is not quiet, unless --anyway is given.

exit: 0 done, 1 slower than before, a share above 1, or not quiet, 2 usage or damaged files
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import tempfile

UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
BUSY = 0.25  # load by processor above which other work disturbs
SLOW = 0.7  # of a processor's highest frequency, below which it is throttled, if it is busy
HOT = 90.0  # degrees Celsius


class Refused(Exception):
    pass


def number(path):
    try:
        return float(pathlib.Path(path).read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def why_not_quiet(root="/"):
    """The reasons against measuring; what the system does not say is none."""
    root, reasons = pathlib.Path(root), []
    load, processors = number(root / "proc/loadavg"), os.cpu_count() or 1
    if load is not None and load / processors > BUSY:
        reasons.append(f"load {load:.2f} on {processors} processors, more than {BUSY:.2f} each")
    for folder in sorted(root.glob("sys/devices/system/cpu/cpu[0-9]*")):
        most, limit = number(folder / "cpufreq/cpuinfo_max_freq"), number(folder / "cpufreq/scaling_max_freq")
        if most and limit and limit < SLOW * most:
            reasons.append(f"{folder.name} may run at {limit / 1e6:.2f} GHz of {most / 1e6:.2f}")
        throttled = folder / "cpufreq/scaling_governor"
        if throttled.is_file() and throttled.read_text().strip() == "powersave" and not (root / "sys/devices/system/cpu/intel_pstate").exists():
            reasons.append(f"{folder.name} has the governor powersave")
    for zone in sorted(root.glob("sys/class/thermal/thermal_zone*")):
        degrees = number(zone / "temp")
        if degrees is not None and degrees / 1000 >= HOT:
            reasons.append(f"{zone.name} has {degrees / 1000:.0f} degrees, at least {HOT:.0f}")
    return reasons


def results_of(path, peak):
    """(case, microseconds, operations per second or None, share of the peak or None) of each repetition in a file."""
    text = pathlib.Path(path).read_text()
    found = []
    if text.lstrip().startswith("{"):
        for row in json.loads(text)["benchmarks"]:
            if row.get("run_type", "iteration") != "iteration":
                continue  # means and medians of repetitions
            if row.get("error_occurred"):
                raise Refused(f"{path}: {row['name']}: {row.get('error_message', 'failed')}")
            rate = row.get("FLOP/s", row.get("items_per_second") if peak else None)
            share = rate / peak if rate and peak else row.get("of_peak_flops")
            found.append((row.get("run_name", row["name"]), row["real_time"] * UNITS[row["time_unit"]], rate, share))
    else:
        for at, line in enumerate(text.splitlines(), 1):
            words = line.rsplit(None, 2)
            if not line.strip():
                continue
            if len(words) != 3 or words[2] not in UNITS:
                raise Refused(f"{path}:{at}: is no line `CASE TIME UNIT` with one of {', '.join(UNITS)}")
            found.append((words[0], float(words[1]) * UNITS[words[2]], None, None))
    for case, usec, _, share in found:
        if not (usec > 0 and math.isfinite(usec)) or (share is not None and not math.isfinite(share)):
            raise Refused(f"{path}: {case} took {usec} us, a share of {share}")
    if not found:
        raise Refused(f"{path}: has no result")
    return found


def read_log(path):
    rows = []
    for at, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        try:
            row = json.loads(line)
            assert all(isinstance(row[key], str) for key in ("commit", "device", "case")) and row["usec"] and all(x > 0 for x in row["usec"])
        except (ValueError, KeyError, TypeError, AssertionError):
            raise Refused(f"{path}:{at}: is no result. fix: remove the line") from None
        rows.append(row)
    return rows


def over_peak(row):
    if row.get("share") is None or row["share"] <= 1:
        return 0
    print(f"{row['case']}: {100 * row['share']:.0f} % of the peak: the rate or the peak is wrong")
    return 1


def add(given):
    reasons = [] if given.anyway else why_not_quiet(given.root)
    if reasons:
        return quiet(given)
    cases = {}
    for path in given.results:
        for case, usec, rate, share in results_of(path, given.peak):
            row = cases.setdefault(case, {"commit": given.commit, "device": given.device, "case": case, "usec": []})
            row["usec"].append(usec)
            if rate is not None:
                row["flops"] = max(rate, row.get("flops", 0))
            if share is not None:
                row["share"] = max(share, row.get("share", 0))
    flagged = sum(over_peak(row) for row in cases.values())
    log = pathlib.Path(given.log)
    before = "".join(json.dumps(row) + "\n" for row in read_log(log)) if log.exists() else ""
    with tempfile.NamedTemporaryFile("w", dir=log.parent, prefix=log.name, delete=False) as f:
        f.write(before + "".join(json.dumps(row) + "\n" for row in cases.values()))
    os.replace(f.name, log)
    print(f"{len(cases)} cases of {given.commit} on {given.device} in {log}")
    return 1 if flagged else 0


def quiet(given):
    reasons = [] if given.anyway else why_not_quiet(given.root)
    for reason in reasons:
        print(f"not quiet: {reason}. fix: wait, or --anyway")
    return 1 if reasons else 0


def compare(given):
    rows = read_log(given.log)
    results = {}
    for row in rows:
        if given.device in (None, row["device"]) and row["commit"] in (given.old, given.new):
            results.setdefault((row["device"], row["case"]), {}).setdefault(row["commit"], []).extend(row["usec"])
    for commit in (given.old, given.new):
        if not any(commit in r for r in results.values()):
            raise Refused(f"{given.log}: has no result of {commit}")
    slower = paired = 0
    for (device, case), by in sorted(results.items()):
        if len(by) < 2 and given.old != given.new:
            print(f"{device} {case}: only of {next(iter(by))}")
            continue
        old, new = by[given.old], by[given.new]
        paired += 1
        change = 100 * (statistics.median(b / a for a, b in zip(old, new)) - 1)
        lost = change > given.noise
        slower += lost
        print(f"{device} {case}: {statistics.median(old):.4g} us, {statistics.median(new):.4g} us, {change:+.1f} %, {min(len(old), len(new))} pairs{'  slower' if lost else ''}")
    flagged = sum(over_peak(row) for row in rows if row["commit"] == given.new and given.device in (None, row["device"]))
    print(f"{slower} of {paired} slower by more than {given.noise:g} %")
    return 1 if slower or flagged else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=True)
    commands = parser.add_subparsers(dest="command", required=True)
    guarded = commands.add_parser("guard")
    adds = commands.add_parser("add")
    adds.add_argument("log")
    adds.add_argument("results", nargs="+")
    for flag in ("--commit", "--device"):
        adds.add_argument(flag, required=True)
    adds.add_argument("--peak", type=float)
    for p in (guarded, adds):
        p.add_argument("--anyway", action="store_true")
        p.add_argument("--root", default="/", help=argparse.SUPPRESS)  # of proc and sys, for tests
        p.set_defaults(run=quiet if p is guarded else add)
    compares = commands.add_parser("compare")
    for name in ("log", "old", "new"):
        compares.add_argument(name)
    compares.add_argument("--device")
    compares.add_argument("--noise", type=float, default=5)
    compares.set_defaults(run=compare)
    given = parser.parse_args()
    try:
        return given.run(given)
    except (Refused, OSError, ValueError, KeyError) as error:
        print(f"history.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
