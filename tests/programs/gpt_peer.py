"""A GPT, its gradient and AdamW as docs/TRACES.md states them, in f64 and without the library: automatic differentiation on single numbers."""

import math
import struct


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


class Number:
    """A value, and its derivatives by the numbers that it was computed from."""

    __slots__ = ("value", "parts", "grad")
    tape = []

    def __init__(self, value, parts=()):
        self.value, self.parts, self.grad = value, parts, 0.0
        Number.tape.append(self)

    def __add__(self, o):
        return Number(self.value + o.value, ((self, 1.0), (o, 1.0)))

    def __sub__(self, o):
        return Number(self.value - o.value, ((self, 1.0), (o, -1.0)))

    def __mul__(self, o):
        return Number(self.value * o.value, ((self, o.value), (o, self.value)))

    def times(self, k):
        return Number(self.value * k, ((self, k),))

    def plus(self, k):
        return Number(self.value + k, ((self, 1.0),))

    def power(self, k):
        return Number(self.value**k, ((self, k * self.value ** (k - 1)),))

    def exp(self):
        y = math.exp(self.value)
        return Number(y, ((self, y),))

    def log(self):
        return Number(math.log(self.value), ((self, 1 / self.value),))

    def tanh(self):
        y = math.tanh(self.value)
        return Number(y, ((self, 1 - y * y),))

    def erf(self):
        return Number(math.erf(self.value), ((self, 2 / math.sqrt(math.pi) * math.exp(-self.value**2)),))


def dot(x, y):
    return Number(sum(a.value * b.value for a, b in zip(x, y)), tuple((a, b.value) for a, b in zip(x, y)) + tuple((b, a.value) for a, b in zip(x, y)))


def total(x):
    return Number(sum(a.value for a in x), tuple((a, 1.0) for a in x))


def backward(loss):
    loss.grad = 1.0
    for n in reversed(Number.tape):
        for part, slope in n.parts:
            part.grad += n.grad * slope


def gelu_tanh(x):
    return x * (x + (x * x * x).times(0.044715)).times(math.sqrt(2 / math.pi)).tanh().plus(1).times(0.5)


def gelu_erf(x):
    return x * x.times(math.sqrt(0.5)).erf().plus(1).times(0.5)


def shapes(size):
    """Names and dimensions of all parameters."""
    c, out = size["width"], {}
    out["wte.weight"], out["wpe.weight"] = (size["vocab"], c), (size["context"], c)
    for l in range(size["layers"]):
        for name, dims in {"ln_1": (c,), "attn.c_attn": (3 * c, c), "attn.c_proj": (c, c), "ln_2": (c,), "mlp.c_fc": (4 * c, c), "mlp.c_proj": (c, 4 * c)}.items():
            out[f"h.{l}.{name}.weight"], out[f"h.{l}.{name}.bias"] = dims, dims[:1]
    out["ln_f.weight"], out["ln_f.bias"] = (c,), (c,)
    return out


class Peer:
    """`broken` names a formula to make wrong, to test that comparisons notice it."""

    def __init__(self, size, options, weights, broken=""):
        self.size, self.broken = size, broken
        self.options = {k: tuple(map(f32, v)) if k == "betas" else f32(v) for k, v in options.items()}
        self.dims = shapes(size)
        self.weights = {name: list(w) for name, w in weights.items()}
        self.m = {name: [0.0] * len(w) for name, w in weights.items()}
        self.v = {name: [0.0] * len(w) for name, w in weights.items()}
        self.steps = 0

    def rows(self, name):
        n = self.dims[name][1]
        return [self.numbers[name][i : i + n] for i in range(0, len(self.numbers[name]), n)]

    def linear(self, name, x):
        bias = self.numbers[name + ".bias"]
        return [[dot(row, w) + b for w, b in zip(self.rows(name + ".weight"), bias)] for row in x]

    def layer_norm(self, name, x):
        def row(v):
            n = len(v)
            mean = total(v).times(1 / n)
            h = [a - mean for a in v]
            r = dot(h, h).times(1 / (n - 1 if self.broken == "variance" else n)).plus(1e-5).power(-0.5)
            return [a * r * w + b for a, w, b in zip(h, self.numbers[name + ".weight"], self.numbers[name + ".bias"])]

        return [row(v) for v in x]

    def attention(self, x):
        c, heads = self.size["width"], self.size["heads"]
        d = c // heads
        scale = 1 / (d if self.broken == "scale" else math.sqrt(d))
        out = [[] for _ in x]
        for h in range(heads):
            q, k, v = ([row[part * c + h * d : part * c + (h + 1) * d] for row in x] for part in range(3))
            for s in range(len(x)):
                seen = range(len(x) if self.broken == "mask" else s + 1)
                weights = [dot(q[s], k[t]).times(scale).exp() for t in seen]
                sum_of = total(weights).power(-1)
                out[s] += [dot(weights, [v[t][i] for t in seen]) * sum_of for i in range(d)]
        return out

    def window(self, tokens):
        """The cross-entropy of every prediction of one window."""
        def add(x, y):
            return [[a + b for a, b in zip(p, q)] for p, q in zip(x, y)]

        gelu = gelu_erf if self.broken == "gelu" else gelu_tanh
        table = self.rows("wte.weight")
        x = add([table[t] for t in tokens[:-1]], self.rows("wpe.weight"))
        for l in range(self.size["layers"]):
            h = f"h.{l}."
            x = add(x, self.linear(h + "attn.c_proj", self.attention(self.linear(h + "attn.c_attn", self.layer_norm(h + "ln_1", x)))))
            hidden = self.linear(h + "mlp.c_fc", self.layer_norm(h + "ln_2", x))
            x = add(x, self.linear(h + "mlp.c_proj", [[gelu(a) for a in row] for row in hidden]))
        for row, target in zip(self.layer_norm("ln_f", x), tokens[1:]):
            logits = [dot(row, w) for w in table]
            yield total([a.exp() for a in logits]).log() - logits[target]

    def step(self, batch):
        """Takes a step, which updates the weights; returns loss, norm and gradients."""
        Number.tape = []
        self.numbers = {name: [Number(x) for x in w] for name, w in self.weights.items()}
        losses = [e for tokens in batch for e in self.window(tokens)]
        loss = total(losses).times(1 / len(losses))
        backward(loss)
        grads = {name: [n.grad for n in w] for name, w in self.numbers.items()}
        norm = math.sqrt(sum(g * g for w in grads.values() for g in w))
        self.update(grads, norm)
        return loss.value, norm, grads

    def update(self, grads, norm):
        lr, (beta1, beta2), eps, decay, clip = (self.options[k] for k in ("lr", "betas", "eps", "decay", "clip"))
        self.steps += 1
        factor = min(1, clip / (norm + 1e-6)) if clip > 0 and self.broken != "clip" else 1
        if self.broken == "betas":
            beta1, beta2 = beta2, beta1
        correct1, correct2 = (1, 1) if self.broken == "correction" else (1 - beta1**self.steps, 1 - beta2**self.steps)
        for name, w in self.weights.items():
            decays = len(self.dims[name]) == 2 or self.broken == "decay"
            m, v = self.m[name], self.v[name]
            for i, g in enumerate(grads[name]):
                g *= factor
                m[i] = beta1 * m[i] + (1 - beta1) * g
                v[i] = beta2 * v[i] + (1 - beta2) * g * g
                kept = w[i] - lr * decay * w[i] if decays else w[i]
                w[i] = kept - lr * (m[i] / correct1) / (math.sqrt(v[i] / correct2) + eps)
