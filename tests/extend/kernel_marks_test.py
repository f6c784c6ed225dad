#!/usr/bin/env python3
"""Which changes of sources kernel_marks.py treats as a change of a kernel."""
import contextlib
import io
import json
import pathlib
import subprocess
import tempfile

import kernel_marks

FILES = {
    "kernels/cpu/portable/softmax.hpp": '#pragma once\n#include <isotope/kernels/cpu/rows/rows.hpp>\ntemplate <class P> struct kernel<op::softmax, P, kernels::portable> {};\n',
    "kernels/cpu/rows/rows.hpp": "#pragma once\nint rows();\n",
    "kernels/cpu/portable/exp.hpp": "#pragma once\ntemplate <class P> struct kernel<op::exp, P, kernels::portable> {};\n",
    "kernels/cpu/all.hpp": "#pragma once\nkernel<op::softmax, P, kernels::portable>,\n",
    "kernels/gpu/portable/fft.hpp": "#pragma once\n#include <isotope/shaders/fft_bins_wide.hpp>\ntemplate <class P> struct kernel<op::fft, P, kernels::portable> {};\n",
    "kernels/gpu/portable/fft.comp": "void main() {}\n",
    "kernels/gpu/portable/fft_bins.comp": '// variant wide: -DWIDE\n#include "bins.glsl"\nvoid main() { bins(); }\n',
    "kernels/gpu/bins.glsl": "void bins() {}\n",
    "kernels/tpu/reference/sort.hpp": "#pragma once\n#include <isotope/fatbins/reference_sort.hpp>\ntemplate <class P> struct kernel<op::sort, P, kernels::reference> {};\n",
    "kernels/tpu/reference/sort.cu": '// flags: -O1\n#include "../keys.cuh"\nvoid sort() { keys(); }\n',
    "kernels/tpu/keys.cuh": "void keys() {}\n",
}


def write(root, files):
    for name, text in files.items():
        file = pathlib.Path(root, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def digests(changes=(), without=()):
    with tempfile.TemporaryDirectory() as root:
        write(root, {**FILES, **dict(changes)})
        for name in without:
            pathlib.Path(root, name).unlink()
        return kernel_marks.tree(root).digests()


def changed(file, before, after):
    """The kernels whose digests change with one file."""
    assert before in FILES[file], (file, before)
    old, new = digests(), digests({file: FILES[file].replace(before, after)})
    assert old.keys() == new.keys()
    return {name.split()[-1] for name in old if old[name] != new[name]}


def stale(root, words):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        status = kernel_marks.stale(pathlib.Path(root, "conformance.json"), words, root)
    return status, said.getvalue()


def run_of(commit, device="cpu"):
    return {"backend": "cpu", "precision": "f32", "kernels": "portable", "device": device, "commit": commit, "ran": ["softmax", "exp", "argmax"]}


def judged():
    """Runs are added with the digests of their commit, and replace earlier ones of the same device."""
    with tempfile.TemporaryDirectory() as root:
        def git(*words):
            return subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b.c", *words], check=True, capture_output=True, text=True).stdout.strip()

        def commit():
            git("add", "kernels")
            git("commit", "-qm", "a")
            return git("rev-parse", "HEAD")

        def add(*runs):
            pathlib.Path(root, "summary.json").write_text(json.dumps(runs))
            kernel_marks.add(pathlib.Path(root, "conformance.json"), pathlib.Path(root, "summary.json"), root)
            return json.loads(pathlib.Path(root, "conformance.json").read_text())

        write(root, FILES)
        git("init", "-q")
        first = commit()
        runs = add(run_of(first), run_of(first, "another"))
        assert [set(run["digests"]) for run in runs] == [{"softmax", "exp"}] * 2, runs
        assert stale(root, "cpu,other") == (0, "")
        write(root, {"kernels/cpu/rows/rows.hpp": "#pragma once\nint rows(int);\n"})
        status, said = stale(root, "cpu,other")
        assert status == 1 and f"cpu portable softmax (f32) changed since {first} judged it on cpu\n" in said and "exp" not in said, said
        assert stale(root, "other") == (0, ""), "of other devices nothing is asked"
        second = commit()
        runs = add(run_of(second))
        assert [(run["device"], run["commit"]) for run in runs] == [("another", first), ("cpu", second)], runs
        assert stale(root, "cpu") == (0, "")
        try:
            add(run_of("0" * 40))
            raise AssertionError("a commit that is not there was taken")
        except SystemExit as why:
            assert "run it again" in str(why), why


assert set(digests()) == {"cpu portable softmax", "cpu portable exp", "gpu portable fft", "tpu reference sort"}
assert changed("kernels/cpu/rows/rows.hpp", "int rows", "long rows") == {"softmax"}, "an included file"
assert changed("kernels/cpu/rows/rows.hpp", "int rows();", "/// Rows.\nint  rows(); // all\n/* of\nthem */") == set(), "comments and blanks"
assert changed("kernels/gpu/bins.glsl", "{}", "{ barrier(); }") == {"fft"}, "a file that a shader includes"
assert changed("kernels/gpu/portable/fft_bins.comp", "-DWIDE", "-DWIDE=2") == {"fft"}, "the flags of a variant"
assert changed("kernels/tpu/keys.cuh", "{}", "{ ; }") == {"sort"}, "a file that a source of a fatbin includes"
assert changed("kernels/tpu/reference/sort.cu", "-O1", "-O2") == {"sort"}, "the flags of a fatbin"
assert changed("kernels/gpu/portable/fft.comp", "{}", "{ ; }") == set(), "another module"
moved = {"kernels/cpu/lines/lines.hpp": FILES["kernels/cpu/rows/rows.hpp"], "kernels/cpu/portable/softmax.hpp": FILES["kernels/cpu/portable/softmax.hpp"].replace("rows", "lines")}
assert digests(moved, ["kernels/cpu/rows/rows.hpp"]) == digests(), "a move"
judged()
