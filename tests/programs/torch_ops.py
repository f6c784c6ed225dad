#!/usr/bin/env python3
"""`torch_ops.py FOLDER`: writes FOLDER/pytorch_*.json, known answers (known_answers.py) for every op with results and gradients from PyTorch.

The files in tests/conform/known were made with PyTorch 1.13.1 (python3-torch of Debian 12, which calls itself 1.13.0a0), that of rotations with
2.15.0. Results come from its functions and optimizers, or from definitions made of its operations (torch_definitions.py); gradients come from
autograd. Everything is computed in f64, from operands that are exact in f32: multiples of 2^-10, except the norms of gradients, which are rounded.
Files have no tolerance, so the bound of the op applies.
"""

import json
import math
import pathlib
import sys

import torch
from torch.nn import functional

from torch_definitions import attention, categorical, clipped, complex_rows, dropout, first_gradient, half_spectrum, layer_norm, points_of
from torch_definitions import rms_norm, rope, sgd_directions, stepped

LEAST = 2.0**-10  # relative to the largest number of a tensor; an error in a smaller number might be within the bound


class Draw:
    """Random operands; equal seeds give equal operands."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *dims, low=-2.0, high=2.0):
        """Multiples of 2^-10 in [low, high], none of them 0."""
        x = low + (high - low) * torch.rand(dims, generator=self.generator, dtype=torch.float64)
        x = torch.round(x * 1024) / 1024
        return torch.where(x == 0, torch.full_like(x, 2.0**-10), x)

    def whole(self, *dims, low, high):
        """Integers in [low, high), i64."""
        return torch.randint(low, high, dims, generator=self.generator)

    def distinct(self, *dims):
        """Distinct multiples of 1/8."""
        n = math.prod(dims)
        return ((torch.randperm(n, generator=self.generator) - n // 2).double() / 8).reshape(dims)


def as_tuple(y):
    return tuple(y) if isinstance(y, (tuple, list)) else (y,)


def number(x):
    """A number in the format of the files: integers without a fraction, infinities and NaN as strings."""
    if not math.isfinite(x):
        return str(x)
    return int(x) if abs(x) < 2**53 and x == int(x) and (x != 0 or math.copysign(1, x) > 0) else x


def tensor_of(x, **more):
    """A tensor in the format of the files."""
    whole = x.dtype in (torch.int64, torch.int32, torch.uint8)
    numbers = (x if whole else x.double()).detach().flatten().tolist()
    return more | {"dims": list(x.shape), "numbers": list(map(number, numbers))} | ({"type": "I64"} if whole else {})


def attempt(seed, op, operands, of, attrs, frees, cotangents):
    """The case for one seed, and the smallest ratio of a number other than 0 to the largest of its tensor."""
    x = Draw(seed)
    given = as_tuple(operands(x))
    leaves = [t.clone().requires_grad_() if t.dtype == torch.float64 and (frees is None or k in frees) else t for k, t in enumerate(given)]
    results = as_tuple(of(*leaves))
    case = {"op": op} | ({"attrs": attrs} if attrs else {}) | {"inputs": [tensor_of(t) for t in given], "outputs": [tensor_of(y) for y in results]}
    judged = [y for y in results if y.dtype == torch.float64]
    if any(y.requires_grad for y in results[:cotangents]):
        dy = [x(*y.shape).to(y.dtype) for y in results[:cotangents]]
        wanted = [k for k, t in enumerate(leaves) if t.requires_grad]
        grads = torch.autograd.grad(results[:cotangents], [leaves[k] for k in wanted], dy)
        case["cotangents"] = [tensor_of(d) for d in dy]
        case["grads"] = [tensor_of(g, input=k) for k, g in zip(wanted, grads)]
        judged += grads
    sizes = [t.detach().abs()[t != 0] for t in judged]
    return case, min([1.0] + [(s.min() / s.max()).item() for s in sizes if s.numel() > 0])


def case(op, operands, of, attrs=None, frees=None, cotangents=1, least=LEAST):
    """A case whose operands are operands(draw), with gradients of those among `frees`, by default all floating ones."""
    for seed in range(4000):
        made, smallest = attempt(seed, op, operands, of, attrs, frees, cotangents)
        if least == 0 or smallest >= least:
            return made
    raise AssertionError(f"{op}: every draw has a number below {least} of the largest")


def elementwise():
    for op, of, low, high in (
        ("exp", torch.exp, -3, 3), ("log", torch.log, 0.25, 9), ("sqrt", torch.sqrt, 0.125, 9), ("square", torch.square, -3, 3),
        ("tanh", torch.tanh, -2, 2), ("sigmoid", torch.sigmoid, -4, 4), ("silu", functional.silu, -4, 4), ("relu", functional.relu, -3, 3),
        ("gelu_erf", functional.gelu, -3, 3), ("gelu_tanh", lambda x: functional.gelu(x, approximate="tanh"), -3, 3)):
        for dims in ((17,), (3, 1, 2)):
            yield case(op, lambda x: x(*dims, low=low, high=high), of)
    for k in (-0.375, 3.5):
        yield case("scale", lambda x: x(3, 5), lambda x: torch.mul(x, k), {"k": k})
        yield case("shift", lambda x: x(17), lambda x: torch.add(x, k), {"k": k})
    for op, of in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div)):
        for a, b in (((3, 5), (5,)), ((2, 1, 3), (1, 4, 1)), ((17,), (17,))):
            yield case(op, lambda x: (x(*a), x(*b, low=0.5, high=3)), of)
    for op, of in (("equal", torch.eq), ("less", torch.lt)):
        for a, b in (((3, 7), (7,)), ((5, 1), (1, 4))):
            yield case(op, lambda x: (x.whole(*a, low=-1, high=2).double(), x.whole(*b, low=-1, high=2).double()), of)
    for a, b, c in (((3, 5), (5,), (3, 1)), ((7,), (7,), ())):
        yield case("select", lambda x: (x.whole(*a, low=0, high=2).bool(), x(*b), x(*c)), torch.where)


def reductions():
    def over(of, axes, keep):
        return lambda x: of(x, list(axes) if axes else list(range(x.dim())), keep)

    def product(x, axes, keep):
        for k in sorted(axes, reverse=True):
            x = torch.prod(x, k, keepdim=keep)
        return x

    for op, of in (("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax), ("min", torch.amin), ("prod", product)):
        for dims, axes, keep in (((17,), (), False), ((3, 5, 2), (1,), True), ((2, 7, 3), (0, 2), False)):
            attrs = ({"axes": list(axes)} if axes else {}) | ({"keep": True} if keep else {})
            draw = (lambda x: x.distinct(*dims)) if op in ("max", "min") else lambda x: x(*dims, low=-1.5, high=-0.5) if op == "prod" else x(*dims)
            yield case(op, draw, over(of, axes, keep), attrs)
    for op, of in (("max", torch.amax), ("min", torch.amin)):  # equal elements share the gradient
        yield case(op, lambda x: x.whole(3, 9, low=-1, high=2).double(), lambda x: of(x, 1), {"axes": [1]})
    for dims, axis in (((17,), 0), ((3, 5, 4), 1)):
        yield case("argmax", lambda x: x.distinct(*dims), lambda x: torch.argmax(x, axis), {"axis": axis}, frees=())
    for dims, k in (((17,), 5), ((3, 7), 1), ((2, 3, 4), 4)):
        yield case("top_k", lambda x: x.distinct(*dims), lambda x: torch.topk(x, k), {"k": k}, frees=())
    for dims, axis, reverse in (((17,), 0, False), ((3, 5, 2), 1, True), ((4, 3), 0, False)):
        yield case("cumsum", lambda x: x(*dims), lambda x: x.flip(axis).cumsum(axis).flip(axis) if reverse else torch.cumsum(x, axis),
                   {"axis": axis} | ({"reverse": True} if reverse else {}))
    for op, of in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        for dims, axis in (((3, 7), 1), ((17,), 0), ((2, 5, 3), 1)):
            yield case(op, lambda x: x(*dims), lambda x: of(x, axis), {"axis": axis})


def moves():
    for dims, axis, first, length in (((9,), 0, 2, 5), ((3, 7), 1, 6, 1), ((2, 5, 3), 1, 0, 4)):
        yield case("narrow", lambda x: x(*dims), lambda x: torch.narrow(x, axis, first, length), {"axis": axis, "first": first, "length": length})
    for dims, axis, first, size in (((5,), 0, 2, 9), ((3, 1), 1, 4, 5), ((2, 3, 2), 1, 0, 5)):
        after = size - first - dims[axis]
        yield case("pad", lambda x: x(*dims), lambda x: functional.pad(x, [0, 0] * (x.dim() - 1 - axis) + [first, after]),
                   {"axis": axis, "first": first, "size": size})
    for dims, order in (((5, 7), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 3, 1, 5), (0, 2, 1, 3))):
        yield case("permute", lambda x: x(*dims), lambda x: torch.permute(x, order), {"order": list(order)})
    for dims, to in (((6, 4), (3, 8)), ((17,), (1, 17)), ((1,), ())):
        yield case("reshape", lambda x: x(*dims), lambda x: torch.reshape(x, to), {"shape": list(to)})
    for dims, to in (((5, 1), (2, 5, 3)), ((), (7,)), ((1, 3), (4, 3))):
        yield case("expand", lambda x: x(*dims), lambda x: x.expand(to), {"shape": list(to)})
    for dims, axis in ((((3, 5), (3, 1), (3, 2)), 1), (((4,), (7,)), 0), (((1, 3), (4, 3)), 0)):
        yield case("concat", lambda x: [x(*d) for d in dims], lambda *x: torch.cat(x, axis), {"axis": axis})
    for dims, axis, parts in (((3, 6), 1, 3), ((6, 2), 0, 2), ((2, 5, 3), 1, 5)):
        yield case("split", lambda x: x(*dims), lambda x: torch.chunk(x, parts, axis), {"axis": axis, "parts": parts}, cotangents=parts)
    for dims in ((17,), (3, 5)):
        yield case("copy", lambda x: x(*dims), torch.clone)
    for dims, value in (((17,), -0.375), ((3, 1, 5), 2.5), ((), 1.0)):
        yield case("fill", lambda x: (), lambda: torch.full(dims, value, dtype=torch.float64), {"shape": list(dims), "value": value})
    yield case("fill", lambda x: (), lambda: torch.full((3,), 0.7, dtype=torch.bfloat16), {"shape": [3], "value": 0.7, "format": "bf16"})
    for to, name in ((torch.float16, "f16"), (torch.bfloat16, "bf16"), (torch.int32, "i32"), (torch.bool, "bool")):
        yield case("cast", lambda x: x(17, low=-300, high=300), lambda x: x.float().to(to), {"to": name})
    yield case("cast", lambda x: x(17, low=0, high=255), lambda x: x.float().to(torch.uint8), {"to": "u8"})
    yield case("cast", lambda x: x.whole(17, low=-1000, high=1000), lambda x: x.double(), {"to": "f32"}, least=0)
    for rows in ((2, 4), (1,)):
        yield case("embedding", lambda x: (x(7, 3), x.whole(*rows, low=0, high=7)), lambda table, ids: functional.embedding(ids, table))


def indexing():
    for dims, k in (((3, 5), 4), ((7,), 9)):
        at = dims[:-1] + (k,)
        yield case("take_along", lambda x: (x(*dims), x.whole(*at, low=0, high=dims[-1])), lambda x, index: torch.gather(x, -1, index))
        yield case("scatter_add", lambda x: (x(*dims), x(*at), x.whole(*at, low=0, high=dims[-1])),
                   lambda x, updates, index: torch.scatter_add(x, -1, index, updates))
    padded = lambda x, index: torch.gather(functional.pad(x, (0, 1)), -1, index)  # behind the end stands 0
    yield case("take_along", lambda x: (x(2, 6), x.whole(2, 5, low=0, high=7)), padded, {"zeros": True})


def products():
    yield case("matmul", lambda x: (x(5, 7), x(7, 3)), torch.matmul)
    yield case("matmul", lambda x: (x(1, 17), x(17, 2)), lambda a, b: 0.375 * (a @ b), {"alpha": 0.375})
    yield case("matmul", lambda x: (x(2, 1, 3, 4), x(3, 4, 2)), torch.matmul)
    yield case("matmul", lambda x: (x(3, 5), x(5, 3), x(3, 3)), lambda a, b, c: torch.addmm(c, a, b, beta=-1.5, alpha=0.5),
               {"alpha": 0.5, "beta": -1.5})
    for dims, axis in (((1, 17), -1), ((3, 7), -1), ((2, 2, 5), -1)):
        C = dims[axis]
        yield case("rms_norm", lambda x: (x(*dims), x(C, low=0.5, high=1.5)), lambda x, w: rms_norm(x, w, 0.25), {"epsilon": 0.25})
        yield case("layer_norm", lambda x: (x(*dims), x(C, low=0.5, high=1.5), x(C)), lambda x, w, b: layer_norm(x, w, b, 0.125), {"epsilon": 0.125})
    for dims, base, first, direction in (((1, 3, 2, 6), 10000.0, 2, 1), ((2, 5, 1, 2), 100.0, 0, 1), ((1, 2, 3, 4), 10000.0, 1021, -1)):
        yield case("rope", lambda x: x(*dims), lambda x: rope(x, base, first, direction), {"base": base, "first": first, "direction": direction})
    for rows, N, classes in ((5, 7, 7), (1, 17, 17), (4, 9, 6)):
        def loss(x, ids):
            x = x[:, :classes]
            top = x.detach().amax(1)
            return functional.cross_entropy(x, ids, ignore_index=-1), top, (x.detach() - top[:, None]).exp().sum(1)

        def targets(x):  # at least one row counts
            return torch.cat([x.whole(1, low=0, high=classes), x.whole(rows - 1, low=-1, high=classes)])
        yield case("cross_entropy", lambda x: (x(rows, N), targets(x)), loss, {"classes": classes} if classes != N else {})


def attentions():
    def packed(H, G, D, **how):
        def of(qkv, mask=None):
            return attention(*qkv.split([H * D, G * D, G * D], 2), H, G, mask=mask, **how)
        return of

    yield case("attention", lambda x: x(1, 3, 12), packed(2, 2, 2), {"heads": 2})
    yield case("attention", lambda x: x(2, 3, 8), packed(2, 1, 2, scale=0.25), {"heads": 2, "kv_heads": 1, "scale": 0.25})
    yield case("attention", lambda x: (x(1, 3, 6), x(1, 5, 3), x(1, 5, 3)), lambda q, k, v: attention(q, k, v, 2, 1), {"heads": 2, "kv_heads": 1})
    yield case("attention", lambda x: x(1, 5, 6), packed(1, 1, 2, window=2), {"heads": 1, "window": 2})
    short = torch.tensor([[0.5, -math.inf, -1.0]], dtype=torch.float64)
    yield case("attention", lambda x: (x(1, 3, 6), short), packed(1, 1, 2), {"heads": 1}, frees=(0,))
    mask = torch.tensor([[0.0, -math.inf, 0.75, -1.5]], dtype=torch.float64)
    yield case("attention", lambda x: (x(1, 2, 4), x(1, 4, 4), x(1, 4, 4), mask), lambda q, k, v, m: attention(q, k, v, 2, 2, causal=False, mask=m),
               {"heads": 2, "causal": False}, frees=(0, 1, 2))
    yield case("attention", lambda x: (x(1, 1, 3), x(1, 4, 3), x(1, 4, 3)), lambda q, k, v: attention(q, k, v, 1, 1, drop=0.7),
               {"heads": 1, "dropout": 0.7})


def rotations():
    at = torch.tensor([7, 0, 1021])
    yield case("rope", lambda x: (x(1, 3, 2, 4), at), lambda x, at: rope(x, 10000.0, 0, 1, at), {"base": 10000.0})
    scaling = {"context": 16, "factor": 4.0, "low": 1.0, "high": 4.0}
    yield case("rope", lambda x: (x(2, 3, 3, 8), at), lambda x, at: rope(x, 100.0, 0, 1, at, 2, scaling), {"base": 100.0, "heads": 2} | scaling)


def transforms():
    for dims, direction, factor in (((5, 2), -1, 1.0), ((3, 4, 2), 1, 0.25), ((2, 7, 2), 1, 1.0), ((1, 2), -1, 1.0)):
        yield case("fft", lambda x: x(*dims), lambda x: complex_rows(x, direction, factor), {"direction": direction, "factor": factor})
    for dims, factor, inner in (((2, 6), 1.0, 1.0), ((7,), 0.5, 1.0), ((3, 5), 1.0, 2.0), ((1,), 1.0, 1.0)):
        yield case("rfft", lambda x: x(*dims), lambda x: half_spectrum(x, factor, inner), {"factor": factor, "inner": inner})
    for bins, N, factor, inner in (((2, 4, 2), 6, 1 / 6, 2.0), ((4, 2), 7, 1.0, 2.0), ((2, 3, 2), 5, 0.5, 1.0), ((1, 2), 1, 1.0, 2.0)):
        yield case("irfft", lambda x: x(*bins), lambda x: points_of(x, N, factor, inner), {"points": N, "factor": factor, "inner": inner})


def updates():
    yield case("accumulate", lambda x: (x(17), x(17)), first_gradient, frees=())
    for k in (1.0, 0.25):
        yield case("global_norm", lambda x: x(17), lambda g: clipped(g, k, norm=math.inf)[1], {"gradient_scale": k}, frees=())
        for c in (1.5, 100.0):
            yield case("clip_norm", lambda x: x(17), lambda g: clipped(g, k, norm=c)[0], {"clip_norm": c, "gradient_scale": k}, frees=())
        yield case("clip_value", lambda x: x(17), lambda g: clipped(g, k, value=0.375)[0], {"clip_value": 0.375, "gradient_scale": k}, frees=())
    loss = torch.tensor(2.0, dtype=torch.float64)

    def operands(states, scale):
        def of(x):
            given = [x(13)] + [x(13, low=low, high=high) for low, high in states] + [x(13)]
            return given + [torch.linalg.vector_norm(scale * given[-1]).float().double(), loss]
        return of

    # All constants are binary fractions, which are exact in f32. Constants that only other ops read are set, too, and must have no effect.
    every = {"learning_rate": 0.125, "momentum": 0.875, "beta1": 0.875, "beta2": 0.96875, "epsilon": 2.0**-10, "optimizer_step": 7}
    clips = every | {"decaying": 5, "clip": True, "rate": 0.5, "weight_decay": 0.375, "clip_norm": 1.5, "gradient_scale": 0.5}
    for a in (every, clips):
        scale = a.get("gradient_scale", 1.0)
        for step in (1, 7):
            adam = a | {"optimizer_step": step}
            yield case("adamw", operands(((-1, 1), (0.125, 1)), scale), lambda *x: stepped(torch.optim.AdamW, adam, *x), adam, frees=())
        yield case("sgd", operands(((-1, 1),), scale), lambda *x: stepped(torch.optim.SGD, a, *x), a, frees=())
        # the first and the last op of Muon: Nesterov's momentum, and a step along a given direction
        muon = {k: v for k, v in a.items() if k not in ("beta1", "beta2", "epsilon", "optimizer_step")} | {"size": 0.25}
        yield case("momentum", operands((), scale), lambda m, g, norm, loss: sgd_directions(a, m, g, norm), muon, frees=())
        along = {k: v for k, v in muon.items() if k in ("decaying", "rate", "learning_rate", "weight_decay")}
        yield case("muon", operands((), scale), lambda w, x, norm, loss: stepped(torch.optim.SGD, along, w, 0.25 * x, norm, loss)[0], muon, frees=())


def draws():
    for p in (0.5, 0.75):
        yield case("dropout", lambda x: x(4), lambda x: dropout(x, p), {"p": p})
    for temperature in (1.0, 0.5):
        yield case("categorical", lambda x: x(4, 7), lambda x: categorical(x, temperature), {"temperature": temperature}, frees=())


def specials():
    """Zeros of both signs, infinities, NaN, and numbers whose exponentials nearly overflow or underflow f32. Without gradients."""
    def given(op, of, *operands, **attrs):
        return case(op, lambda x: [torch.tensor(n, dtype=torch.float64) for n in operands], of, attrs, frees=(), least=0)

    inf, nan = math.inf, math.nan
    ends = [0.0, -0.0, inf, nan, 1.0, -1.0, 88.0, -88.0, 2.0**-60]
    for op, of in (("exp", torch.exp), ("log", torch.log), ("sqrt", torch.sqrt), ("square", torch.square), ("tanh", torch.tanh),
                   ("sigmoid", torch.sigmoid), ("relu", torch.relu)):
        yield given(op, of, [*ends, -inf])
    # For -infinity the library gives the limit, 0, while PyTorch gives NaN, the product of infinity and 0.
    for op, of in (("silu", functional.silu), ("gelu_erf", functional.gelu), ("gelu_tanh", lambda x: functional.gelu(x, approximate="tanh"))):
        yield given(op, of, ends)
    few = [0.0, -0.0, inf, -inf, nan, 1.0, -3.0]
    for op, of in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div), ("equal", torch.eq), ("less", torch.lt)):
        yield given(op, of, [[x] for x in few], few)
    rows = [[0.0, 1.0, nan], [0.0, inf, -inf], [-inf, -inf, -inf], [inf, 2.0, 3.0], [-inf, 2.0, 3.0]]
    for op, of in (("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax), ("min", torch.amin), ("prod", torch.prod)):
        yield given(op, lambda x: of(x, 1), rows, axes=[1])
    for op, of in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax), ("cumsum", torch.cumsum)):
        yield given(op, lambda x: of(x, 1), rows, axis=1)
    yield given("argmax", lambda x: torch.argmax(x, 1), [rows[k] for k in (0, 1, 3, 4)], axis=1)


FILES = {
    "elementwise": (elementwise, "torch's element-wise functions and torch.nn.functional's relu, silu and gelu, broadcasting as they do"),
    "reductions": (reductions, "torch's sum, mean, amax, amin, prod, argmax, topk, cumsum, softmax, log_softmax"),
    "moves": (moves, "torch's narrow, permute, reshape, expand, cat, chunk, clone, full, Tensor.to, and torch.nn.functional's pad and embedding"),
    "indexing": (indexing, "torch.gather and torch.scatter_add"),
    "products": (products, "torch.matmul and addmm, native_layer_norm with its statistics, functional.cross_entropy; rms_norm by its definition, "
                 "rope as products of complex numbers"),
    "attention": (attentions, "softmax(scale q k^T + mask) v by torch.matmul, softmax and masked_fill; dropout by the words that Random123's "
                  "kat_vectors give for counter and key 0"),
    "rotations": (rotations, "rope of given positions as products of complex numbers, frequencies scaled as in transformers' type llama3"),
    "transforms": (transforms, "torch.fft's fft, ifft, rfft, irfft"),
    "updates": (updates, "torch.optim's AdamW and SGD, with Nesterov's momentum for the ends of Muon, and torch.nn.utils' "
                "clip_grad_norm_ and clip_grad_value_"),
    "specials": (specials, "the same functions of zeros, infinities and NaN"),
    "draws": (draws, "the words that Random123's kat_vectors give for counter and key 0; torch.cumsum of torch.softmax, and torch.searchsorted"),
}


def written(path, source, cases):
    """Writes one field of a case per line, like the other files of known answers."""
    def text(c):
        return "    {\n" + ",\n".join(f'      "{key}": {json.dumps(value)}' for key, value in c.items()) + "\n    }"

    head = f'{{\n  "source": {json.dumps(f"PyTorch {torch.__version__} in f64, by tests/programs/torch_ops.py: {source}")},\n  "cases": [\n'
    path.write_text(head + ",\n".join(map(text, cases)) + "\n  ]\n}\n")


def main():
    for name, (cases, source) in FILES.items():
        written(pathlib.Path(sys.argv[1]) / f"pytorch_{name}.json", source, cases())


if __name__ == "__main__":
    main()
