#!/usr/bin/env python3
"""`torch_peer.py FOLDER`: writes FOLDER/T, a run of a small GPT-2 as docs/TRACES.md describes it, and FOLDER/R, PyTorch's results for it in f64.

The files in traces/ were made with PyTorch 1.13.1 (python3-torch of Debian 12). The model uses functions of torch.nn, AdamW of torch.optim and
gradients of autograd; it shares only the names of parameters with gpt_peer.py."""

import math
import pathlib
import sys

import torch
from torch.nn import functional

from gpt_peer import shapes
from trace_test import save

SIZE = {"layers": 2, "heads": 2, "width": 16, "vocab": 32, "context": 12}
OPTIONS = {"lr": 3e-3, "betas": (0.9, 0.95), "eps": 1e-8, "decay": 0.1, "clip": 1.0}
STEPS, BATCH = 10, 4


def single(x):
    """x rounded to f32, like every constant in isotope-train."""
    return torch.tensor(x, dtype=torch.float32).item()


def a_run():
    draw = torch.Generator().manual_seed(2026)
    weights = {}
    for name, dims in shapes(SIZE).items():
        centre = 1.0 if name.split(".")[-2].startswith("ln_") and name.endswith("weight") else 0.0
        weights[name] = centre + 0.25 * torch.randn(dims, generator=draw)
    return weights, torch.randint(0, SIZE["vocab"], (STEPS, BATCH, SIZE["context"] + 1), generator=draw)


def loss_of(p, tokens):
    width, heads = SIZE["width"], SIZE["heads"]

    def norm(x, name):
        return functional.layer_norm(x, (width,), p[name + ".weight"], p[name + ".bias"], 1e-5)

    def linear(x, name):
        return functional.linear(x, p[name + ".weight"], p[name + ".bias"])

    def attention(x):
        q, k, v = (part.unflatten(2, (heads, width // heads)).transpose(1, 2) for part in x.split(width, 2))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // heads)
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return (scores.masked_fill(hidden, -math.inf).softmax(3) @ v).transpose(1, 2).flatten(2)

    x = functional.embedding(tokens[:, :-1], p["wte.weight"]) + p["wpe.weight"][: tokens.shape[1] - 1]
    for layer in range(SIZE["layers"]):
        h = f"h.{layer}."
        x = x + linear(attention(linear(norm(x, h + "ln_1"), h + "attn.c_attn")), h + "attn.c_proj")
        x = x + linear(functional.gelu(linear(norm(x, h + "ln_2"), h + "mlp.c_fc"), approximate="tanh"), h + "mlp.c_proj")
    logits = norm(x, "ln_f") @ p["wte.weight"].T
    return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def trained(weights, tokens):
    """The tensors of R."""
    p = {name: w.double().requires_grad_() for name, w in weights.items()}
    groups = [{"params": [w for w in p.values() if w.dim() == 2], "weight_decay": single(OPTIONS["decay"])},
              {"params": [w for w in p.values() if w.dim() != 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=single(OPTIONS["lr"]), betas=tuple(map(single, OPTIONS["betas"])), eps=single(OPTIONS["eps"]))
    losses, norms, result = [], [], {}
    for batch in tokens:
        optimizer.zero_grad()
        loss = loss_of(p, batch)
        loss.backward()
        losses.append(loss.item())
        if not result:
            result = {"grad1." + name: w.grad.clone() for name, w in p.items()}
        norms.append(torch.nn.utils.clip_grad_norm_(p.values(), OPTIONS["clip"]).item())
        optimizer.step()
    result["loss"], result["grad_norm"] = torch.tensor(losses), torch.tensor(norms)
    return result | {"final." + name: w.detach() for name, w in p.items()}


def written(path, tensors, metadata):
    save(path, {name: ("I64" if t.dtype == torch.int64 else "F32", tuple(t.shape), t.flatten().tolist()) for name, t in tensors.items()}, metadata)


def main():
    folder = pathlib.Path(sys.argv[1])
    weights, tokens = a_run()
    text = {k: str(v) for k, v in SIZE.items()} | {k: repr(v) for k, v in OPTIONS.items()}
    written(folder / "T", weights | {"tokens": tokens}, text | {"betas": ",".join(map(repr, OPTIONS["betas"]))})
    written(folder / "R", trained(weights, tokens), {"program": "PyTorch " + torch.__version__, "precision": "f64"})


if __name__ == "__main__":
    main()
