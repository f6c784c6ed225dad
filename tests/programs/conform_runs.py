"""Reads the output of isotope-conform runs: the last line, the certificate, and the backend of the build."""

import json
import re

CPU = ["--backend", "cpu"]  # the harness is tested with the backend that every build has


def last_line(run):
    return run.out.strip().splitlines()[-1]


def backend(folder):
    return re.search(r"^backend\s+(\S+)", folder.run("info", "--version").out, re.M).group(1)


def certificate(folder, name):
    c = json.loads(folder.read(name))
    del c["time"]
    return c
