#!/usr/bin/env python3
"""Times the training steps of isotope and PyTorch in alternation, and prints the ratio of medians.

Runs A B, then B A, ... for --repeats rounds, so that a changing clock rate or other load affects both. Each run is a new process; its first --skip steps do not count.
The figure of a run is the median of its steps, that of a competitor the median over its runs. Ratios can be compared between machines, milliseconds can not.
A run is marked `noisy` if other processes used more than --quiet cores on average meanwhile; figures without noisy runs follow if enough are left.

--isotope (a build) and --torch-precision may be repeated; every pair gets its ratio.
exit: 0 done, 1 a run failed or --at-most was exceeded, 2 usage.
"""

import argparse
import json
import math
import os
import pathlib
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")
BATCHES = {"gpt2-124m": ["--batch", "4", "--length", "64"]}  # the sizes of gpt_torch.py that differ from those of isotope-train


class Failure(Exception):
    """An error for the user, which main prints in one line."""


def busy_seconds():
    """CPU seconds that all processes of the machine have used since boot: user, nice, system, irq, softirq and steal, without guests (already in user)."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(word) for word in file.readline().split()[1:]]
    return sum(fields[i] for i in (0, 1, 2, 5, 6, 7)) / TICKS


def step_times(path, steps, skip, label):
    """Milliseconds of the steps after `skip`, and the last loss, from the JSON lines that both programs write."""
    times, loss, seen = [], math.nan, 0
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                event = json.loads(line)
                if event.get("event") != "step":
                    continue
                seen += 1
                loss = float(event["loss"])
                if seen > skip:
                    times.append(float(event["ms"]))
            except (ValueError, KeyError, AttributeError, TypeError) as error:
                raise Failure(f"{label}: line {number} of its --json file is not a step event with ms and loss: {error!r}") from error
    if seen != steps:
        raise Failure(f"{label}: asked for {steps} steps, its --json file has {seen}. fix: run the command by hand and read its output")
    if not all(ms > 0 and math.isfinite(ms) for ms in times):
        raise Failure(f"{label}: a step took no time or no finite one")
    if not math.isfinite(loss):
        raise Failure(f"{label}: the last loss is {loss}; a step that computes nonsense has no speed")
    return times, loss


def run_once(label, command, args, cpus):
    with tempfile.TemporaryDirectory(prefix="compare-step-") as folder:  # plots and other outputs of the run end here too
        out = os.path.join(folder, "steps.jsonl")
        load = os.getloadavg()[0]
        before, busy, begin = resource.getrusage(resource.RUSAGE_CHILDREN), busy_seconds(), time.monotonic()
        try:
            child = subprocess.run([*command, "--json", out], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=args.timeout,
                                   preexec_fn=lambda: os.sched_setaffinity(0, cpus), check=False)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{label}: not done after {args.timeout} s. fix: fewer --steps or a longer --timeout") from error
        wall = time.monotonic() - begin
        after, busy = resource.getrusage(resource.RUSAGE_CHILDREN), busy_seconds() - busy
        if child.returncode != 0:
            last = (child.stderr.strip() or child.stdout.strip() or "no output").splitlines()[-1]
            raise Failure(f"{label}: exit {child.returncode}: {last}")
        times, loss = step_times(out, args.steps, args.skip, label)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    foreign = max(0.0, busy - own) / wall
    return dict(label=label, median_ms=statistics.median(times), best_ms=min(times), loss=loss, load=load, foreign_cores=foreign, noisy=foreign > args.quiet,
                preempted=after.ru_nivcsw - before.ru_nivcsw, wall_s=wall)


def competitors(args):
    """(label, command) of every competitor, isotope first."""
    found = []
    for program in args.isotope:
        label = "isotope " + (pathlib.Path(program).resolve().parent.parent.name if len(args.isotope) > 1 else "")
        found.append((label.strip(), [str(pathlib.Path(program).resolve()), "--size", args.size, "--text", str(pathlib.Path(args.text).resolve()), "--steps", str(args.steps),
                                      *BATCHES.get(args.size, []), *shlex.split(args.isotope_args)]))
    for precision in args.torch_precision:
        found.append((f"pytorch {precision}", [str(pathlib.Path(args.torch_root).resolve() / "python"), str(HERE / "gpt_torch.py"), "--size", args.size, "--precision", precision,
                                               "--steps", str(args.steps), "--skip", str(args.skip), "--threads", str(args.threads)]))
    labels = [label for label, _ in found]
    if len(set(labels)) != len(labels):
        raise Failure(f"two competitors are both called '{next(l for l in labels if labels.count(l) > 1)}'. fix: name each --isotope build and --torch-precision once")
    return found


def machine():
    model, flags = "unknown processor", set()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            elif key.strip() == "flags":
                flags = set(value.split())
                break
    notable = [flag for flag in ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16") if flag in flags]
    return f"{model}, {os.cpu_count()} cpus, {' '.join(notable) or 'no avx2'}"


def summarise(runs, title, args, names):
    """Prints one table; returns {(isotope, pytorch): ratio}."""
    print(f"\n{title}\n{'competitor':<24}{'runs':>5}{'median ms':>11}{'best run':>10}{'best step':>11}{'worst run':>11}")
    medians = {}
    for label in names:
        own = [run for run in runs if run["label"] == label]
        medians[label] = statistics.median(run["median_ms"] for run in own)
        print(f"{label:<24}{len(own):>5}{medians[label]:>11.3f}{min(r['median_ms'] for r in own):>10.3f}{min(r['best_ms'] for r in own):>11.3f}{max(r['median_ms'] for r in own):>11.3f}")
    ratios = {}
    for ours in (name for name in names if name.startswith("isotope")):
        for peer in (name for name in names if name.startswith("pytorch")):
            ratios[ours, peer] = medians[ours] / medians[peer]
            best = min(r["median_ms"] for r in runs if r["label"] == ours) / min(r["median_ms"] for r in runs if r["label"] == peer)
            print(f"ratio {ours} / {peer}: {ratios[ours, peer]:.3f} (medians), {best:.3f} (best runs)")
    return ratios


def parse(argv):
    cpus = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isotope", action="append", metavar="PROGRAM", help="isotope-train of a build; may repeat (default build/cpu-f32/examples/isotope-train)")
    parser.add_argument("--isotope-args", default="", metavar="TEXT", help="further flags for isotope-train, one string")
    parser.add_argument("--torch-root", required=True, metavar="DIR", help="the folder that setup-pytorch.sh made")
    parser.add_argument("--torch-precision", action="append", choices=("f32", "bf16"), help="may repeat (default f32)")
    parser.add_argument("--text", required=True, metavar="FILE", help="text that isotope trains on; PyTorch gets random tokens of the same shape")
    parser.add_argument("--size", default="char-gpt-cpu", help="char-gpt-cpu or gpt2-124m")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--skip", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5, help="rounds, at least 5 for a claim")
    parser.add_argument("--threads", type=int, default=cpus, help="both competitors are bound to this many cpus (default: all that this process may use)")
    parser.add_argument("--quiet", type=float, default=0.15, metavar="CORES", help="a run counts as noisy when others used more than this")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="for one run")
    parser.add_argument("--at-most", type=float, metavar="R", help="fail when a ratio of medians is above R")
    parser.add_argument("--json", metavar="FILE", help="also write every run and ratio as JSON")
    args = parser.parse_args(argv)
    args.isotope = args.isotope or ["build/cpu-f32/examples/isotope-train"]
    args.torch_precision = args.torch_precision or ["f32"]
    if not 0 <= args.skip < args.steps:
        parser.error(f"--skip {args.skip} leaves nothing of --steps {args.steps}. fix: more steps")
    if not 1 <= args.threads <= cpus:
        parser.error(f"--threads {args.threads}: this process may use 1 to {cpus} cpus")
    if args.repeats < 1:
        parser.error(f"--repeats {args.repeats}: at least 1, at least 5 for a claim")
    fixes = [(program, "fix: cmake --build the preset first") for program in args.isotope] + [(args.text, "fix: name a readable text")]
    fixes.append((os.path.join(args.torch_root, "python"), "fix: bench/peers/setup-pytorch.sh DIR"))
    for path, fix in fixes:
        if not os.path.isfile(path):
            parser.error(f"'{path}' is not a file. {fix}")
    return args


def compare(argv):
    args = parse(argv)
    cpus = sorted(os.sched_getaffinity(0))[: args.threads]
    field = competitors(args)
    names = [label for label, _ in field]
    version = subprocess.run([str(pathlib.Path(args.torch_root).resolve() / "python"), "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=False)
    if version.returncode != 0:
        raise Failure(f"the root '{args.torch_root}' does not import torch. fix: make it again with bench/peers/setup-pytorch.sh")
    print(f"machine: {machine()}\npytorch: {version.stdout.strip()}, eager, fused AdamW\n"
          f"threads: {args.threads}; size {args.size}, {args.steps} steps a run, first {args.skip} left out, {args.repeats} rounds")
    runs = []
    for turn in range(args.repeats):
        for label, command in field if turn % 2 == 0 else reversed(field):
            run = run_once(label, command, args, cpus)
            run["round"] = turn + 1
            runs.append(run)
            print(f"round {turn + 1} {label:<24} median {run['median_ms']:9.3f} ms  best {run['best_ms']:9.3f}  loss {run['loss']:.3f}  load {run['load']:.2f}  "
                  f"others {run['foreign_cores']:.2f} cores  preempted {run['preempted']}{'  noisy' if run['noisy'] else ''}", flush=True)
    ratios = summarise(runs, "all runs", args, names)
    quiet = [run for run in runs if not run["noisy"]]
    fewest = min(sum(run["label"] == name for run in quiet) for name in names)
    if len(quiet) == len(runs):
        print("no run was noisy")
    elif fewest >= 3:
        ratios = summarise(quiet, "quiet runs only", args, names)
    else:
        print(f"{len(runs) - len(quiet)} of {len(runs)} runs were noisy and too few quiet ones are left ({fewest}, 3 needed): repeat this on an idle machine before claiming anything")
    print("load average: %.2f %.2f %.2f" % os.getloadavg())
    print("reproduce: " + shlex.join(["python3", os.path.relpath(__file__), *argv]))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(dict(machine=machine(), torch=version.stdout.strip(), argv=argv, runs=runs, ratios={" / ".join(pair): value for pair, value in ratios.items()}), file, indent=1)
            file.write("\n")
    if args.at_most is not None and not all(value <= args.at_most for value in ratios.values()):
        raise Failure(f"a ratio is above --at-most {args.at_most}")


if __name__ == "__main__":
    try:
        compare(sys.argv[1:])
    except Failure as failure:
        sys.exit(f"compare-step: {failure}")
