"""isotope-conform run-file: cases from other programs, and invalid cases."""

import json

import conform_cases
from conform_runs import CPU, last_line
from program import main


def test_cases_made_elsewhere_pass_and_wrong_ones_fail(folder):
    cases, ops = conform_cases.write(folder.path)
    assert ops >= 25
    run = folder.run("conform", "run-file", *CPU, "--precision", "f32", "--manifest", "m.jsonl", "--tensors", ".", "--out", "r.jsonl")
    results = [json.loads(line) for line in folder.read("r.jsonl").splitlines()]
    wrong = [r for r in results if r["status"] != "pass"]
    assert run.code == 0 and not wrong, (run.err, wrong[:3])
    assert last_line(run) == f"{cases} cases, {cases} passed, 0 failed, 0 unsupported"
    assert all(len(r["outputs"]) == 1 for r in results)
    # A number that is changed by a thousandth is found, in a result and in a gradient.
    lines = folder.read("m.jsonl").decode().splitlines()
    for tensor in ("out0", "grad0"):
        case = json.loads(lines[0])
        blob = bytearray(folder.read(case["file"]))
        length = int.from_bytes(blob[:8], "little")
        at = 8 + length + json.loads(blob[8:8 + length])[tensor]["data_offsets"][0] + 8
        value = conform_cases.struct.unpack_from("<d", blob, at)[0]
        conform_cases.struct.pack_into("<d", blob, at, value * 1.001 + 0.001)
        folder.write("wrong.safetensors", bytes(blob))
        folder.write("wrong.jsonl", json.dumps(case | {"file": "wrong.safetensors"}) + "\n")
        run = folder.run("conform", "run-file", *CPU, "--precision", "f32", "--manifest", "wrong.jsonl", "--tensors", ".", "--out", "w.jsonl")
        result = json.loads(folder.read("w.jsonl"))
        assert run.code == 1 and result["status"] == "fail", result
        assert ("result 0" if tensor == "out0" else "gradient of operand 0") + ", element 1" in result["reason"], result


def test_what_is_unsupported_is_counted_and_never_passed(folder):
    folder.write("m.jsonl", "\n".join(json.dumps({"id": str(n), "op": op, "attrs": attrs, "inputs": inputs, "outputs": [1]})
                                      for n, (op, attrs, inputs) in enumerate([("conv7d", {}, [1]), ("exp", {"speed": 9}, [0]), ("narrow", {}, [1]),
                                                                               ("matmul", {}, [1, 2]), ("add", {}, [1]), ("exp", {}, [0])])) + "\n")
    run = folder.run("conform", "run-file", *CPU, "--manifest", "m.jsonl", "--tensors", ".", "--out", "r.jsonl").succeeded()
    assert last_line(run) == "6 cases, 1 passed, 0 failed, 5 unsupported"
    reasons = [json.loads(line)["reason"] for line in folder.read("r.jsonl").splitlines()]
    for reason, part in zip(reasons, ["no op 'conv7d'", "no attribute 'speed'", "needs the attribute 'first'", "operands need two axes", "takes 2 to 2 operands", ""]):
        assert part in reason, (part, reason)


# Invalid attributes and shapes, and the reason that a line of results must contain.
NONSENSE = [("narrow", {"first": 2**63 - 1, "length": 1}, [(4,)], "outside [4]"), ("narrow", {"first": 1, "length": 2**63 - 1}, [(4,)], "outside [4]"),
            ("pad", {"first": 0, "size": 2**62}, [(4,)], "more than 2^40 elements"), ("pad", {"first": 2**63 - 1, "size": 2**63 - 1}, [(4,)], "outside"),
            ("expand", {"shape": [2**31, 2**31]}, [(1, 1)], "more than 2^40 elements"), ("fill", {"shape": [2**31, 2**31]}, [], "more than 2^40 elements"),
            ("reshape", {"shape": [2**31, 2**31, 4]}, [(0,)], "more than 2^40 elements"), ("permute", {"order": [0, 1, 2, 3]}, [(2, 2)], "not a permutation"),
            ("permute", {"order": [0, 0]}, [(2, 2)], "not a permutation"), ("attention", {"heads": 0}, [(1, 4, 12)], "heads 0"),
            ("attention", {"heads": 6148914691236517206, "kv_heads": 6148914691236517206}, [(1, 4, 12)], "heads 6148914691236517206"),
            ("adamw", {"shadow": True}, [(4,)] * 4 + [(1,)] * 2, "a shadow"), ("adamw", {}, [(4,), (2,), (4,), (4,), (1,), (1,)], "differ in size"),
            ("adamw", {}, [(4,), (4,), (2,), (4,), (1,), (1,)], "differ in size"), ("adamw", {}, [(4,), (4,), (4,), (2,), (1,), (1,)], "another size"),
            ("matmul", {"format": "i32"}, [(2, 2), (2, 2)], "floating-point"), ("sum", {"format": "bool"}, [(4,)], "floating-point"),
            ("rope", {"direction": 7}, [(1, 2, 1, 4)], "direction 7"), ("rope", {"base": 0}, [(1, 2, 1, 4)], "base 0"), ("rope", {"base": -1}, [(1, 2, 1, 4)], "base -1")]


def test_a_case_that_makes_no_sense_is_refused_with_its_reason_and_the_others_run(folder):
    ones = lambda shape: conform_cases.Tensor(shape, [1.0] * conform_cases.math.prod(shape))
    tensors = {str(shape): ones(shape) for _, _, shapes, _ in NONSENSE for shape in shapes} | {"e": conform_cases.Tensor((1,), [conform_cases.math.e], "F64")}
    conform_cases.save(folder.path / "t.safetensors", tensors)
    good = {"id": "good", "op": "exp", "attrs": {}, "inputs": [{"tensor": "(1,)"}], "outputs": [{"tensor": "e"}], "file": "t.safetensors"}
    bad = [{"id": str(n), "op": op, "attrs": attrs, "inputs": [{"tensor": str(s)} for s in shapes], "outputs": [1], "file": "t.safetensors"}
           for n, (op, attrs, shapes, _) in enumerate(NONSENSE)]
    folder.write("m.jsonl", "".join(json.dumps(case) + "\n" for case in bad + [good]))
    for kernels in ("reference", "portable", "native"):
        run = folder.run("conform", "run-file", *CPU, "--kernels", kernels, "--precision", "f32", "--manifest", "m.jsonl", "--tensors", ".", "--out", "r.jsonl").succeeded()
        assert last_line(run) == f"{len(bad) + 1} cases, 1 passed, 0 failed, {len(bad)} unsupported"
        results = [json.loads(line) for line in folder.read("r.jsonl").splitlines()]
        assert results[-1]["status"] == "pass", results[-1]
        for result, (op, attrs, _, reason) in zip(results, NONSENSE):
            assert result["status"] == "unsupported" and reason in result["reason"], (op, attrs, result)


# Invalid values of attributes, and the text that the reason must contain.
MISFITS = [("reshape", {"shape": [2**63 - 1, 2]}, "takes no 'shape' of [9223372036854775807,2]"), ("reshape", {"shape": [-2, -2]}, "takes no 'shape' of [-2,-2]"),
           ("reshape", {"shape": [-1, -1]}, "one of them may be -1"), ("reshape", {"shape": [2**64, 1]}, "takes no 'shape' of [18446744073709551616,1]"),
           ("reshape", {"shape": [1] * 7}, "at most 6 sizes"), ("reshape", {"shape": 4}, "takes no 'shape' of 4"), ("reshape", {"shape": None}, "takes no 'shape' of null"),
           ("expand", {"shape": [1.5]}, "takes no 'shape' of [1.5]"), ("fill", {"shape": [2**31 + 1]}, "takes no 'shape'"), ("scale", {"k": []}, "takes no 'k' of []"),
           ("scale", {"k": "many"}, "takes no 'k' of \"many\""), ("softmax", {"axis": 2**63}, "a whole number of 64 bits"), ("softmax", {"axis": "last"}, "takes no 'axis'"),
           ("softmax", {"axis": 6}, "axis"), ("sum", {"keep": 1}, "true or false"), ("sum", {"axes": [0] * 7}, "at most 6 axes"), ("sum", {"axes": [2**63 - 1]}, "an axis is outside"),
           ("cast", {"to": 7}, "the name of a format"), ("cast", {"to": "f8"}, "takes no 'to' of \"f8\""), ("permute", {"order": {}}, "takes no 'order' of {}"),
           ("permute", {"order": ["x" * 100]}, "xxx..."), ("dropout", {"seed": -1}, "takes no 'seed' of -1"), ("dropout", {"counter": 1e19}, "takes no 'counter'"),
           ("narrow", {"first": 0.5, "length": 1}, "takes no 'first' of 0.5")]


def test_an_attribute_that_cannot_be_refuses_its_one_case_and_the_others_run(folder):
    conform_cases.save(folder.path / "t.safetensors", {"x": conform_cases.Tensor((4,), [0.0] * 4), "y": conform_cases.Tensor((4,), [1.0] * 4)})
    good = {"op": "exp", "inputs": [{"tensor": "x"}], "outputs": [{"tensor": "y"}], "file": "t.safetensors"}
    wrong = {"op": "exp", "inputs": [{"tensor": "x"}], "outputs": [{"tensor": "x"}], "file": "t.safetensors"}
    bad = [{"op": op, "attrs": attrs, "inputs": [{"tensor": "x"}] if op != "fill" else [], "outputs": [1], "file": "t.safetensors"} for op, attrs, _ in MISFITS]
    cases = [good, *bad, wrong, good]
    folder.write("m.jsonl", "".join(json.dumps(case | {"id": str(n)}) + "\n" for n, case in enumerate(cases)))
    run = folder.run("conform", "run-file", *CPU, "--precision", "f32", "--manifest", "m.jsonl", "--tensors", ".", "--out", "r.jsonl")
    assert run.code == 1 and last_line(run) == f"{len(cases)} cases, 2 passed, 1 failed, {len(bad)} unsupported", (run.code, run.out, run.err)
    results = [json.loads(line) for line in folder.read("r.jsonl").splitlines()]
    assert [results[k]["status"] for k in (0, -2, -1)] == ["pass", "fail", "pass"], results
    for result, (op, attrs, reason) in zip(results[1:], MISFITS):
        assert result["status"] == "unsupported" and op in result["reason"] and reason in result["reason"], (op, attrs, result)


def test_malformed_manifests_and_tensors_are_one_line(folder):
    conform_cases.save(folder.path / "t.safetensors", {"a": conform_cases.Tensor((2,), [1.0, 2.0])})
    good = {"id": "x", "op": "exp", "inputs": [{"tensor": "a"}], "outputs": [{"tensor": "a"}], "file": "t.safetensors"}
    folder.write("half.safetensors", folder.read("t.safetensors")[:-3])
    for change, parts in [({"id": 3}, ["'id'"]), ({"op": None}, ["'op'"]), ({"inputs": 1}, ["'inputs'"]), ({"outputs": []}, ["'outputs'"]),
                          ({"inputs": [{"tensor": "b"}]}, ["no tensor 'b'"]), ({"inputs": ["a"]}, ["neither"]), ({"file": "../t.safetensors"}, ["below"]),
                          ({"file": "none.safetensors"}, ["none.safetensors"]), ({"file": "half.safetensors"}, ["half.safetensors"]),
                          ({"rtol": -1}, ["'rtol'"]), ({"attrs": 1}, ["'attrs'"]),
                          ({"grads": [{"input": 0, "tensor": "a"}]}, ["'cotangents'"]),
                          ({"cotangents": [{"tensor": "a"}], "grads": [{"input": 4, "tensor": "a"}]}, ["names no input"])]:
        folder.write("m.jsonl", json.dumps(good | change) + "\n")
        folder.run("conform", "run-file", *CPU, "--manifest", "m.jsonl", "--tensors", ".", "--out", "r.jsonl").refused(2, *parts)
    for text in ("{", "[]\n", '{"id":"a","id":"b"}\n', json.dumps(good) + "\n" + json.dumps(good) + "\n", "\0\n"):
        folder.write("m.jsonl", text)
        folder.run("conform", "run-file", *CPU, "--manifest", "m.jsonl", "--tensors", ".", "--out", "r.jsonl").refused(2, "m.jsonl")
    assert not (folder.path / "r.jsonl").exists()


if __name__ == "__main__":
    main(globals())
