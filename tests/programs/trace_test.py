"""isotope-train --trace-in: replays training runs of other programs, with the results of a peer in Python's f64."""

import json
import math
import pathlib
import random
import struct

from gpt_peer import Peer, f32, shapes
from program import main

SIZE = {"layers": 2, "heads": 2, "width": 8, "vocab": 11, "context": 6}
OPTIONS = {"lr": 0.02, "betas": (0.9, 0.95), "eps": 1e-6, "decay": 0.1, "clip": 0.5}
STEPS, BATCH, LENGTH = 3, 2, 5
KINDS = {"F32": "f", "F64": "d", "I64": "q", "I32": "i"}


def save(path, tensors, metadata):
    """Writes a safetensors file. tensors: name -> (kind, dims, numbers)"""
    header, data = {"__metadata__": metadata}, b""
    for name, (kind, dims, numbers) in tensors.items():
        packed = struct.pack(f"<{len(numbers)}{KINDS[kind]}", *numbers)
        header[name] = {"dtype": kind, "shape": list(dims), "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    raw = path.read_bytes()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + n])
    metadata, tensors = header.pop("__metadata__"), {}
    for name, t in header.items():
        first, last = (8 + n + at for at in t["data_offsets"])
        assert t["dtype"] == "F32", (name, t)
        tensors[name] = (tuple(t["shape"]), list(struct.unpack(f"<{(last - first) // 4}f", raw[first:last])))
    return tensors, metadata


def metadata_of(options=OPTIONS, **changes):
    text = {k: str(v) for k, v in SIZE.items()} | {k: repr(v) for k, v in options.items()}
    text["betas"] = ",".join(map(repr, options["betas"]))
    return {k: v for k, v in (text | changes).items() if v is not None}


def a_run(seed=7):
    """Weights that are large enough for every formula of the model to matter, and the tokens of every step."""
    draw = random.Random(seed)
    weights = {}
    for name, dims in shapes(SIZE).items():
        centre = 1.0 if name.split(".")[-2].startswith("ln_") and name.endswith("weight") else 0.0
        weights[name] = [f32(centre + 0.4 * draw.gauss(0, 1)) for _ in range(math.prod(dims))]
    tokens = [[[draw.randrange(SIZE["vocab"]) for _ in range(LENGTH + 1)] for _ in range(BATCH)] for _ in range(STEPS)]
    return weights, tokens


def tensors_of(weights, tokens):
    all_ = {name: ("F32", dims, weights[name]) for name, dims in shapes(SIZE).items()}
    all_["tokens"] = ("I64", (STEPS, BATCH, LENGTH + 1), [t for step in tokens for row in step for t in row])
    return all_


class Expected:
    """The peer's results of a run, and the bounds on differences of a backend.

    A gradient may be off by `grad` of its length, in any element. The last weights by what such gradients do to AdamW: moments that far off
    in either direction give the largest change of the quotient m / sqrt(v), which is at most 1 + 1/100 in the first three steps (Cauchy and
    Schwarz on the weights of the two means), whatever the gradients are. Roundings of the sums add 4 u |w| a step, u = 2^-24.
    """

    def __init__(self, weights, tokens, grad, broken=""):
        peer = Peer(SIZE, OPTIONS, weights, broken)
        self.loss, self.norm, self.grads = [], [], None
        self.bound = {name: [0.0] * len(w) for name, w in weights.items()}
        lr, (beta1, beta2), eps = peer.options["lr"], peer.options["betas"], peer.options["eps"]
        off_m, off_v = ({name: [0.0] * len(w) for name, w in weights.items()} for _ in range(2))
        for t, batch in enumerate(tokens, 1):
            loss, norm, grads = peer.step(batch)
            self.loss.append(loss)
            self.norm.append(norm)
            self.grads = self.grads or grads
            factor = min(1, peer.options["clip"] / norm)
            for name, g in grads.items():
                off = grad * factor * math.sqrt(sum(x * x for x in g))
                for i, x in enumerate(g):
                    m, v = peer.m[name][i], peer.v[name][i]
                    off_m[name][i] = beta1 * off_m[name][i] + (1 - beta1) * off
                    off_v[name][i] = beta2 * off_v[name][i] + (1 - beta2) * off * (2 * abs(x) * factor + off)
                    quotient = [(m + a * off_m[name][i]) / (1 - beta1**t) / (math.sqrt(max(0.0, v + b * off_v[name][i]) / (1 - beta2**t)) + eps)
                                for a in (-1, 0, 1) for b in (-1, 0, 1)]
                    self.bound[name][i] += lr * min(2.02, max(abs(q - quotient[4]) for q in quotient)) + 4 * 2.0**-24 * abs(peer.weights[name][i])
        self.weights = peer.weights

    def objections(self, got, loss, grad):
        """The results whose difference exceeds the bound. Written with `not <=`, so that NaN counts."""
        found = []
        for name, reference, bound in (("loss", self.loss, loss), ("grad_norm", self.norm, grad)):
            if got[name][0] != (len(reference),) or not all(abs(a - b) <= bound * abs(b) for a, b in zip(got[name][1], reference)):
                found.append(name)
        for name, dims in shapes(SIZE).items():
            (shape1, first), (shape2, last), g = got["grad1." + name], got["final." + name], self.grads[name]
            apart = math.sqrt(sum((a - b) ** 2 for a, b in zip(first, g)))
            if shape1 != dims or not apart <= grad * math.sqrt(sum(b * b for b in g)):
                found.append("grad1." + name)
            if shape2 != dims or not all(abs(a - b) <= e for a, b, e in zip(last, self.weights[name], self.bound[name])):
                found.append("final." + name)
        return found


def bounds(metadata):
    """The bounds for the loss and for the norm of a gradient: f32 sums in another order. bf16 rounds each stored tensor by at most 2^-8: 10 tensors per
    layer and 5 others, forward and backward; if all errors have the same sign, that is 50 of them."""
    return (1e-5, 1e-5) if metadata["precision"] == "f32" else (2e-2, 50 * 2.0**-8)


def replayed(f, *arguments):
    f.run("train", "--trace-in", "T", "--trace-out", "R", "--threads", "1", *arguments).succeeded()
    return load(f.path / "R")


def test_a_run_made_elsewhere_comes_out_the_same(f):
    weights, tokens = a_run()
    save(f.path / "T", tensors_of(weights, tokens), metadata_of())
    got, metadata = replayed(f)
    assert len(got) == 2 + 2 * len(weights), sorted(got)
    loss, grad = bounds(metadata)
    expected = Expected(weights, tokens, grad)
    assert min(expected.norm) > 2 * OPTIONS["clip"], "clipping is to be active"
    assert expected.objections(got, loss, grad) == []

    # The comparison notices a change of any tensor: of a gradient by ten times its bound, of a weight by a hundredth of the length of a step.
    for name, (dims, numbers) in got.items():
        by, at = 10 * grad * math.sqrt(sum(x * x for x in numbers)), 0
        if name.startswith("final."):
            bound = expected.bound[name.removeprefix("final.")]
            at = bound.index(min(bound))
            by = max(0.01 * OPTIONS["lr"], 2 * bound[at])
            assert metadata["precision"] != "f32" or by == 0.01 * OPTIONS["lr"], (name, bound[at])
        for change in (by, math.nan):
            broken = got | {name: (dims, [x + change if i == at else x for i, x in enumerate(numbers)])}
            assert expected.objections(broken, loss, grad) == [name], name


def test_ten_steps_of_pytorch_come_out_the_same(f):
    """Steps that torch_peer.py recorded in f64."""
    recorded = pathlib.Path(__file__).with_name("traces")
    f.run("train", "--trace-in", str(recorded / "T"), "--trace-out", "R", "--threads", "1").succeeded()
    got, metadata = load(f.path / "R")
    torch = load(recorded / "R")[0]
    loss, grad = bounds(metadata)

    def apart(name, by=1.0):
        """The distance of a tensor from `by` times PyTorch's, relative to the norm of the latter."""
        return math.dist(got[name][1], [by * x for x in torch[name][1]]) / math.hypot(*torch[name][1])

    assert torch["loss"][0] == got["loss"][0] == (10,) and torch["loss"][1][0] - torch["loss"][1][-1] > 0.5, torch["loss"]
    assert all(abs(a - b) <= loss * abs(b) for a, b in zip(got["loss"][1], torch["loss"][1])), (got["loss"], torch["loss"])
    assert apart("grad_norm") <= grad, (got["grad_norm"], torch["grad_norm"])
    first = [name for name in torch if name.startswith("grad1.")]
    assert len(first) == len(shapes({"layers": 2, "width": 16, "vocab": 32, "context": 12}))
    for name in first:
        assert apart(name) <= grad, (name, apart(name))
        assert apart(name, 1 + 3 * grad) > grad, name


def test_a_perturbed_weight_is_noticed(f):
    weights, tokens = a_run()
    save(f.path / "T", tensors_of(weights, tokens), metadata_of())
    loss, grad = bounds(replayed(f)[1])
    expected, name = Expected(weights, tokens, grad), "h.1.mlp.c_proj.weight"
    by, noticed = (0.01, ("loss", "grad_norm", "grad1." + name, "final." + name)) if grad < 1e-4 else (8, ("grad1.wpe.weight", "final." + name))
    changed = weights | {name: [f32(w + by) if i == 5 else w for i, w in enumerate(weights[name])]}
    save(f.path / "T", tensors_of(changed, tokens), metadata_of())
    found = expected.objections(replayed(f)[0], loss, grad)
    assert set(noticed) <= set(found), found


def test_peers_with_another_formula_are_told_apart(f):
    weights, tokens = a_run()
    save(f.path / "T", tensors_of(weights, tokens), metadata_of())
    got, metadata = replayed(f)
    loss, grad = bounds(metadata)
    # In bf16, differences that are smaller than its roundings cannot be noticed.
    broken = ("mask", "scale", "betas", "decay", "clip", "correction", "variance", "gelu") if grad < 1e-4 else ("mask", "scale", "correction")
    for formula in broken:
        assert Expected(weights, tokens, grad, formula).objections(got, loss, grad) != [], formula


def test_two_replays_are_the_same_bytes(f):
    save(f.path / "T", tensors_of(*a_run()), metadata_of(betas="[0.9, 0.95]", clip="0", format="pt"))
    replayed(f)
    first = f.read("R")
    replayed(f)
    assert f.read("R") == first and [n for n in f.names(".") if "writing" in n] == []


def refused(f, tensors, metadata, *parts):
    save(f.path / "T", tensors, metadata)
    f.run("train", "--trace-in", "T", "--trace-out", "R").refused(2, "T: ", *parts)
    assert not (f.path / "R").exists()


def test_bad_tensors_are_refused_by_name(f):
    good, meta, name = tensors_of(*a_run()), metadata_of(), "h.0.mlp.c_fc.weight"
    kind, dims, numbers = good[name]
    refused(f, {k: v for k, v in good.items() if k != name}, meta, name, "missing", "[32,8]")
    refused(f, good | {name: (kind, (8, 32), numbers)}, meta, name, "[8,32]", "[32,8]", "(out,in)")
    refused(f, good | {name: ("I64", dims, [1] * len(numbers))}, meta, name, "I64")
    refused(f, good | {name: (kind, dims, numbers[:9] + [math.nan] + numbers[10:])}, meta, name, "element 9", "nan")
    refused(f, good | {name: ("F64", dims, [1e300] + numbers[1:])}, meta, name, "element 0", "inf")
    refused(f, good | {"lm_head.weight": good["wte.weight"]}, meta, "lm_head.weight", "[11,8]", "no parameter")


def test_bad_tokens_are_refused_with_the_number(f):
    good, meta = tensors_of(*a_run()), metadata_of()
    kind, dims, numbers = good["tokens"]
    refused(f, {k: v for k, v in good.items() if k != "tokens"}, meta, "'tokens'", "missing")
    refused(f, good | {"tokens": (kind, dims, numbers[:7] + [11] + numbers[8:])}, meta, "'tokens'", "element 7 is 11", "11")
    refused(f, good | {"tokens": (kind, dims, [-1] + numbers[1:])}, meta, "'tokens'", "element 0 is -1")
    refused(f, good | {"tokens": (kind, dims, [2**40] + numbers[1:])}, meta, "'tokens'", str(2**40))
    refused(f, good | {"tokens": ("I32", dims, numbers)}, meta, "'tokens'", "I32", "I64")
    refused(f, good | {"tokens": (kind, (STEPS * BATCH, LENGTH + 1), numbers)}, meta, "'tokens'", "[6,6]")
    refused(f, good | {"tokens": (kind, (0, BATCH, LENGTH + 1), [])}, meta, "'tokens'", "[0,2,6]")
    refused(f, good | {"tokens": (kind, (1, 1, 36), numbers)}, meta, "'tokens'", "35", "context is 6")


def test_bad_metadata_is_refused_by_key(f):
    good = tensors_of(*a_run())
    for key in ("layers", "heads", "width", "vocab", "context", "lr", "betas", "eps", "decay", "clip"):
        refused(f, good, metadata_of(**{key: None}), f"'{key}'", "missing")
        for value in ("", "many", "nan", "inf", "-1", "2e", "1e99", "0.5,", "1 2", "1.0.0"):
            refused(f, good, metadata_of(**{key: value}), f"'{key}'", f"'{value}'")
    for key, value in (("layers", "1.5"), ("layers", "0"), ("width", "999999999999"), ("betas", "0.9"), ("betas", "0.9,1"), ("betas", "[0.9,0.9"), ("eps", "0")):
        refused(f, good, metadata_of(**{key: value}), f"'{key}'", f"'{value}'")
    refused(f, good, metadata_of(heads="3"), "width 8", "heads 3")
    refused(f, good, metadata_of(width="16"), "the model's is [48]")
    refused(f, good, metadata_of(layers="1000", width="100000"), "the model's is [300000]")
    refused(f, good, metadata_of(layers="3"), "h.2.", "missing")
    refused(f, good, metadata_of(layers="1"), "h.1.", "no parameter")


def test_a_file_that_is_none_is_refused(f):
    save(f.path / "T", tensors_of(*a_run()), metadata_of())
    whole = f.read("T")
    for n in (0, 7, 8, 100, len(whole) // 2, len(whole) - 1):
        f.write("T", whole[:n])
        f.run("train", "--trace-in", "T", "--trace-out", "R").refused(2, "T")
    f.run("train", "--trace-in", "nowhere", "--trace-out", "R").refused(2, "nowhere", "no such file")


def test_flags_that_contradict_a_trace_are_refused(f):
    save(f.path / "T", tensors_of(*a_run()), metadata_of())
    both = ["--trace-in", "T", "--trace-out", "R"]
    f.run("train", "--trace-in", "T").refused(2, "trace.in", "--trace-out")
    f.run("train", "--trace-out", "R").refused(2, "trace.out", "--trace-in")
    f.run("train", *both, "--steps", "3").refused(2, "flag --steps", "--trace-in")
    f.run("train", *both, "--size", "debug-tiny").refused(2, "--size debug-tiny")
    f.run("train", *both, "--text", "text").refused(2, "flag --text")
    f.run("train", *both, "--checkpoint-dir", "run").refused(2, "flag --checkpoint-dir")
    f.run("train", *both, env={"ISOTOPE_TRAINING_CLIP": "2"}).refused(2, "ISOTOPE_TRAINING_CLIP")
    f.run("train", "--trace-in", "T", "--trace-out", "./T").refused(2, "./T", "file to replay")
    f.run("train", "--trace-in", "T", "--trace-out", "no/where/R").refused(2, "no/where/R", "folder")


def test_a_run_that_loses_its_numbers_writes_nothing(f):
    save(f.path / "T", tensors_of(*a_run()), metadata_of(lr="1e29", decay="1e29"))
    f.run("train", "--trace-in", "T", "--trace-out", "R").refused(1, "T: ", "step 2 of 3", "nan")
    assert not (f.path / "R").exists()


if __name__ == "__main__":
    main(globals())
