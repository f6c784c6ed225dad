"""Times bf16 products of isotope's native kernels and of PyTorch (oneDNN) in one process, in alternation, by the wall clock.

    taskset -c CPU[,CPU] python3 bench/peers/gemm_torch.py [--threads N] [--rounds N] [--sets gpt2,head,char]

First compiles gemm_torch.cpp for this processor. Each result is checked against f32. Weight gradients (TN) are timed with a bf16 result, like PyTorch's,
and with an f32 result, as in training. Columns: GFLOP/s of the best call (of the median one), then isotope / PyTorch in the same order.
"""

import argparse
import ctypes
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
LAYERS = {
    "gpt2": [(256, 2304, 768), (256, 768, 768), (256, 3072, 768), (256, 768, 3072)],
    "head": [(256, 50304, 768)],
    "char": [(768, 384, 128), (768, 128, 128), (768, 512, 128), (768, 128, 512)],
}


def library():
    path = pathlib.Path(tempfile.mkdtemp()) / "gemm_torch.so"
    subprocess.run(["g++", "-std=c++20", "-O3", "-march=native", "-w", "-shared", "-fPIC", "-I", HERE.parent.parent / "include", HERE / "gemm_torch.cpp",
                    "-o", path, "-pthread"], check=True)
    made = ctypes.CDLL(str(path))
    made.isotope_gemm.argtypes = [ctypes.c_int] * 2 + [ctypes.c_int64] * 3 + [ctypes.c_void_p] * 3 + [ctypes.c_int]
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sets", default="gpt2,head,char")
    args = parser.parse_args()
    ours = library()
    ours.isotope_threads(args.threads)
    torch.set_num_threads(args.threads)
    shapes = []
    for name in args.sets.split(","):
        for m, n, k in LAYERS[name]:  # forward, by activations, by weights
            shapes += [("NT", m, n, k), ("NN", m, k, n), ("TN", n, k, m)]
    print(f"torch {torch.__version__}, {args.threads} threads; GFLOP/s")
    for kind, m, n, k in shapes:
        ta, tb = kind[0] == "T", kind[1] == "T"
        a = torch.randn((k, m) if ta else (m, k)).bfloat16()
        b = torch.randn((n, k) if tb else (k, n)).bfloat16()
        left, right = a.t() if ta else a, b.t() if tb else b
        result = {False: torch.empty(m, n, dtype=torch.bfloat16), True: torch.empty(m, n)}

        def isotope(f32):
            ours.isotope_gemm(ta, tb, m, n, k, a.data_ptr(), b.data_ptr(), result[f32].data_ptr(), int(f32))

        runs = {"torch": lambda: torch.nn.functional.linear(a, b) if kind == "NT" else torch.mm(left, right, out=result[False]), "isotope": lambda: isotope(False)}
        if ta:
            runs["isotope f32"] = lambda: isotope(True)
        exact = torch.mm(left[:64].float(), right.float())
        allowed = 2**-19 * torch.mm(left[:64].float().abs(), right.float().abs()) + 1e-30
        flops, times, wrong = 2.0 * m * n * k, {name: [] for name in runs}, ""
        calls = max(3, min(60, int(1e10 / flops)))
        for turn in range(args.rounds):
            for name, run in runs.items():
                time.sleep(0.006)  # so that the other library's threads are asleep
                for _ in range(2):
                    run()
                if turn == 0 and name != "torch":
                    f32 = name.endswith("f32")
                    error = (result[f32][:64].float() - exact).abs() / (allowed + (0 if f32 else 2**-8) * exact.abs())
                    wrong += "" if error.max().item() <= 1 else f" WRONG {name}"
                for _ in range(calls):
                    start = time.perf_counter()
                    run()
                    times[name].append(time.perf_counter() - start)
        rate = {name: (flops / min(t) / 1e9, flops / statistics.median(t) / 1e9) for name, t in times.items()}
        line = " ".join(f"{name} {best:.0f} ({median:.0f})" for name, (best, median) in rate.items())
        ratios = " ".join(f"{rate[name][0] / rate['torch'][0]:.2f} ({rate[name][1] / rate['torch'][1]:.2f})" for name in runs if name != "torch")
        print(f"{kind} {m:6}{n:6}{k:6}  {line}  {ratios}{wrong}", flush=True)


if __name__ == "__main__":
    main()
