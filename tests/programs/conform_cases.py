"""Cases for isotope-conform run-file, made without the library: every formula is written again in Python's f64; gradients are differences."""

import itertools
import json
import math
import random
import struct

STEP = 2.0**-10  # step of the differences; with four points the error is of order STEP^4


class Tensor:
    """A shape and its numbers in row-major order."""

    def __init__(self, shape, data, kind="F32"):
        self.shape, self.data, self.kind = tuple(shape), list(data), kind
        assert len(self.data) == math.prod(self.shape), (shape, len(self.data))

    def at(self, index):
        p = 0
        for n, i in zip(self.shape, index[len(index) - len(self.shape):]):
            p = p * n + (0 if n == 1 else i)
        return self.data[p]


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def indices(shape):
    return itertools.product(*(range(n) for n in shape))


def broadcast(*shapes):
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(max(n) if 0 not in n else 0 for n in zip(*padded))


def each(f, *xs):
    shape = broadcast(*(x.shape for x in xs))
    return Tensor(shape, [f(*(x.at(i) for x in xs)) for i in indices(shape)])


def lines(x, axis):
    """(index without the axis, numbers along the axis) for every line of a tensor."""
    axis %= len(x.shape)
    rest = x.shape[:axis] + x.shape[axis + 1:]
    for i in indices(rest):
        yield i, [x.at(i[:axis] + (k,) + i[axis:]) for k in range(x.shape[axis])]


def along(f, x, axis):
    axis %= len(x.shape)
    results = {i: f(v) for i, v in lines(x, axis)}
    return Tensor(x.shape, [results[i[:axis] + i[axis + 1:]][i[axis]] for i in indices(x.shape)])


def reduced(f, x, axes):
    axes = [a % len(x.shape) for a in axes] or list(range(len(x.shape)))
    groups = {}
    for i in indices(x.shape):
        groups.setdefault(tuple(n for k, n in enumerate(i) if k not in axes), []).append(x.at(i))
    shape = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    return Tensor(shape, [f(groups[i]) for i in indices(shape)])


def softmax(v):
    top = max(v)
    e = [math.exp(x - top) for x in v]
    return [x / sum(e) for x in e]


def matmul(a, b):
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    (m, k), n = a.shape[-2:], b.shape[-1]
    y = [sum(a.at(i + (r, j)) * b.at(i + (j, c)) for j in range(k)) for i in indices(batch) for r in range(m) for c in range(n)]
    return Tensor(batch + (m, n), y)


def layer_norm(x, w, b):
    def row(v):
        mean = sum(v) / len(v)
        rstd = 1 / math.sqrt(sum((t - mean) ** 2 for t in v) / len(v) + 1e-5)
        return [(t - mean) * rstd * w.data[k] + b.data[k] for k, t in enumerate(v)]

    return along(row, x, -1)


def rms_norm(x, w):
    def row(v):
        rstd = 1 / math.sqrt(sum(t * t for t in v) / len(v) + 1e-5)
        return [t * rstd * w.data[k] for k, t in enumerate(v)]

    return along(row, x, -1)


def attention(q, k, v, heads, groups, causal, window=0):
    (B, S, _), T = q.shape, k.shape[1]
    D = q.shape[2] // heads
    y = []
    for b, s, h, d in indices((B, S, heads, D)):
        g = h // (heads // groups)
        n = s + 1 + T - S if causal else T
        seen = range(max(0, n - window) if window else 0, n)
        p = softmax([sum(q.at((b, s, h * D + e)) * k.at((b, t, g * D + e)) for e in range(D)) / math.sqrt(D) for t in seen])
        y.append(sum(w * v.at((b, t, g * D + d)) for w, t in zip(p, seen)))
    return Tensor((B, S, heads * D), y)


def packed_attention(x, heads):
    D = x.shape[2] // (3 * heads)
    part = [Tensor(x.shape[:2] + (heads * D,), [x.at((b, s, w * heads * D + c)) for b, s, c in indices(x.shape[:2] + (heads * D,))]) for w in range(3)]
    return attention(*part, heads, heads, True)


def cross_entropy(x, targets):
    losses = []
    for (r, v) in ((i, v) for i, v in lines(x, -1)):
        t = targets.at(r)
        if 0 <= t < len(v):
            top = max(v)
            losses.append(top + math.log(sum(math.exp(u - top) for u in v)) - v[t])
    return Tensor((), [sum(losses) / len(losses)])


def rope(x, base, first):
    B, S, H, D = x.shape
    y = []
    for b, s, h, d in indices(x.shape):
        t = (first + s) * base ** (-2 * (d % (D // 2)) / D)
        a, c = x.at((b, s, h, d % (D // 2))), x.at((b, s, h, d % (D // 2) + D // 2))
        y.append(a * math.cos(t) - c * math.sin(t) if d < D // 2 else c * math.cos(t) + a * math.sin(t))
    return Tensor(x.shape, y)


def embedding(table, ids):
    return Tensor(ids.shape + (table.shape[1],), [table.data[i * table.shape[1] + c] for i in ids.data for c in range(table.shape[1])])


def narrow(x, axis, first, n):
    shape = x.shape[:axis] + (n,) + x.shape[axis + 1:]
    return Tensor(shape, [x.at(i[:axis] + (i[axis] + first,) + i[axis + 1:]) for i in indices(shape)])


def concat(axis, *xs):
    shape = xs[0].shape[:axis] + (sum(x.shape[axis] for x in xs),) + xs[0].shape[axis + 1:]

    def pick(i):
        for x in xs:
            if i[axis] < x.shape[axis]:
                return x.at(i)
            i = i[:axis] + (i[axis] - x.shape[axis],) + i[axis + 1:]

    return Tensor(shape, [pick(i) for i in indices(shape)])


def permute(x, order):
    shape = tuple(x.shape[k] for k in order)
    return Tensor(shape, [x.at(tuple(i[order.index(k)] for k in range(len(order)))) for i in indices(shape)])


def gelu_tanh(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def cases(seed=1):
    """A list of (op, attributes, inputs, formula of the inputs, which inputs are differentiated)."""
    r = random.Random(seed)

    def x(*shape, low=-2.0, high=2.0):
        return Tensor(shape, [f32(r.uniform(low, high)) for _ in range(math.prod(shape))])

    def ids(n, *shape):
        return Tensor(shape, [r.randrange(n) for _ in range(math.prod(shape))], "I64")

    for name, f in {"exp": math.exp, "tanh": math.tanh, "square": lambda v: v * v, "relu": lambda v: max(v, 0.0),
                    "sigmoid": lambda v: 1 / (1 + math.exp(-v)), "silu": lambda v: v / (1 + math.exp(-v)), "gelu_tanh": gelu_tanh,
                    "gelu_erf": lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2)))}.items():
        yield name, {}, [x(3, 7)], lambda a, f=f: each(f, a), [0]
    for name, f in {"log": math.log, "sqrt": math.sqrt}.items():
        yield name, {}, [x(11, low=0.5, high=3)], lambda a, f=f: each(f, a), [0]
    for name, f in {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b}.items():
        yield name, {}, [x(4, 5), x(5, low=1, high=2)], lambda a, b, f=f: each(f, a, b), [0, 1]
        yield name, {}, [x(2, 3), 1.5], lambda a, b, f=f: each(f, a, b), [0]
    yield "scale", {"k": 0.5}, [x(6)], lambda a: each(lambda v: 0.5 * v, a), [0]
    yield "shift", {"k": 0.25}, [x(6)], lambda a: each(lambda v: v + 0.25, a), [0]
    yield "matmul", {}, [x(3, 4), x(4, 5)], matmul, [0, 1]
    yield "matmul", {"alpha": 0.5}, [x(2, 3, 4), x(4, 2)], lambda a, b: each(lambda v: 0.5 * v, matmul(a, b)), [0, 1]
    yield "matmul", {"alpha": 2, "beta": -1}, [x(3, 4), x(4, 2), x(3, 2)], lambda a, b, c: each(lambda v, w: 2 * v - w, matmul(a, b), c), [0, 1, 2]
    yield "sum", {}, [x(3, 4)], lambda a: reduced(sum, a, []), [0]
    yield "sum", {"axes": [0, -1]}, [x(3, 4, 2)], lambda a: reduced(sum, a, [0, -1]), [0]
    yield "prod", {"axes": [0, -1]}, [x(3, 4, 2)], lambda a: reduced(math.prod, a, [0, -1]), [0]
    yield "cumsum", {}, [x(3, 9)], lambda a: along(lambda v: list(itertools.accumulate(v)), a, -1), [0]
    yield "cumsum", {"axis": 0, "reverse": True}, [x(7, 2)], lambda a: along(lambda v: list(itertools.accumulate(v[::-1]))[::-1], a, 0), [0]
    yield "mean", {"axes": [1]}, [x(3, 4)], lambda a: reduced(lambda v: sum(v) / len(v), a, [1]), [0]
    yield "max", {"axes": [-1]}, [x(3, 9)], lambda a: reduced(max, a, [1]), [0]
    yield "min", {"axes": 0}, [x(5, 3)], lambda a: reduced(min, a, [0]), [0]
    yield "argmax", {}, [x(4, 9)], lambda a: Tensor((4,), [v.index(max(v)) for _, v in lines(a, -1)], "I64"), []
    yield "top_k", {"k": 3}, [x(4, 9)], lambda a: Tensor((4, 3), [w for _, v in lines(a, -1) for w in sorted(v, reverse=True)[:3]]), []
    yield "less", {}, [x(3, 5), x(5)], lambda a, b: Tensor((3, 5), each(lambda v, w: v < w, a, b).data, "BOOL"), []
    yield "softmax", {}, [x(3, 6)], lambda a: along(softmax, a, -1), [0]
    yield "softmax", {"axis": 0}, [x(3, 6)], lambda a: along(softmax, a, 0), [0]
    yield "log_softmax", {}, [x(3, 6)], lambda a: each(math.log, along(softmax, a, -1)), [0]
    yield "layer_norm", {"epsilon": 1e-5}, [x(3, 8), x(8), x(8)], layer_norm, [0, 1, 2]
    yield "rms_norm", {"epsilon": 1e-5}, [x(3, 8), x(8)], rms_norm, [0, 1]
    yield "attention", {"heads": 2}, [x(1, 5, 24)], lambda a: packed_attention(a, 2), [0]
    yield "attention", {"heads": 2, "kv_heads": 1, "causal": False}, [x(1, 3, 8), x(1, 4, 4), x(1, 4, 4)], lambda q, k, v: attention(q, k, v, 2, 1, False), [0, 1, 2]
    yield "attention", {"heads": 2, "window": 2}, [x(1, 3, 8), x(1, 5, 8), x(1, 5, 8)], lambda q, k, v: attention(q, k, v, 2, 2, True, 2), [0, 1, 2]
    yield "cross_entropy", {}, [x(5, 7), Tensor((5,), [1, 6, -1, 0, 3], "I64")], cross_entropy, [0]
    yield "embedding", {}, [x(9, 3), ids(9, 2, 4)], embedding, [0]
    yield "rope", {"base": 10000, "first": 3}, [x(1, 4, 2, 6)], lambda a: rope(a, 10000, 3), [0]
    yield "concat", {"axis": 1}, [x(2, 3), x(2, 1), x(2, 4)], lambda *a: concat(1, *a), [0, 1, 2]
    yield "narrow", {"axis": 1, "first": 2, "length": 3}, [x(2, 7)], lambda a: narrow(a, 1, 2, 3), [0]
    yield "permute", {"order": [2, 0, 1]}, [x(2, 3, 4)], lambda a: permute(a, [2, 0, 1]), [0]
    yield "reshape", {"shape": [3, -1]}, [x(2, 6)], lambda a: Tensor((3, 4), a.data), [0]
    yield "expand", {"shape": [3, 4, 2]}, [x(4, 1)], lambda a: Tensor((3, 4, 2), [a.at(i) for i in indices((3, 4, 2))]), [0]
    yield "select", {}, [Tensor((6,), [1, 0, 1, 1, 0, 0], "BOOL"), x(6), x(6)], lambda c, a, b: each(lambda p, v, w: v if p else w, c, a, b), [1, 2]
    yield "cast", {"to": "bf16"}, [Tensor((3,), [1.0, 0.5, -3.0])], lambda a: a, [0]


def gradient(f, inputs, k, cotangent):
    """d sum(f cotangent) / d inputs[k] by differences of four points."""
    def loss(i, h):
        moved = [Tensor(x.shape, x.data, x.kind) if isinstance(x, Tensor) else Tensor((), [x]) for x in inputs]
        moved[k].data[i] += h
        return sum(y * g for y, g in zip(f(*moved).data, cotangent.data))

    slopes = [(8 * (loss(i, STEP) - loss(i, -STEP)) - (loss(i, 2 * STEP) - loss(i, -2 * STEP))) / (12 * STEP) for i in range(len(inputs[k].data))]
    return Tensor(inputs[k].shape, slopes, "F64")


def save(path, tensors):
    header, data = {}, b""
    for name, t in tensors.items():
        packed = struct.pack("<" + {"F32": "f", "F64": "d", "I64": "q", "BOOL": "?"}[t.kind] * len(t.data), *t.data)
        header[name] = {"dtype": t.kind, "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write(folder, seed=1):
    """Writes m.jsonl and a file of tensors for each case; returns the number of cases and of ops."""
    lines_, ops = [], set()
    for n, (op, attrs, inputs, f, wanted) in enumerate(cases(seed)):
        ops.add(op)
        y = f(*(x if isinstance(x, Tensor) else Tensor((), [x]) for x in inputs))
        tensors = {f"in{k}": x for k, x in enumerate(inputs) if isinstance(x, Tensor)}
        tensors["out0"] = Tensor(y.shape, y.data, "F64" if y.kind == "F32" else y.kind)
        case = {"id": f"{op}-{n}", "op": op, "attrs": attrs, "inputs": [{"tensor": f"in{k}"} if isinstance(x, Tensor) else x for k, x in enumerate(inputs)],
                "outputs": [{"tensor": "out0"}], "file": f"{n}.safetensors"}
        if wanted:
            r = random.Random(n)
            ct = Tensor(y.shape, [f32(r.choice([-1.0, 0.5, 0.75])) for _ in y.data])
            tensors["ct0"] = ct
            case["cotangents"] = [{"tensor": "ct0"}]
            case["grads"] = [{"input": k, "tensor": f"grad{k}"} for k in wanted]
            tensors |= {f"grad{k}": gradient(f, inputs, k, ct) for k in wanted}
            case |= {"rtol": 1e-5, "atol": 2e-6}
        save(folder / f"{n}.safetensors", tensors)
        lines_.append(json.dumps(case))
    (folder / "m.jsonl").write_text("\n".join(lines_) + "\n")
    return len(lines_), len(ops)
