#!/usr/bin/env python3
"""mutate.py LIST SOURCE OUT: writes the mutated copies of SOURCE/include and SOURCE/kernels to OUT. The format of LIST is in README.md.

OUT/include/isotope/kernels contains the kernels and OUT/kernels is a link to it, so that compilers see each file under one path."""

import json
import os
import pathlib
import re
import sys

MEMBERS = {"name", "breaks", "file", "find", "mutated", "kind", "ops", "tests", "flags", "may", "needs", "runs", "environment"}
REQUIRED = {"name", "breaks", "file", "find", "mutated"}
KINDS = ("expression", "statement", "text")
GLSL = (".comp", ".glsl")
SUFFIXES = (".hpp", ".cpp", ".h", ".cuh", ".cu", *GLSL)
GLSL_CHOICE = """#ifndef MUTANT_GLSL
#define MUTANT_GLSL
#ifdef __cplusplus
#define MUTANT isotope::mutants::shown()
#else
layout(constant_id = 1000) const int MUTANT = 0;
#endif
#endif
"""


class Refused(Exception):
    pass


def text_of(value):
    return "\n".join(value) if isinstance(value, list) else value


class Mutant:
    def __init__(self, number, members):
        self.number = number
        self.name = members.get("name", f"number {number}")
        if not isinstance(self.name, str) or not re.fullmatch("[a-z0-9_]+", self.name):
            raise Refused(f"mutant {self.name!r}: a name has lower-case letters, digits and underscores")
        self.where = f"mutant '{self.name}'"
        unknown, missing = sorted(members.keys() - MEMBERS), sorted(REQUIRED - members.keys())
        if unknown or missing:
            raise Refused(f"{self.where}: " + ("no member " + ", ".join(unknown) if unknown else "needs " + ", ".join(missing)))
        self.file, self.find, self.mutated = members["file"], text_of(members["find"]), text_of(members["mutated"])
        self.where += f" in {self.file}"
        self.kind = members.get("kind", "expression")
        self.ops, self.tests, self.flags = members.get("ops", []), members.get("tests", ""), members.get("flags", [])
        self.may, self.needs, self.runs = members.get("may", []), members.get("needs", ""), members.get("runs", 1)
        self.breaks, self.environment = members["breaks"], members.get("environment", {})
        if self.kind not in KINDS:
            raise Refused(f"{self.where}: kind '{self.kind}' is not one of {', '.join(KINDS)}")
        if not self.find or self.find == self.mutated:
            raise Refused(f"{self.where}: it changes nothing")
        if not isinstance(self.ops, list) or not isinstance(self.tests, str) or not isinstance(self.flags, list) or not set(self.may) <= {"signal", "time"}:
            raise Refused(f"{self.where}: ops is a list of names, tests a text, flags a list, may a list of signal, time")
        if bool(self.ops) == bool(self.tests):
            raise Refused(f"{self.where}: it names either ops or tests")
        if not isinstance(self.environment, dict) or not all(isinstance(value, str) for value in self.environment.values()):
            raise Refused(f"{self.where}: environment is an object with texts")
        if not self.file.startswith(("kernels/", "include/isotope/")) or self.file.startswith("include/isotope/kernels"):
            raise Refused(f"{self.where}: files are those of kernels/ and include/isotope/")

    def locate(self, text):
        found = text.count(self.find)
        if found != 1:
            raise Refused(f"{self.where}: its text occurs {found} times, not once: {self.find!r}")
        self.first = text.index(self.find)
        self.last = self.first + len(self.find)

    def around(self, original, glsl):
        """The choice between the mutant and the original text."""
        chosen = f"MUTANT == {self.number}" if glsl else f"isotope::mutants::chosen({self.number})"
        if self.kind == "statement":
            return f"if ({chosen}) {{ {self.mutated} }} else {{ {original} }}"
        if self.kind == "text":
            if "CHOSEN" not in self.mutated:
                raise Refused(f"{self.where}: a text names CHOSEN where the choice is made")
            return self.mutated.replace("ORIGINAL", original).replace("CHOSEN", f"({chosen})")
        if not expression(self.find) or not expression(self.mutated):
            raise Refused(f"{self.where}: a text with a comma outside of brackets, that begins with if or ends in an operator is no expression: choose kind text or statement")
        return f"({chosen} ? ({self.mutated}) : ({original}))"


def expression(text):
    """Whether the text may be an operand of ?: in the place where it stands: neither several arguments nor a statement."""
    outside = re.sub(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])+'", "0", text)
    while (shorter := re.sub(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|<[\w:, ]*>", "", outside)) != outside:
        outside = shorter
    return "," not in outside and not re.match(r"\s*(if|for|while|return)\b", text) and not re.search(r"[-+*/%&|<>=?:]\s*$", text)


def read_list(path):
    try:
        listed = json.loads(pathlib.Path(path).read_text())
    except ValueError as error:
        raise Refused(f"{path}: {error}") from None
    mutants = [Mutant(k + 1, members) for k, members in enumerate(listed)]
    names = [m.name for m in mutants]
    for m in mutants:
        if names.count(m.name) > 1:
            raise Refused(f"{m.where}: another one has its name")
    return mutants


def mutated(text, first, last, mutants, glsl):
    """text[first:last] with the choices of the `mutants` in it; the original text of an outer choice contains the inner ones."""
    out, at = "", first
    rest = sorted(mutants, key=lambda m: (m.first, -m.last))
    while rest:
        outer = rest[0]
        inside = [m for m in rest[1:] if m.first < outer.last]
        for m in inside:
            if m.last > outer.last:
                raise Refused(f"{m.where}: it overlaps '{outer.name}' and is not inside it")
            if outer.kind == "text" and "ORIGINAL" not in outer.mutated:
                raise Refused(f"{m.where}: '{outer.name}' replaces it and does not say ORIGINAL")
        out += text[at:outer.first] + outer.around(mutated(text, outer.first, outer.last, inside, glsl), glsl)
        at, rest = outer.last, rest[1 + len(inside):]
    return out + text[at:last]


def with_choice(text, glsl, choice="mutant.glsl"):
    """Declares the choice at the top of a header, or after the last #extension of a shader, where `choice` is the include path."""
    if not glsl:
        once = text.find("#pragma once\n")
        at = once + len("#pragma once\n") if once >= 0 else 0
        return text[:at] + "#include <isotope/mutants/chosen.hpp>\n" + text[at:]
    last = 0
    for directive in re.finditer(r"^#(version|extension)[^\n]*\n", text, re.M):
        last = directive.end()
    return text[:last] + f'#include "{choice}"\n' + text[last:]


def write(path, content):
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write_tree(mutants, source, out):
    by_file = {}
    for m in mutants:
        by_file.setdefault(m.file, []).append(m)
    for file, some in by_file.items():
        if not (source / file).is_file():
            raise Refused(f"{some[0].where}: there is no such file")
    library = out / "include/isotope"
    files = {library / "mutants/chosen.hpp": (pathlib.Path(__file__).parent / "chosen.hpp").read_bytes(),
             library / "kernels/mutant.glsl": GLSL_CHOICE.encode()}
    for top, to in (("include/isotope", library), ("kernels", library / "kernels")):
        for folder, _, names in os.walk(source / top):  # os.walk does not follow the link to the kernels
            for name in names:
                path = pathlib.Path(folder) / name
                if path.suffix not in SUFFIXES:
                    continue
                content, some = path.read_bytes(), by_file.get(path.relative_to(source).as_posix())
                if some:
                    text, glsl = content.decode(), path.suffix in GLSL
                    for m in some:
                        m.locate(text)
                    choice = os.path.relpath(source / "kernels/mutant.glsl", path.parent)
                    content = with_choice(mutated(text, 0, len(text), some, glsl), glsl, choice).encode()
                elif path.suffix == ".hpp" and re.search(rb'^#include [<"].*\.glsl[>"]$', content, re.M):
                    content = with_choice(content.decode(), False).encode()  # C++ that includes the text of shaders
                files[to / path.relative_to(source / top)] = content
    for path, content in files.items():
        write(path, content)
    for path in library.rglob("*"):  # removes files that the sources do not have
        if path.is_file() and path not in files:
            path.unlink()
    if not (out / "kernels").is_symlink():
        (out / "kernels").symlink_to("include/isotope/kernels")


def main():
    try:
        write_tree(read_list(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    except Refused as refused:
        sys.exit(f"mutate.py: {refused}")


if __name__ == "__main__":
    main()
