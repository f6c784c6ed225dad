"""run.py SOURCE COMPILER FLAGS...: passes when SOURCE compiles within the limits of its first line,
`// limit: seconds=10 megabytes=1500 flags=-O2`. Seconds are CPU seconds of the compiler's processes (a busy machine adds little to
them), the best of up to three runs; megabytes are the largest resident set of one process."""
import os
import re
import subprocess
import sys


def limits_of(source):
    with open(source, encoding="utf-8") as file:
        first = file.readline()
    match = re.fullmatch(r"// limit: seconds=([0-9.]+) megabytes=([0-9]+)(?: flags=(.*))?\n?", first)
    if not match:
        sys.exit(f"{source}: the first line is not '// limit: seconds=S megabytes=M flags=F'")
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
    seconds_limit, megabytes_limit, flags = limits_of(source)
    for attempt in range(3):
        seconds, megabytes = measure(compiler + flags + ["-c", source, "-o", os.devnull])
        print(f"{seconds:.2f} s (limit {seconds_limit}), {megabytes:.0f} MB (limit {megabytes_limit:.0f})", flush=True)
        if seconds <= seconds_limit and megabytes <= megabytes_limit:
            return
    sys.exit(f"{source} is over its limit")


main()
