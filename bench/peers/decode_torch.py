#!/usr/bin/env python3
"""Times one decoding step of a GPT in PyTorch on one GPU: a token of each sequence behind a static cache, compiled, as one CUDA graph.

decode_torch.py [--layers 12 --heads 12 --width 768 --vocab 50304] [--cached 512] [--length 640] [--precision bf16|f32] [--way graph|compile+graph] [--batch 1 8 64]
The cache holds --length positions, and attention masks those behind the last one. Prints the median of 30 groups of 20 steps, which run one after the other.
"""
import argparse
import statistics
import time

import torch
import torch.nn.functional as functional


class block(torch.nn.Module):
    def __init__(self, heads, width, batch, length):
        super().__init__()
        self.heads = heads
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attend, self.project = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.widen, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(batch, heads, length, width // heads))

    def forward(self, x, position, mask):
        b, width = x.shape
        q, k, v = (part.view(b, self.heads, 1, -1) for part in self.attend(self.first(x)).split(width, 1))
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        y = functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        x = x + self.project(y.reshape(b, width))
        return x + self.narrow(functional.gelu(self.widen(self.second(x)), approximate="tanh"))


class decoder(torch.nn.Module):
    def __init__(self, a, batch):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(a.vocab, a.width), torch.nn.Embedding(1024, a.width)
        self.blocks = torch.nn.ModuleList(block(a.heads, a.width, batch, a.length) for _ in range(a.layers))
        self.last = torch.nn.LayerNorm(a.width)

    def forward(self, tokens, position, mask):
        x = self.words(tokens) + self.places(position)
        for b in self.blocks:
            x = b(x, position, mask)
        return functional.linear(self.last(x), self.words.weight)


def main():
    p = argparse.ArgumentParser()
    for name, value in (("layers", 12), ("heads", 12), ("width", 768), ("vocab", 50304), ("cached", 512), ("length", 640)):
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--precision", default="bf16")
    p.add_argument("--way", default="compile+graph")
    p.add_argument("--batch", type=int, nargs="+", default=[1, 8, 64])
    a = p.parse_args()
    kind = torch.bfloat16 if a.precision == "bf16" else torch.float32
    torch.set_grad_enabled(False)
    print(torch.__version__, torch.cuda.get_device_name())
    for batch in a.batch:
        model = decoder(a, batch).to("cuda", kind).eval()
        tokens, position = torch.randint(0, a.vocab, (batch,), device="cuda"), torch.tensor([a.cached], device="cuda")
        mask = (torch.arange(a.length, device="cuda") <= a.cached).view(1, 1, 1, -1)
        step = torch.compile(model) if "compile" in a.way else model
        for _ in range(3):
            step(tokens, position, mask)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step(tokens, position, mask)
        begin = time.time()
        while time.time() < begin + 0.3:
            graph.replay()
            torch.cuda.synchronize()
        times = []
        for _ in range(30):
            begin = time.time()
            for _ in range(20):
                graph.replay()
            torch.cuda.synchronize()
            times.append((time.time() - begin) / 20)
        usec = 1e6 * statistics.median(times)
        print(f"B={batch}, {a.cached} cached, {a.precision} {a.way}: {usec:.1f} us/step, {1e6 * batch / usec:.0f} tokens/s", flush=True)


main()
