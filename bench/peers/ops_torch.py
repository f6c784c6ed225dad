#!/usr/bin/env python3
"""Times PyTorch on one GPU for the rows of bench_cuda_ops, in f32: torch.argmax, topk, softmax with multinomial, sort, embedding_dense_backward, torch.fft.

ops_torch.py [--only TEXT] [--times N]
A CUDA graph runs an op 20 times in a row; medians of N times 10 such graphs (7) after 300 ms of warm-up, by the device's clock. Where an op cannot be captured, it is
started 20 times one by one, and the row says so.
"""
import argparse
import statistics
import time

import torch


def measure(run, times):
    """Microseconds of one op, of which run() starts 20."""
    began = time.monotonic()
    while time.monotonic() - began < 0.3:
        run()
        torch.cuda.synchronize()
    all_times = []
    for _ in range(times):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(10):
            run()
        last.record()
        torch.cuda.synchronize()
        all_times.append(1000 * first.elapsed_time(last) / 200)
    return statistics.median(all_times)


def row(a, name, op):
    if a.only not in name:
        return
    graph, note = torch.cuda.CUDAGraph(), ""
    try:
        op()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for _ in range(20):
                op()
        run = graph.replay
    except RuntimeError:
        torch.cuda.synchronize()
        note = "  one by one"

        def run():
            for _ in range(20):
                op()

    print(f"{name:40} {measure(run, a.times):10.2f} us{note}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--times", type=int, default=7)
    a = parser.parse_args()
    torch.manual_seed(1)
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    for rows, n in (1, 50257), (64, 50257), (16384, 65):
        x = 8 * torch.rand(rows, n, device="cuda") - 4
        row(a, f"argmax/{rows}x{n}", lambda x=x: torch.argmax(x, -1))
        for k in 5, 50:
            row(a, f"top_k {k}/{rows}x{n}", lambda x=x, k=k: torch.topk(x, k))
        row(a, f"categorical/{rows}x{n}", lambda x=x: torch.multinomial(torch.softmax(x, -1), 1))
    for n, v, c in (32768, 50257, 768), (16384, 65, 384):
        ids = torch.randint(v, (n,), device="cuda", dtype=torch.int32)
        dy = torch.randn(n, c, device="cuda")
        row(a, f"sort of ids/{n}x{v}", lambda ids=ids: torch.sort(ids))
        row(a, f"embedding_grad/{n}x{v}x{c}", lambda dy=dy, ids=ids, v=v: torch.ops.aten.embedding_dense_backward(dy, ids, v, -1, False))
    for rows, n in (1024, 1024), (16384, 256), (1, 1 << 20), (1024, 1000), (4, 100003):
        x = torch.randn(rows, n, dtype=torch.complex64, device="cuda")
        y = torch.randn(rows, n, device="cuda")
        row(a, f"fft/{rows}x{n}", lambda x=x: torch.fft.fft(x))
        row(a, f"rfft/{rows}x{n}", lambda y=y: torch.fft.rfft(y))


if __name__ == "__main__":
    main()
