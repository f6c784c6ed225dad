#!/usr/bin/env python3
"""Digests of kernel sources, so that a mark in kernels/README.md is valid only for the kernel that was judged.

  kernel_marks.py digests [ROOT]                      prints a digest for each kernel, as JSON: {"cpu portable softmax": "0123456789abcdef", ...}
  kernel_marks.py add CONFORMANCE SUMMARY [ROOT]      adds the runs of SUMMARY, which `isotope-conform verify --out` wrote, to CONFORMANCE: each with the
                                                      digests of its kernels at its commit; replaces an earlier run of the same kernels and device,
                                                      of which a run of fewer ops keeps the others
  kernel_marks.py stale CONFORMANCE WORDS [ROOT]      names the kernels that have changed since they were judged, in runs whose device's name starts with
                                                      one of WORDS, separated by commas, and fails if there are any

A kernel's digest is that of all sources below kernels/ that its header includes, shaders among them, without comments, blanks and file names, so
changes of comments and moved files do not change it."""
import functools
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SETS = ("reference", "portable", "native")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
KERNEL = re.compile(r"kernel<op::(\w+), *\w+, *kernels::(\w+)>(?! *,| *>)")


class tree:
    """The sources of one commit."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.sources = {"shaders": self.modules("*.comp"), "fatbins": self.modules("*.cu")}

    def modules(self, pattern):
        """The device code whose files match a pattern, by the names of its modules."""
        files = sorted(self.root.glob("kernels/**/" + pattern))
        return {file.stem if file.parent.name != "reference" else "reference_" + file.stem: file for file in reversed(files)}

    @functools.lru_cache(None)
    def read(self, file):
        return file.read_text()

    def source(self, kind, module):
        """The source of a module. One source may make several modules, whose names begin with its name; None: there is none."""
        names = [name for name in self.sources[kind] if module == name or module.startswith(name + "_")]
        return self.sources[kind][max(names, key=len)] if names else None

    def included(self, file):
        """The sources below kernels/ that a file includes."""
        for kind, name in INCLUDE.findall(self.read(file)):
            module = re.match(r"isotope/(shaders|fatbins)/(\w+)\.hpp$", name)
            if module:
                found = self.source(module[1], module[2])
                if found is None:
                    sys.exit(f"kernel_marks: {file.relative_to(self.root)} includes the module {module[2]}, which has no source")
            elif name.startswith("isotope/kernels/"):
                found = self.root / name.removeprefix("isotope/")
            elif kind == '"':
                found = (file.parent / name).resolve()
                if not found.is_file():  # shaders also include from the root of their backend
                    found = self.root / "kernels" / file.relative_to(self.root.resolve() / "kernels").parts[0] / name
            else:
                continue
            if found.is_file() and self.root.resolve() / "kernels" in found.resolve().parents:
                yield found.resolve()

    @functools.lru_cache(None)
    def bare(self, file):
        """The digest of one file's text."""
        text = COMMENT.sub(lambda m: m[0] if m[0].startswith(('"', "// variant ", "// flags:")) else " ", self.read(file))  # these comments count, since they are compiler flags
        lines = [" ".join(line.split()) for line in text.splitlines() if not re.match(r"\s*#\s*(include|pragma once)", line)]
        return hashlib.sha256(" ".join(line for line in lines if line).encode()).hexdigest()

    def digest(self, *files):
        """The digest of these files and all that they include."""
        seen, open_files = set(), [file.resolve() for file in files]
        while open_files:
            file = open_files.pop()
            if file not in seen:
                seen.add(file)
                open_files += self.included(file)
        return hashlib.sha256("".join(sorted(map(self.bare, seen))).encode()).hexdigest()[:16]

    def digests(self):
        """The digest of each kernel, by backend, set and op."""
        all_digests = {}
        for file in sorted(self.root.glob("kernels/*/*/*.hpp")):
            backend, of = file.parts[-3:-1]
            if of not in SETS or file.name == "all.hpp":
                continue
            for op, declared in KERNEL.findall(self.read(file)):
                if declared == of:
                    all_digests[f"{backend} {of} {op}"] = self.digest(file)
        for instructions in sorted(self.root.glob("kernels/*/body/instructions.hpp")):  # element-wise ops without their own kernels, which an interpreter runs
            folder = instructions.parents[1]
            listed = re.search(r"instruction_ops\s*=.*?;", self.read(instructions), re.DOTALL)
            for of in ("reference", "portable"):
                value = self.digest(instructions, folder / of / "elementwise.hpp")
                for op in re.findall(r"op::(\w+)", listed[0] if listed else ""):
                    all_digests.setdefault(f"{folder.name} {of} {op}", value)
        return all_digests


def digests_at(root, commit):
    """The digests of a commit's kernels."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "-C", root, "archive", commit, "kernels"], capture_output=True)
        if archive.returncode:
            sys.exit(f"kernel_marks: a run is of the commit '{commit}', whose sources git does not have; run it again from a commit, without changes")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        return tree(folder).digests()


def kernels_of(run):
    """The names of a run's kernels in the digests."""
    return {op: f"{run['backend']} {run['kernels']} {op}" for op in run["ran"]}


def add(conformance, summary, root):
    """Adds runs to the existing ones."""
    file = pathlib.Path(conformance)
    runs = json.loads(file.read_text()) if file.exists() else []

    def place(run):
        return [run[key] for key in ("backend", "precision", "kernels", "device")]

    def joined(run, earlier):
        """A run in place of an earlier one. If it ran some ops only, the others stay as they were judged, and so do the commit and the number of cases."""
        others = set(earlier["ran"]) - set(run["ran"])
        if not others:
            return run
        both = {key: sorted(set(run[key]) | {op for op in earlier[key] if op in others}) for key in ("ran", "failing", "unsupported")}
        both["native_shaders"] = sorted(set(run["native_shaders"]) | set(earlier["native_shaders"]))
        both["digests"] = {op: digest for op, digest in earlier["digests"].items() if op in others} | run["digests"]
        return earlier | both

    for run in json.loads(pathlib.Path(summary).read_text()):
        known = digests_at(root, run["commit"])
        run["digests"] = {op: known[name] for op, name in kernels_of(run).items() if name in known}
        same = [other for other in runs if place(other) == place(run)]
        runs = [other for other in runs if place(other) != place(run)] + [joined(run, same[0]) if same else run]
    runs.sort(key=lambda run: (run["backend"], run["device"], run["precision"], ["reference", "portable", "native"].index(run["kernels"])))
    file.write_text("[\n" + ",\n".join(json.dumps(run, sort_keys=True) for run in runs) + "\n]\n")


def stale(conformance, words, root):
    """The kernels of some devices that have changed since they were judged."""
    now = tree(root).digests()
    found = 0
    for run in json.loads(pathlib.Path(conformance).read_text()):
        if not run["device"].startswith(tuple(words.split(","))):
            continue
        for op, name in kernels_of(run).items():
            if now.get(name) != run.get("digests", {}).get(op):
                print(f"{name} ({run['precision']}) changed since {run.get('commit', 'its run')} judged it on {run['device']}")
                found += 1
    if found:
        print("commit the kernels, then run `.ci/certify` and commit what it writes")
    return 1 if found else 0


def main():
    words = sys.argv[1:]
    needs = {"digests": 0, "add": 2, "stale": 2}
    if not words or words[0] not in needs or not needs[words[0]] <= len(words) - 1 <= needs[words[0]] + 1:
        sys.exit(__doc__)
    root = words[needs[words[0]] + 1] if len(words) > needs[words[0]] + 1 else "."
    if words[0] == "digests":
        print(json.dumps(tree(root).digests(), indent=1, sort_keys=True))
        return 0
    if words[0] == "add":
        return add(words[1], words[2], root)
    return stale(words[1], words[2], root)


if __name__ == "__main__":
    sys.exit(main())
