#!/usr/bin/env python3
"""mutants_test.py LIST PROGRAM [--whole] [--tests] [--also NEED,...] [--has NEED,...] [--at-once N] [NAME...] [--behind WORD...]: isotope-conform must find
every mutant of the list, and no fault without one. For planner.json, each check of mutants_planner that a mutant names must find it. The list of a backend is
tests/<backend>/mutants.json.

--whole: isotope-conform runs its standard cases, and the list must have a mutant of every op; otherwise it runs the fast ones, which share compilations. NAMEs
select mutants. --tests: the program has tests of GoogleTest, and the mutants that name tests run. A mutant whose need is not named by --also is left out; with
--has, only mutants with one of these needs run. --at-once: how many programs run beside each other (2). The words after --behind start the program, on a machine
that meets these needs; with --has and without such words the test is skipped (exit code 77).
The last line is the score. A mutant is caught if cases fail (exit code 1); a signal or the time limit count if the mutant allows it."""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

import mutate

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
from driver_variables import driver_variables

SECONDS = 180  # time limit of one run; a software driver may need a minute if nothing is compiled yet
AT_ONCE = 2
# The variables that determine libraries and driver; the program gets no others from the caller.
ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"} | driver_variables()


def command(program, backend, ops, flags, strength, behind=(), tests=""):
    """The command line. A mutant's flags replace the default ones, since isotope-conform accepts each flag once."""
    if tests:
        return [*behind, program, f"--gtest_filter={tests}"]
    if backend == "planner":
        return [*behind, program, *ops, *flags]
    values = {"--backend": backend, "--precision": "f32", "--kernels": "native", "--strength": strength}
    values |= dict(zip(flags[::2], flags[1::2]))
    return [*behind, program, "run", "--ops", ",".join(ops)] + [word for pair in values.items() for word in pair]


def run(words, number, environment):
    """The exit status, the counts and the first failure."""
    try:
        done = subprocess.run(words, env=ENVIRONMENT | dict(environment) | {"ISOTOPE_MUTANT": str(number)}, capture_output=True, text=True, errors="replace", timeout=SECONDS,
                              stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        return "time", "", ""
    lines = done.stdout.splitlines()
    counts, first = (lines[-1] if lines else ""), next((line for line in lines if line.startswith("case ")), "")
    failed = re.search(r"(\d+) failed", counts)
    if tests := re.search(r"^\[=+\] (\d+) tests? from .* ran\.", done.stdout, re.M):
        names = re.findall(r"^\[  FAILED  \] ([^\s,]+)(?:, where .*)? \(\d+ ms\)$", done.stdout, re.M)
        passed = len(re.findall(r"^\[       OK \] ", done.stdout, re.M))
        failed = [tests[0], str(len(names))]
        counts, first = f"{tests[1]} tests, {passed} passed, {len(names)} failed", next(iter(names), "")
        if passed + len(names) != int(tests[1]) or passed + len(names) == 0:
            return "broken", counts, "tests were skipped, or none has such a name"
    if done.returncode < 0:
        return "signal", f"signal {-done.returncode}", done.stderr[-300:]
    if done.returncode == 0 and failed and failed[1] == "0":
        return "passed", counts, first
    if done.returncode == 1 and failed and failed[1] != "0":
        return "failed", counts, first
    return "broken", f"exit code {done.returncode}: {counts}", done.stderr[-300:]


def run_until_caught(words, mutant):
    for _ in range(mutant.runs):
        seen = run(words, mutant.number, mutant.environment)
        if seen[0] != "passed":
            break
    return seen


def ops_without_mutant(program, mutants):
    planned = subprocess.run([program, "plan", "--ops", "all", "--json"], env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
    return sorted({op["op"] for op in json.loads(planned)} - {op for m in mutants for op in m.ops})


def main():
    path, program, words = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    behind = words[words.index("--behind") + 1:] if "--behind" in words else []
    words = words[:words.index("--behind")] if "--behind" in words else words
    whole = words[:1] == ["--whole"]
    words = words[whole:]
    tested = words[:1] == ["--tests"]
    words = words[tested:]
    strength = "standard" if whole else "fast"
    also = words[1].split(",") if words[:1] == ["--also"] else []
    words = words[2:] if also else words
    has = words[1].split(",") if words[:1] == ["--has"] else ["", *also]
    words = words[2:] if words[:1] == ["--has"] else words
    at_once = int(words[1]) if words[:1] == ["--at-once"] else AT_ONCE
    names = words[2:] if words[:1] == ["--at-once"] else words
    if "" not in has and not behind:
        print("skipped: nothing starts the program on a driver that shows these")
        sys.exit(77)
    backend = path.parent.name if path.stem == "mutants" else path.stem
    listed = [m for m in mutate.read_list(path) if bool(m.tests) == tested]
    mutants = [m for m in listed if m.name in names or (not names and m.needs in has)]
    commands = {m.number: command(program, backend, m.ops, m.flags, strength, behind, m.tests) for m in mutants}
    sound = {}  # without a mutant, one run for all ops with the same flags and environment
    for m in mutants:
        sound.setdefault((tuple(m.flags), tuple(sorted(m.environment.items()))), set()).update([m.tests] if tested else m.ops)
    bad = False
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        checks = [(flags, pool.submit(run, command(program, backend, sorted(ops), list(flags), strength, behind, ":".join(sorted(ops)) if tested else ""), 0, environment))
                  for (flags, environment), ops in sound.items()]
        runs = [(m, pool.submit(run_until_caught, commands[m.number], m)) for m in mutants]
        for flags, check in checks:
            outcome, counts, first = check.result()
            print(f"no mutant {' '.join(flags)}: {counts} {first}".rstrip(), flush=True)
            bad = bad or outcome != "passed"
        caught = 0
        for m, one in runs:
            outcome, counts, first = one.result()
            fine = outcome == "failed" or outcome in m.may
            caught += fine
            print(f"{'caught' if fine else 'SURVIVES'} {m.name} ({m.breaks}): {outcome}, {counts} {first}".rstrip(), flush=True)
    bare = ops_without_mutant(program, mutants) if whole and not names else []
    if bare:
        print(f"no mutant of {', '.join(bare)}")
    bad = bad or bool(bare)
    elsewhere = {m.needs for m in listed if m.needs not in has} - {""}
    for need in sorted(elsewhere) if not names else ():
        print(f"left out: {sum(m.needs == need for m in listed)} that show with {need} alone")
    print(f"mutants: {caught} of {len(mutants)} caught ({backend})")
    sys.exit(1 if bad or caught != len(mutants) else 0)


if __name__ == "__main__":
    main()
