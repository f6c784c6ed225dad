"""Converts known answers, tests/conform/known/*.json, to cases for isotope-conform run-file. `known_answers.py PROGRAMS FILE` runs one file.

A file has a `source`, which says where its numbers come from, and `cases`, each with the op and attributes of `isotope-conform plan --json`,
`inputs`, `outputs` and optionally `cotangents`, `grads`, `rtol`, `atol`; without the last two the op's own bound applies. A tensor is a number or
{"dims", "numbers"}, with "type": "I64" for ids; "inf", "-inf" and "nan" are numbers.
"""

import json
import pathlib
import sys

from conform_cases import Tensor, save


def tensors_of(case, n):
    """The case with names of its tensors, which contain the case's number n, and the tensors."""
    found, named = {}, dict(case)
    for key in ("inputs", "outputs", "cotangents", "grads"):
        named[key] = []
        for x in case.get(key, []):
            if not isinstance(x, dict):
                named[key].append(x)
                continue
            name = f"{n} {key} {len(named[key])}"
            found[name] = Tensor(x["dims"], map({"I64": int}.get(x.get("type"), float), x["numbers"]), x.get("type", "F64"))
            named[key].append({"tensor": name} | ({"input": x["input"]} if "input" in x else {}))
    return {k: v for k, v in named.items() if v != [] or k == "inputs"}, found


def results(folder, answers, *arguments):
    """Runs the cases of a file; returns the lines that run-file writes."""
    assert answers["source"] and answers["cases"], "needs a source and cases"
    lines, size = [], 100  # `size` cases share a file of tensors
    for first in range(0, len(answers["cases"]), size):
        file, tensors = f"{first}.safetensors", {"none": Tensor((), [0.0])}
        for n, case in enumerate(answers["cases"][first:first + size], first):
            named, found = tensors_of(case, n)
            tensors |= found
            lines.append(json.dumps(named | {"id": f"{n} {case['op']}", "file": file}))
        save(folder.path / file, tensors)
    folder.write("m.jsonl", "\n".join(lines))
    # The cases are for f32: they have 7 digits, and inputs that are not exact in bf16.
    run = folder.run("conform", "run-file", "--precision", "f32", "--manifest", "m.jsonl", "--tensors", ".", "--out", "r.jsonl", *arguments)
    assert run.code in (0, 1), run.err
    return [json.loads(line) for line in folder.read("r.jsonl").decode().splitlines()]


def the_file_passes(folder):
    answers = json.loads(pathlib.Path(sys.argv[2]).read_text())
    bad = [r for r in results(folder, answers) if r["status"] != "pass"]
    assert not bad, bad


if __name__ == "__main__":
    from program import main

    main({sys.argv[2]: the_file_passes})
