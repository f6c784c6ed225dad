"""Runs a program of this build in its own folder, without the caller's environment, and checks its output and files."""

import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

from driver_variables import driver_variables

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
# A program under test gets none of the user's variables except those that determine its libraries and driver, and
# options of sanitizers and line counts.
ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"} | driver_variables() | {
    name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS") or name == "GCOV_ERROR_FILE"
}
TEXT = "".join(f"{i} bottles stand on the wall, {i * i % 97} fall; {'so' * (i % 3)} it goes.\n" for i in range(120))
# Small enough for a sanitizer build on one core.
TINY = ["--size", "debug-tiny", "--layers", "1", "--width", "16", "--context", "16", "--length", "16", "--batch", "2", "--text", "text", "--threads", "1"]


class Run:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def refused(self, code, *parts):
        """Expects this exit code, and one line on stderr that names the program and contains every part."""
        assert self.code == code, f"exit code {self.code}, not {code}: {self.err!r} {self.out[-300:]!r}"
        assert self.err.endswith("\n") and self.err.count("\n") == 1, f"not one line: {self.err!r}"
        assert self.err.startswith("isotope-"), self.err
        for part in parts:
            assert part in self.err, f"no {part!r} in {self.err!r}"
        return self

    def succeeded(self):
        assert self.code == 0, f"exit code {self.code}: {self.err!r} {self.out[-300:]!r}"
        assert self.err == "", self.err
        return self


def skip(why):
    """Ends the test as skipped."""
    print(why)
    sys.exit(77)


class Folder:
    """A working folder that contains a small text."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.write("text", TEXT)

    def write(self, name, content):
        data = content if isinstance(content, bytes) else content.encode()
        (self.path / name).write_bytes(data)
        return name

    def read(self, name):
        return (self.path / name).read_bytes()

    def names(self, folder):
        return sorted(p.name for p in (self.path / folder).iterdir())

    def command(self, name, arguments):
        return [str(PROGRAMS / f"isotope-{name}"), *map(str, arguments)]

    def run(self, name, *arguments, env=None, **options):
        done = subprocess.run(self.command(name, arguments), cwd=self.path, env=ENVIRONMENT | (env or {}), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False, **options)
        return Run(done)

    def train(self, *arguments, **options):
        return self.run("train", *TINY, *arguments, **options)

    def start(self, *arguments, **options):
        return subprocess.Popen(self.command("train", [*TINY, *arguments]), cwd=self.path, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def checkpoint(self, folder, step):
        return self.read(f"{folder}/step-{step:08d}.safetensors")


def main(tests):
    """program_test.py PROGRAMS TEST: runs one function of the caller by name."""
    test = tests[sys.argv[2]]
    with tempfile.TemporaryDirectory(prefix="isotope-programs-") as path:
        try:
            test(Folder(path))
        except AssertionError as error:
            traceback.print_exc()
            sys.exit(f"{sys.argv[2]}: {error}")
