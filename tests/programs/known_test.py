"""The known answers: they exist, every file names the source of its numbers, a wrong number is found, and every op is covered."""

import json
import math
import pathlib

from known_answers import results
from program import main

CONFORM = pathlib.Path(__file__).resolve().parents[1] / "conform"
FILES = sorted((CONFORM / "known").glob("*.json"))

DRAWN = "of the pairs of counter and key for which Random123 publishes words an op reaches zeros alone"
SHADOW = "a copy of 16 bits beside weights of f32 is in programs of 16 bits alone; answers are written for f32"
FORMAT = "it chooses between a program's format and that of its sums, which in f32 are one"
NO_GRADIENT = "a mask has none"
RULES = "its rules are compared with a host reference in tests/op/sample_test.cpp, and its words are those of categorical"
OF_ALL = "its law `halves` compares it with cross_entropy_grad, whose answers are PyTorch's"
ROUNDED = "kernels have the bits of a loop over its definition in tests/plan/a8_test.cpp"
# What known answers do not cover, and why. Everything else of every op is compared with numbers that are independent of this library.
WITHOUT_REFERENCE = {
    **{f"{op}: attribute {name}": DRAWN for op in ("attention", "categorical", "dropout") for name in ("seed", "counter")},
    **{f"{op}: attribute shadow": SHADOW for op in ("adamw", "momentum", "muon", "sgd")},
    **{f"{op}: result shadow": SHADOW for op in ("adamw", "muon", "sgd")},
    **{f"{op}: attribute format": FORMAT for op in ("embedding", "matmul", "max", "mean", "min", "prod", "sum")},
    "attention: gradient of mask": NO_GRADIENT,
    "cross_entropy_part_grad": OF_ALL,
    "matmul: attribute a8": ROUNDED,
    "sample": RULES,
}

# References and PyTorch both compute in f64, with errors of about ten roundings, 1e-15, of the largest number of a tensor, and torch_ops.py makes
# no number below 2^-10 of it. The largest difference is 4e-14.
APART = 1e-12


def answers_of(paths):
    return [case for path in paths for case in json.loads(path.read_text())["cases"]]


def without_reference(plan, cases):
    """Ops, and attributes, results and gradients of ops, that no case covers. A case covers an attribute if it is not the default."""
    missing = set()
    for op in plan:
        name, mine = op["op"], [case for case in cases if case["op"] == op["op"]]
        if not mine:
            missing.add(name)
            continue
        for attribute in op["attributes"]:
            if all(case.get("attrs", {}).get(attribute["name"], attribute.get("default")) == attribute.get("default") for case in mine):
                missing.add(f"{name}: attribute {attribute['name']}")
        for n, result in enumerate(op["outputs"]):
            if all(len(case["outputs"]) <= n for case in mine):
                missing.add(f"{name}: result {result['name']}")
        given = {grad["input"] for case in mine for grad in case.get("grads", [])}
        for n, operand in enumerate(op["inputs"] if op["differentiable"] else []):
            if n not in given and operand["holds"] not in ("i32", "bool"):
                missing.add(f"{name}: gradient of {operand['name']}")
    return missing


def judged(folder, answers):
    """Each case of a file with its result, on the cpu backend."""
    cases, found = answers["cases"], results(folder, answers, "--backend", "cpu")
    assert len(found) == len(cases), (len(found), len(cases))
    return zip(cases, found)


def apart(result):
    """The difference between the specification's reference and the file; infinite numbers are null."""
    return max(math.inf if x is None else x for x in result["reference_outputs"] + result["reference_grads"])


def wrong_by_one_number(case):
    """For each expected number, the case with that number changed by a hundredth, or set to 1 if it was not finite."""
    def places(c):
        for key in ("outputs", "grads"):
            for k, x in enumerate(c.get(key, [])):
                if isinstance(x, dict):
                    yield from ((x["numbers"], i) for i in range(len(x["numbers"])))
                else:
                    yield c[key], k

    for n in range(len(list(places(case)))):
        wrong = json.loads(json.dumps(case))
        numbers, i = list(places(wrong))[n]
        was = 0 if isinstance(numbers[i], str) else numbers[i]
        numbers[i] = was + (1 if was == 0 or isinstance(was, int) else was / 100)
        yield wrong


def test_every_number_of_the_corpus_is_looked_at(folder):
    assert len(FILES) >= 20, FILES
    for path in FILES:
        answers = json.loads(path.read_text())
        broken = [wrong for case in answers["cases"] for wrong in wrong_by_one_number(case)]
        for case, result in judged(folder, answers | {"cases": broken}):
            assert result["status"] == "fail" and apart(result) > APART, (path.name, case, result)


def test_everything_of_every_op_has_a_second_reference(folder):
    run = folder.run("conform", "plan", "--json").succeeded()
    plan, cases = json.loads(run.out), answers_of(FILES)
    assert {op["op"] for op in plan} == {path.stem for path in (CONFORM / "golden").glob("*.json")}
    missing = without_reference(plan, cases)
    assert not missing - WITHOUT_REFERENCE.keys(), f"no known answer, and no reason: {sorted(missing - WITHOUT_REFERENCE.keys())}"
    assert not WITHOUT_REFERENCE.keys() - missing, f"a reason, and a known answer: {sorted(WITHOUT_REFERENCE.keys() - missing)}"
    for op in plan:
        assert op["op"] in without_reference(plan, [case for case in cases if case["op"] != op["op"]]), op["op"]
        if op["differentiable"]:
            results_alone = [{k: v for k, v in case.items() if case["op"] != op["op"] or k != "grads"} for case in cases]
            assert any(part.startswith(f"{op['op']}: gradient") for part in without_reference(plan, results_alone) - missing), op["op"]


def test_the_references_in_f64_agree_with_pytorch(folder):
    cases = answers_of(path for path in FILES if path.name.startswith("pytorch_"))
    assert len(cases) > 150, len(cases)
    for case, result in judged(folder, {"source": "PyTorch", "cases": cases}):
        assert result["status"] == "pass" and apart(result) <= APART, (case, result)


def test_every_kernel_set_of_the_processor_gives_the_answers(folder):
    cases = answers_of(FILES)
    for kernels in ("reference", "portable", "native"):
        bad = [r for r in results(folder, {"source": "all", "cases": cases}, "--backend", "cpu", "--kernels", kernels) if r["status"] != "pass"]
        assert not bad, (kernels, bad)


if __name__ == "__main__":
    main(globals())
