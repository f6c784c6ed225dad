"""run.py SOURCE COMPILER FLAGS...: passes if SOURCE compiles without a warning and within the limits of its first line,
`// limit: ratio=10 megabytes=1500 flags=-O2`. The ratio is its processor time divided by that of reference/standard_library.cpp, compiled by the same
compiler in turn with it; of each the least time of up to five tries counts, since a busy machine only adds to a time. A ratio differs by a tenth between
kinds of processors, so a limit lies some 15 % above what was measured. Megabytes are the largest resident set of one process."""
import os
import re
import subprocess
import sys

REFERENCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference", "standard_library.cpp")


def limits_of(source):
    with open(source, encoding="utf-8") as file:
        first = file.readline()
    match = re.fullmatch(r"// limit: ratio=([0-9.]+) megabytes=([0-9]+)(?: flags=(.*))?\n?", first)
    if not match:
        sys.exit(f"{source}: the first line is not '// limit: ratio=R megabytes=M flags=F'")
    return float(match[1]), float(match[2]), (match[3] or "").split()


def measure(command):
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"does not compile: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    source, compiler = sys.argv[1], sys.argv[2:]
    ratio_limit, megabytes_limit, flags = limits_of(source)
    reference = compiler + ["-O1", "-c", REFERENCE, "-o", os.devnull]
    times, reference_times = [], []
    for attempt in range(5):
        reference_times.append(measure(reference)[0])
        seconds, megabytes = measure(compiler + flags + ["-Werror", "-c", source, "-o", os.devnull])
        times.append(seconds)
        ratio = min(times) / min(reference_times)
        print(f"{seconds:.2f} s; the least is {ratio:.2f} of the reference's (limit {ratio_limit}), {megabytes:.0f} MB (limit {megabytes_limit:.0f})", flush=True)
        if ratio <= ratio_limit and megabytes <= megabytes_limit:
            return
    sys.exit(f"{source} is over its limit")


main()
