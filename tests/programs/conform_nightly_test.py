# labels: nightly
"""Nightly runs of isotope-conform: the full cases in both precisions, the standard ones on the device of the build, and a million random ones."""

import os
import re
import subprocess

from program import ENVIRONMENT, main

RANDOM = ["run", "--backend", "cpu", "--strength", "full", "--ops", "all"]


def counts_and_memory(folder, *flags):
    """The counts in the last line by name, and the most memory that the program or the process that it watches used, in KiB."""
    program = subprocess.Popen(folder.command("conform", [*RANDOM, *flags]), cwd=folder.path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    out = program.stdout.read()
    _, status, usage = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    assert program.returncode == 0, out[-2000:]
    return {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", out.strip().splitlines()[-1])}, usage.ru_maxrss


def passes(folder, strength, least, *flags):
    """Runs the tests in both precisions."""
    for precision in ("f32", "bf16"):
        run = folder.run("conform", "run", "--strength", strength, "--precision", precision, *flags).succeeded()
        summary = run.out.strip().splitlines()[-1]
        assert summary.endswith(" 0 failed, 0 skipped, 0 unsupported") and int(summary.split()[0]) >= least, run.out[-2000:]


# labels: conform-standard
def test_every_kernel_set_of_the_cpu_passes_the_standard_cases(folder):
    for kernels in ("reference", "portable", "native"):
        passes(folder, "standard", 2000, "--backend", "cpu", "--kernels", kernels)


# labels: conform-standard
def test_the_device_of_the_build_passes_the_standard_cases(folder):
    passes(folder, "standard", 2000)


# labels: conform-full
def test_every_kernel_set_of_the_cpu_passes_the_full_cases(folder):
    for kernels in ("reference", "portable", "native"):
        passes(folder, "full", 20_000, "--backend", "cpu", "--kernels", kernels)


# labels: conform-full
def test_the_device_of_the_build_passes_the_full_cases(folder):
    passes(folder, "full", 20_000)


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
