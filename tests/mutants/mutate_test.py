#!/usr/bin/env python3
"""mutate_test.py: tests the output of mutate.py, and the lists that it refuses. mutate_test.py SOURCE: applies every list of the repository SOURCE to it, which
fails if a file or text that a list names has changed; the programs with these mutants are built by night alone."""

import pathlib
import sys
import tempfile

import mutate

HEADER = "#pragma once\nint f(int a) { return a + 1; }\nint g(int a) { return 2 * (a + 3); }\n"
SHADER = "#version 460\n#extension GL_X : require\nvoid main() { y = a + 1; }\n"


def mutant(name, find, changed, file="kernels/a.hpp", **more):
    return {"name": name, "breaks": "a test", "file": file, "find": find, "mutated": changed, "ops": ["add"]} | more


def written(members, file="include/isotope/kernels/a.hpp"):
    with tempfile.TemporaryDirectory() as folder:
        source, out = pathlib.Path(folder, "source"), pathlib.Path(folder, "out")
        for path, text in (("kernels/a.hpp", HEADER), ("kernels/gpu/a.comp", SHADER), ("include/isotope/b.hpp", HEADER)):
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(text)
        (source / "kernels/gpu/text.hpp").write_text("#pragma once\n#include <isotope/kernels/gpu/a.glsl>\n")
        (source / "include/isotope/kernels").symlink_to("../../kernels")
        listed = [mutate.Mutant(k + 1, m) for k, m in enumerate(members)]
        mutate.write_tree(listed, source, out)
        assert (out / "kernels/a.hpp").read_text() == (out / "include/isotope/kernels/a.hpp").read_text()
        before = (out / "kernels/a.hpp").stat().st_mtime_ns
        mutate.write_tree(listed, source, out)
        assert (out / "kernels/a.hpp").stat().st_mtime_ns == before, "an unchanged file was written"
        return (out / file).read_text()


def refused(members, *parts):
    try:
        written(members)
    except mutate.Refused as error:
        for part in parts:
            assert part in str(error), f"no {part!r} in {error}"
        return
    raise AssertionError(f"not refused: {members}")


def lists_fit(source):
    lists = sorted(source.glob("tests/*/mutants.json")) + [source / "tests/mutants/planner.json"]
    assert len(lists) > 2, f"{source} has few lists: {lists}"
    bad = False
    for path in lists:
        with tempfile.TemporaryDirectory() as out:
            try:
                mutants = mutate.read_list(path)
                mutate.write_tree(mutants, source, pathlib.Path(out))
                print(f"{path.relative_to(source)}: {len(mutants)} mutants")
            except mutate.Refused as error:
                bad = True
                print(f"error: {path.relative_to(source)}: {error}")
    sys.exit(bad)


def main():
    chosen = "isotope::mutants::chosen"
    assert f"return ({chosen}(1) ? (a + 2) : (a + 1));" in written([mutant("one", "a + 1", "a + 2")])
    assert f"if ({chosen}(1)) {{  }} else {{ return a + 1; }}" in written([mutant("one", "return a + 1;", "", kind="statement")])
    assert f"return a + (4 + ({chosen}(1)));" in written([mutant("one", "return a + 1;", "return a + (4 + CHOSEN);", kind="text")])
    text = written([mutant("outer", "2 * (a + 3)", "0"), mutant("inner", "a + 3", "a"), mutant("same", "a + 3", "3")])
    assert f"({chosen}(1) ? (0) : (2 * (({chosen}(2) ? (a) : (({chosen}(3) ? (3) : (a + 3)))))))" in text, text
    assert text.index("chosen.hpp") < text.index("int f")
    shader = written([mutant("one", "a + 1", "a", "kernels/gpu/a.comp")], "kernels/gpu/a.comp")
    assert shader.startswith('#version 460\n#extension GL_X : require\n#include "../mutant.glsl"\n'), shader
    assert "(MUTANT == 1 ? (a) : (a + 1))" in shader, shader

    # C++ that includes a shader's text has the choice, and the text works in both languages.
    included = written([], "kernels/gpu/text.hpp")
    assert included.index("chosen.hpp") < included.index("a.glsl"), included
    choice = written([], "kernels/mutant.glsl")
    assert "#define MUTANT isotope::mutants::shown()" in choice and "const int MUTANT = 0" in choice, choice

    refused([mutant("twice", "(int a)", "()")], "twice", "kernels/a.hpp", "2 times")
    refused([mutant("none", "b + 1", "b")], "none", "kernels/a.hpp", "0 times")
    refused([mutant("a", "int a) { return a + 1", "x"), mutant("b", "return a + 1; }", "y")], "'b' in kernels/a.hpp", "overlaps 'a'")
    refused([mutant("a", "return a + 1;", "return CHOSEN;", kind="text"), mutant("b", "a + 1", "a")], "'b' in kernels/a.hpp", "'a' replaces it")
    refused([mutant("one", "a + 1", "a", "kernels/b.hpp")], "one", "no such file")
    refused([mutant("one", "a + 1", "a", "tests/b.hpp")], "one", "tests/b.hpp")
    refused([mutant("one", "a + 1", "a", wrong=1)], "one", "wrong")
    refused([mutant("one", "a + 1", "a", tests="step.*")], "one", "either ops or tests")
    refused([mutant("one", "a + 1", "a", ops=[])], "one", "either ops or tests")
    refused([mutant("one", "a + 1", "a + 1")], "one", "changes nothing")
    refused([mutant("one", "a + 1", "a", kind="text")], "one", "CHOSEN")
    refused([mutant("one", "a + 1", "a, 1")], "one", "a comma outside of brackets")
    refused([mutant("one", "return a + 1", "return a")], "one", "is no expression")
    refused([mutant("one", "(a +", "(a -")], "one", "ends in an operator")


if len(sys.argv) > 1:
    lists_fit(pathlib.Path(sys.argv[1]))
main()
