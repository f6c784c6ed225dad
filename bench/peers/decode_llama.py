"""Decodes one sequence of a GPT-2 124M here and in llama.cpp, by turns, and reads a prompt.

    decode_llama.py BENCH_DECODE LLAMA_BENCH FOLDER [--rounds 3] [--threads 1] [--formats f32 bf16 q8_0 q4_0] [--cached 64 512] [--prompt 512] [--clock]
                    [--bf16 BENCH_DECODE]

BENCH_DECODE is bench_decode of a build for cpu in f32, with --bf16 also that of a build in bf16 (`program`), whose activations and caches are in bf16,
too. LLAMA_BENCH is llama.cpp's llama-bench, built natively, FOLDER that of gpt2_gguf.py. For each
format of weights and each number of cached tokens, each program runs ROUNDS times with THREADS threads, one after the other: milliseconds of a
token by the clock and by processor time, the medians of the rounds. llama-bench reports only the clock: its processor time is that of a process
that decodes 40 tokens less that of one that decodes 8; --clock leaves it out. Before its first token each reads the cached ones. Then the same for a
prompt, of which each computes the logits of the last token: milliseconds of the whole prompt.
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess

OURS = {"exact": [], "a8": ["--a8"]}
parser = argparse.ArgumentParser(usage=__doc__)
for name in ("bench", "llama", "folder"):
    parser.add_argument(name)
for name, default in (("rounds", 3), ("threads", 1), ("prompt", 512)):
    parser.add_argument("--" + name, type=int, default=default)
parser.add_argument("--formats", nargs="*", default=["f32", "bf16", "q8_0", "q4_0"])
parser.add_argument("--cached", type=int, nargs="*", default=[64, 512])
parser.add_argument("--clock", action="store_true")
parser.add_argument("--bf16")
args = parser.parse_args()


def ran(command):
    """The output of a program and the processor time that it took, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Ours:
    """bench_decode --ask in a process of its own, which makes its weights at its start, beside others."""

    def __init__(self, kind, name, flags, *more):
        program = name == "program"
        weights = [] if kind == "f32" or program else ["--weights", kind]
        self.process = subprocess.Popen([args.bf16 if program else args.bench, "gpt2-124m", "1", "0", *more, "--threads", str(args.threads), "--ask",
                                         *weights, *flags],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, cached, runs):
        self.process.stdin.write(f"{cached} {runs}\n")
        self.process.stdin.flush()

    def answer(self):
        out = self.process.stdout.readline()
        return float(re.search(r"([0-9.]+) us/run", out)[1]) / 1e3, float(re.search(r"([0-9.]+) ms of processor", out)[1])

    def __call__(self, cached, runs):
        self.ask(cached, runs)
        return self.answer()


def llama(kind, *more):
    """Tokens per second, and the seconds of the process."""
    out, seconds = ran([args.llama, "-m", os.path.join(args.folder, f"gpt2-{kind}.gguf"), "-t", str(args.threads), "-r", "2", "-o", "json",
                        *more])
    return json.loads(out)[0]["avg_ts"], seconds


def theirs(kind, cached):
    many = llama(kind, "-p", "0", "-n", "40", "-d", str(cached))
    if args.clock:
        return 1e3 / many[0], float("nan")
    few = llama(kind, "-p", "0", "-n", "8", "-d", str(cached))
    return 1e3 / many[0], 1e3 * (many[1] - few[1]) / (3 * 32)  # a round to warm up and two that count


def row(what, kind, runs):
    found = {name: [] for name in runs}
    for _ in range(args.rounds):
        for name, run in runs.items():
            found[name].append(run())
    middle = {name: [statistics.median(x[i] for x in all) for i in (0, 1)] for name, all in found.items()}
    text = "; ".join(f"{name} {wall:.2f} ({cpu:.2f})" for name, (wall, cpu) in middle.items())
    best = min(x[0] for name, x in middle.items() if name != "llama.cpp")
    print(f"{kind}, {what}, {args.threads}: {text}; llama.cpp / best {middle['llama.cpp'][0] / best:.2f}", flush=True)


print("weights, cached, threads: ms a token, or a prompt, by the clock (by processor time)", flush=True)
arithmetic = {kind: OURS if kind.startswith("q") else {"exact": []} | ({"program": []} if kind == "bf16" and args.bf16 else {})
              for kind in args.formats}
decoders = {(kind, name): Ours(kind, name, flags) for kind in args.formats for name, flags in arithmetic[kind].items()}
readers = {(kind, name): Ours(kind, name, flags, "--prompt", str(args.prompt))
           for kind in args.formats for name, flags in arithmetic[kind].items() if args.prompt}
for act in (lambda p: p.ask(0, 1), lambda p: p.answer()):  # all make their weights at once, before any is measured
    for program in [*decoders.values(), *readers.values()]:
        act(program)
for kind in args.formats:
    for cached in args.cached:
        runs = {name: lambda name=name: decoders[kind, name](cached, 8) for name in arithmetic[kind]}
        row(f"{cached} cached", kind, runs | {"llama.cpp": lambda: theirs(kind, cached)})
    if args.prompt:
        runs = {name: lambda name=name: readers[kind, name](0, 1) for name in arithmetic[kind]}

        def prompt():
            rate, _ = llama(kind, "-p", str(args.prompt), "-n", "0", "-b", str(args.prompt), "-ub", str(args.prompt))
            return 1e3 * args.prompt / rate, float("nan")

        row(f"a prompt of {args.prompt}", kind, runs | {"llama.cpp": prompt})
