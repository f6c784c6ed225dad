#!/usr/bin/env python3
"""Times PyTorch's training step of a GPT on one GPU: forward, backward, clipping by the global norm, fused AdamW, random tokens.

gpu-step.py --layers 12 --heads 12 --width 768 --vocab 50257 --batch 32 --length 1024 [--precision bf16|f32] [--way WAY]... [--no-pad] [--dropout P] [--steps 20]
Ways: eager, graph (the whole step is one CUDA graph), compile (torch.compile of the model), compile+graph; without --way all four are run and the best is named.
The vocabulary is padded to a multiple of 64, like in nanoGPT, unless --no-pad is given.
Prints the median of --steps steps after 300 ms of warm-up, by the host's clock with a synchronisation in each step, like bench_step.
In f32, TF32 is off. Memory is what the allocator has taken from the device.
"""
import argparse
import gc
import statistics
import time

import torch
import torch.nn.functional as functional

WAYS = ("eager", "graph", "compile", "compile+graph")


class block(torch.nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attend, self.project = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.widen, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.attend(self.first(x)).split(c, 2))
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + functional.dropout(self.project(y), self.dropout)
        y = self.narrow(functional.gelu(self.widen(self.second(x)), approximate="tanh"))
        return x + functional.dropout(y, self.dropout)


class gpt(torch.nn.Module):
    def __init__(self, layers, heads, width, vocab, context, dropout):
        super().__init__()
        self.dropout = dropout
        self.tokens, self.positions = torch.nn.Embedding(vocab, width), torch.nn.Embedding(context, width)
        self.blocks = torch.nn.ModuleList(block(width, heads, dropout) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        x = functional.dropout(x, self.dropout)
        for b in self.blocks:
            x = b(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def step_of(a, way):
    """Returns one training step, made in the given way, as a function that returns its loss."""
    torch.manual_seed(1)
    vocab = a.vocab if a.no_pad else -(-a.vocab // 64) * 64
    model = gpt(a.layers, a.heads, a.width, vocab, a.length, a.dropout).cuda()
    run = torch.compile(model) if "compile" in way else model
    graph = "graph" in way
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True, capturable=graph)
    tokens = torch.randint(a.vocab, (a.batch, a.length), device="cuda")
    targets = torch.randint(a.vocab, (a.batch, a.length), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=a.precision == "bf16"):
            loss = run(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    if not graph:
        return step
    # Captures a whole step as PyTorch's manual describes: first some steps on another stream, then one into the graph, whose memory every replay reuses.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = step()

    def replay():
        captured.replay()
        return loss

    replay.keeps = (model, optimizer, tokens, targets)  # the graph reads and writes their memory
    return replay


def measured(a, way):
    """Milliseconds of the median step, and the most memory that was allocated, in GiB."""
    torch.cuda.reset_peak_memory_stats()
    step = step_of(a, way)
    step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    while time.perf_counter() - began < 0.3:
        step()
        torch.cuda.synchronize()
    times = []
    for _ in range(a.steps):
        at = time.perf_counter()
        step().item()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - at)
    return 1000 * statistics.median(times), torch.cuda.max_memory_reserved() / 2**30


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("layers", "heads", "width", "vocab", "batch", "length"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--precision", choices=("bf16", "f32"), default="bf16")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--no-pad", action="store_true")
    parser.add_argument("--dropout", type=float, default=0)
    parser.add_argument("--steps", type=int, default=20)
    a = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    best = None
    for way in a.way or WAYS:
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()
        ms, peak = measured(a, way)
        print(f"torch {torch.__version__} {a.precision} {way} B={a.batch} T={a.length}: {ms:.3f} ms/step, "
              f"{a.batch * a.length / ms * 1000:.0f} tokens/s, {peak:.2f} GiB", flush=True)
        best = min(best or (ms, way), (ms, way))
    print(f"best: {best[1]}, {best[0]:.3f} ms/step")


main()
