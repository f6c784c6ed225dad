#!/usr/bin/env python3
"""encode_torch.py [--compile] [SEQUENCES TOKENS]...: times PyTorch on one GPU for the rows of bench_encode minilm-l6 in bf16. A BERT with random weights makes one vector of each text: the
mean of its rows, divided by its norm. `in flight`: runs are started one after the other; `alone`: from ids in pinned host memory to vectors in pinned host memory, one run at a time.
Each runs eagerly and, where capture works, as one CUDA graph; with --compile also through torch.compile."""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, HEADS, WIDTH, HIDDEN, VOCAB, CONTEXT = 6, 12, 384, 1536, 30522, 512


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.after_attention, self.after = nn.LayerNorm(WIDTH, 1e-12), nn.LayerNorm(WIDTH, 1e-12)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, WIDTH)
        x = self.after_attention(x + self.out(a))
        return self.after(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH), nn.Embedding(2, WIDTH)
        self.norm, self.layers = nn.LayerNorm(WIDTH, 1e-12), nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.kinds.weight[0] + self.places.weight[: ids.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return F.normalize(x.mean(1), dim=-1)


def report(name, b, s, start, ids, host, out):
    """`start` runs the model on `ids` and returns the vectors on the device."""

    def alone():
        ids.copy_(host, non_blocking=True)
        out.copy_(start(), non_blocking=True)
        torch.cuda.synchronize()

    for _ in range(5):
        alone()
    runs, times = max(3, min(50, 2_000_000 // (b * s))), []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(runs):
            start()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / runs)
    latencies = []
    for _ in range(runs):
        begin = time.perf_counter()
        alone()
        latencies.append(time.perf_counter() - begin)
    flight, latency = sorted(times)[2], sorted(latencies)[runs // 2]
    print(f"{name} {b} x {s}: {1e6 * flight:.1f} us/run, {b / flight:.0f} sentences/s; alone {1e6 * latency:.1f} us", flush=True)


torch.set_grad_enabled(False)
words = [w for w in sys.argv[1:] if w != "--compile"]
shapes = [(int(words[i]), int(words[i + 1])) for i in range(0, len(words) - 1, 2)] or [(256, 128), (64, 128), (1, 128), (1, 16)]
model = Bert().to("cuda", torch.bfloat16).eval()
print("PyTorch", torch.__version__, torch.cuda.get_device_name(), flush=True)
for b, s in shapes:
    ids, host = torch.randint(0, VOCAB, (b, s), device="cuda"), torch.randint(0, VOCAB, (b, s)).pin_memory()
    out = torch.empty(b, WIDTH, dtype=torch.bfloat16).pin_memory()
    report("eager", b, s, lambda: model(ids), ids, host, out)
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        for _ in range(3):
            model(ids)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        vectors = model(ids)

    def replay():
        graph.replay()
        return vectors

    report("graph", b, s, replay, ids, host, out)
    if "--compile" in sys.argv:
        fast = torch.compile(model, mode="reduce-overhead")
        report("compiled", b, s, lambda: fast(ids), ids, host, out)
