"""Definitions, for torch_ops.py, of ops for which PyTorch has no function or one in another form, made of PyTorch operations."""

import math

import torch

# From Random123's kat_vectors: philox4x32 with 10 rounds for counter 0 0 0 0 and key 0 0, the words of the first four elements for seed 0.
WORDS = torch.tensor([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], dtype=torch.float64)


def dropout(x, p):
    """x / (1 - p) where word / 2^32 of an element is at least p, else 0; x has at most 4 elements."""
    return x * (WORDS[: x.numel()].reshape(x.shape) / 2**32 >= p) / (1 - p)


def categorical(logits, temperature):
    """The first class whose cumulative probability exceeds the row's random number between 0 and 1; at most 4 rows."""
    cumulative = torch.softmax(logits / temperature, 1).cumsum(1)
    return torch.searchsorted(cumulative, ((WORDS[: len(logits)] + 0.5) / 2**32)[:, None], right=True)[:, 0]


def attention(q, k, v, heads, groups, causal=True, window=0, mask=None, scale=None, drop=0.0):
    """Attention of queries (B,S,H D), keys and values (B,T,G D), aligned at the end, and the log of the denominators. Dropout for one row of 4."""
    S, T = q.shape[1], k.shape[1]
    q, k, v = (x.unflatten(2, (n, x.shape[2] // n)).transpose(1, 2) for x, n in ((q, heads), (k, groups), (v, groups)))
    k, v = (x.repeat_interleave(heads // groups, 1) for x in (k, v))
    scores = q @ k.transpose(2, 3) * (scale or 1 / math.sqrt(q.shape[3]))  # (B,H,S,T)
    if mask is not None:
        scores = scores + mask[:, None, None, :]
    seen = torch.ones(S, T, dtype=torch.bool)
    if causal:
        seen = seen.tril(T - S)
    if window:
        seen = seen.triu(T - S - window + 1)
    scores = scores.masked_fill(~seen, -math.inf)
    weights = dropout(scores.softmax(3), drop) if drop else scores.softmax(3)
    return (weights @ v).transpose(1, 2).flatten(2), scores.logsumexp(3)


def layer_norm(x, weight, bias, epsilon):
    y, mean, rstd = torch.native_layer_norm(x, [x.shape[-1]], weight, bias, epsilon)
    return y, mean[..., 0], rstd[..., 0]


def rms_norm(x, weight, epsilon):
    rstd = torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
    return x * rstd * weight, rstd[..., 0]


def llama_frequencies(f, context, factor, low, high):
    """The frequencies f scaled to a longer context as in transformers' modeling_rope_utils.py, type llama3."""
    wavelength = 2 * math.pi / f
    t = ((context / wavelength - low) / (high - low)).clamp(0, 1)
    return (1 - t) * f / factor + t * f


def rope(x, base, first, direction, positions=None, heads=0, scaling=None):
    """Elements d and d + D/2 of x (B,S,H,D) are a complex number, rotated by an angle that is proportional to the position."""
    half = x.shape[3] // 2
    frequencies = base ** (-torch.arange(half).double() / half)
    if scaling:
        frequencies = llama_frequencies(frequencies, **scaling)
    if positions is None:
        positions = torch.arange(first, first + x.shape[1])
    angles = positions.double()[:, None] * frequencies
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), direction * angles)[:, None, :]
    rotated = torch.cat([turned.real, turned.imag], 3)
    return torch.cat([rotated[:, :, :heads], x[:, :, heads:]], 2) if heads else rotated


def complex_rows(x, direction, factor):
    """The transform without PyTorch's normalisation in either direction."""
    z = torch.view_as_complex(x)
    return torch.view_as_real(torch.fft.fft(z) if direction < 0 else torch.fft.ifft(z, norm="forward")) * factor


def half_spectrum(x, factor, inner):
    """Multiplies all bins by inner, except the first one, and the last one of an even length."""
    N = x.shape[-1]
    weights = torch.tensor([1.0 if k == 0 or 2 * k == N else inner for k in range(N // 2 + 1)], dtype=torch.float64)
    return torch.view_as_real(torch.fft.rfft(x) * weights) * factor


def points_of(x, N, factor, inner):
    """For inner = 2, irfft, which counts inner bins twice; for 1, the real part of a transform whose other bins are 0."""
    z = torch.view_as_complex(x)
    return (torch.fft.irfft(z, n=N, norm="forward") if inner == 2 else torch.fft.ifft(z, n=N, norm="forward").real) * factor


def first_gradient(into, x):
    """The gradient that backward computes for a parameter that had none."""
    p = torch.zeros_like(into).requires_grad_()
    p.backward(x)
    return p.grad


def clipped(g, scale, norm=None, value=None):
    """The gradient g, which a step multiplies by scale, after clipping of that product; and the norm of the product."""
    p = torch.zeros_like(g).requires_grad_()
    p.grad, total = scale * g, None
    if norm is not None:
        total = torch.nn.utils.clip_grad_norm_([p], norm)
    else:
        torch.nn.utils.clip_grad_value_([p], value)
    return p.grad / scale, total


def taken(attrs, g, norm):
    """The gradient that a step uses: multiplied by its scale and clipped by a given norm."""
    k = attrs.get("gradient_scale", 1.0)
    return k * g * (torch.clamp(attrs["clip_norm"] / (norm + 1e-6), max=1.0) if attrs.get("clip") else 1.0)


def stepped(kind, attrs, w, *rest):
    """A step of a torch.optim optimizer on w and its moments. Weight decay applies to the first elements; the others are a separate group."""
    *moments, g, norm, _ = rest
    g, decaying = taken(attrs, g, norm), attrs.get("decaying", 0)
    names = {torch.optim.AdamW: ("exp_avg", "exp_avg_sq"), torch.optim.SGD: ("momentum_buffer",)}[kind][: len(moments)]
    parts = [slice(0, decaying), slice(decaying, len(w))]
    params = [w[part].clone().requires_grad_() for part in parts]
    groups = [{"params": [p], "weight_decay": attrs.get("weight_decay", 0.0) if n == 0 else 0.0} for n, p in enumerate(params)]
    more = ({"betas": (attrs["beta1"], attrs["beta2"]), "eps": attrs["epsilon"]} if kind is torch.optim.AdamW else
            {"momentum": attrs.get("momentum", 0.0)})
    optimizer = kind(groups, lr=attrs["learning_rate"] * attrs.get("rate", 1.0), **more)
    for p, part in zip(params, parts):
        p.grad = g[part].clone()
        optimizer.state[p] = {name: m[part].clone() for name, m in zip(names, moments)}
        optimizer.state[p] |= {"step": torch.tensor(float(attrs["optimizer_step"] - 1))} if kind is torch.optim.AdamW else {}
    optimizer.step()
    return [torch.cat([p.detach() for p in params])] + [torch.cat([optimizer.state[p][name] for p in params]) for name in names]


def sgd_directions(attrs, m, g, norm):
    """Momentum and Nesterov's direction: a step of SGD from 0 with rate 1 subtracts the direction."""
    p = torch.zeros_like(g).requires_grad_()
    p.grad = taken(attrs, g, norm)
    optimizer = torch.optim.SGD([p], lr=1.0, momentum=attrs["momentum"], nesterov=True)
    optimizer.state[p] = {"momentum_buffer": m.clone()}
    optimizer.step()
    return optimizer.state[p]["momentum_buffer"], -p.detach()
