"""Decodes one sequence of a GPT-2 124M here and in llama.cpp, by turns.

    decode_llama.py BENCH_DECODE LLAMA_BENCH FOLDER [ROUNDS [THREADS [FORMAT...]]]

BENCH_DECODE is bench_decode of a build for cpu in f32, LLAMA_BENCH llama.cpp's llama-bench, built natively, FOLDER that of gpt2_gguf.py. For each
format of weights, 64 and 512 cached tokens, each program runs ROUNDS times (3) with THREADS threads (1), one after the other: milliseconds of a
token by the clock and by processor time, the medians of the rounds. llama-bench reports only the clock: its processor time is that of a process
that decodes 40 tokens less that of one that decodes 8. Before its first token each reads the cached ones.
"""
import json
import os
import re
import resource
import statistics
import subprocess
import sys

OURS = {"f32": [[]], "bf16": [["--weights", "bf16"]], "q8_0": [["--weights", "q8_0"], ["--weights", "q8_0", "--a8"]],
        "q4_0": [["--weights", "q4_0"], ["--weights", "q4_0", "--a8"]]}


def ran(command):
    """The output of a program and the processor time that it took, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ours(program, flags, cached, threads):
    out, _ = ran([program, "gpt2-124m", "1", str(cached), "8", "--threads", str(threads), *flags])
    return float(re.search(r"([0-9.]+) us/run", out)[1]) / 1e3, float(re.search(r"([0-9.]+) ms of processor", out)[1])


def theirs(program, model, cached, threads):
    def bench(tokens):
        out, seconds = ran([program, "-m", model, "-p", "0", "-n", str(tokens), "-d", str(cached), "-t", str(threads), "-r", "2", "-o",
                            "json"])
        return 1e3 / json.loads(out)[0]["avg_ts"], seconds

    few, many = bench(8), bench(40)
    return many[0], 1e3 * (many[1] - few[1]) / (3 * 32)  # a round to warm up and two that count


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    bench, llama, folder = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    threads = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    print("weights, cached, threads: ms a token by the clock (by processor time)", flush=True)
    for kind in sys.argv[6:] or OURS:
        for cached in (64, 512):
            found = {}
            for _ in range(rounds):
                for flags in OURS[kind]:
                    found.setdefault("a8" if "--a8" in flags else "exact", []).append(ours(bench, flags, cached, threads))
                model = os.path.join(folder, f"gpt2-{kind}.gguf")
                found.setdefault("llama.cpp", []).append(theirs(llama, model, cached, threads))
            text = "; ".join(f"{name} {statistics.median(x[0] for x in all):.2f} ({statistics.median(x[1] for x in all):.2f})"
                             for name, all in found.items())
            print(f"{kind}, {cached}, {threads}: {text}", flush=True)


main()
