# labels: nightly
"""isotope-conform by night: a million random cases."""

import os
import re
import subprocess

from program import ENVIRONMENT, main

RANDOM = ["run", "--backend", "cpu", "--strength", "full", "--ops", "all"]


def counts_and_memory(folder, *flags):
    """The numbers of the last line by their words, and the most memory that the program or the process that it watches took, in KiB."""
    program = subprocess.Popen(folder.command("conform", [*RANDOM, *flags]), cwd=folder.path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    out = program.stdout.read()
    _, status, usage = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    assert program.returncode == 0, out[-2000:]
    return {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", out.strip().splitlines()[-1])}, usage.ru_maxrss


def test_a_million_random_cases_pass_in_the_memory_of_a_few(folder):
    few, little = counts_and_memory(folder, "--repeat", "2", "--seed", "20261123")
    many, more = counts_and_memory(folder, "--repeat", "50", "--seed", "20261124")
    print(f"{few} in {little} KiB, {many} in {more} KiB")
    for counts in (few, many):
        assert counts["passed"] == counts["cases"] and counts["failed"] == counts["skipped"] == counts["unsupported"] == 0, counts
    assert many["cases"] >= 1_000_000, many
    assert more - little < 16 * 1024, f"{little} KiB, then {more} KiB"


if __name__ == "__main__":
    main(globals())
