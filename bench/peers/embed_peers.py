#!/usr/bin/env python3
"""Sentences per second here and in onnxruntime, OpenVINO, CTranslate2 and PyTorch, of those that are installed, by turns.

    embed_peers.py MODEL --f32 BENCH_EMBED [--bf16 BENCH_EMBED] [--kinds f32 bf16 int8] [--threads 1] [--rounds 3] [--seconds 0.3] [--work FOLDER]

MODEL is the folder of a BERT, --f32 and --bf16 name bench_embed of builds for cpu in these precisions. Ids are random, lengths equal, nothing is padded. For
each kind of arithmetic and each batch every program runs for SECONDS, one after the other, ROUNDS times: the medians of the rounds, by the clock and by
processor time, and the best round by the clock. Programs give the last hidden state, isotope the pooled vectors, in f32 batch invariant and, "any order", not. `int8`: here weights in q8_0, and activations rounded to 8 bits (--a8) by the
program of f32 and by that of bf16 ("isotope bf16, a8"), or in bf16 ("isotope bf16"); in onnxruntime quantize_dynamic per channel, in CTranslate2 int8, in OpenVINO the model that nncf.quantize makes (MODEL/int8.xml if it is there).
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

SHAPES = [(1, 16), (1, 64), (1, 128), (8, 64), (32, 128)]
parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("model")
parser.add_argument("--f32")
parser.add_argument("--bf16")
parser.add_argument("--kinds", nargs="*", default=["f32", "bf16", "int8"])
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--seconds", type=float, default=0.3)
parser.add_argument("--work", default="embed_peers.work")
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(args.threads)

import numpy

import bert_peer
from installed import installed

onnxruntime, openvino, ctranslate2, torch = (installed(n) for n in ("onnxruntime", "openvino", "ctranslate2", "torch"))
work = pathlib.Path(args.work)
work.mkdir(exist_ok=True)
onnx = str(work / "f32.onnx")
bert = bert_peer.Bert(args.model)


def inputs(b, s):
    return numpy.array([[1000 + (k * 7919 + i * 104729) % 20000 for i in range(s)] for k in range(b)])


def timed(run, sentences, seconds):
    wall = cpu = 0
    end = time.perf_counter() + seconds
    while not wall or time.perf_counter() < end:
        start, used, n = time.perf_counter(), time.process_time(), 0
        while not n or time.perf_counter() - start < 0.1:
            run()
            n += sentences
        wall, cpu = max(wall, n / (time.perf_counter() - start)), max(cpu, n / max(time.process_time() - used, 1e-9))
    return wall, cpu


class Ours:
    """bench_embed --ask in a process of its own."""

    def __init__(self, program, *flags):
        command = [program, args.model, "--threads", str(args.threads), "--ask", *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, b, s, seconds):
        self.process.stdin.write(f"{b} {s} {seconds}\n")
        self.process.stdin.flush()
        return tuple(float(x) for x in self.process.stdout.readline().split())


def in_onnxruntime(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda ids: session.run(None, {"ids": ids})[0]


def in_openvino(path, precision):
    exact = {"INFERENCE_NUM_THREADS": args.threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": precision}
    request = openvino.Core().compile_model(path, "CPU", exact).create_infer_request()
    return lambda ids: request.infer({"ids": ids})[0]


def in_ctranslate2(kind):
    folder = work / "ctranslate2"
    if not (folder / "model.bin").exists():
        bert_peer.write_ctranslate2(bert, folder)
    encoder = ctranslate2.Encoder(str(folder), device="cpu", compute_type=kind, intra_threads=args.threads)
    return lambda ids: encoder.forward_batch(ids.tolist()).last_hidden_state


class TorchBert:
    """The encoder by PyTorch's own functions."""

    def __init__(self, kind):
        torch.set_num_threads(args.threads)
        self.w = {n: torch.tensor(x).to(kind) for n, x in bert.weights.items() if x.dtype == numpy.float32}

    def linear(self, x, name):
        return torch.nn.functional.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, x, name):
        return torch.nn.functional.layer_norm(x, [bert.width], self.w[name + ".weight"], self.w[name + ".bias"], bert.epsilon)

    @staticmethod
    def heads(x):
        return x.view(*x.shape[:2], bert.heads, -1).transpose(1, 2)

    def __call__(self, ids):
        with torch.inference_mode():
            ids, at = torch.as_tensor(ids), "embeddings."
            x = self.w[at + "word_embeddings.weight"][ids] + self.w[at + "token_type_embeddings.weight"][0]
            x = self.norm(x + self.w[at + "position_embeddings.weight"][: ids.shape[1]], at + "LayerNorm")
            for k in range(bert.layers):
                at = f"encoder.layer.{k}."
                q, k, v = (self.heads(self.linear(x, at + "attention.self." + n)) for n in ("query", "key", "value"))
                a = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
                x = self.norm(x + self.linear(a, at + "attention.output.dense"), at + "attention.output.LayerNorm")
                h = torch.nn.functional.gelu(self.linear(x, at + "intermediate.dense"))
                x = self.norm(x + self.linear(h, at + "output.dense"), at + "output.LayerNorm")
            return x


def quantised_onnx():
    path = str(work / "int8.onnx")
    if not os.path.exists(path):
        from onnxruntime.quantization import quantize_dynamic
        quantize_dynamic(onnx, path, per_channel=True)
    return path


def quantised_openvino():
    path = pathlib.Path(args.model) / "int8.xml"
    if path.exists():
        return str(path)
    import nncf
    made = nncf.quantize(openvino.Core().read_model(onnx), nncf.Dataset([{"ids": inputs(4, 64) + 7 * k} for k in range(20)]),
                         model_type=nncf.ModelType.TRANSFORMER)
    openvino.save_model(made, work / "int8.xml", compress_to_fp16=False)
    return str(work / "int8.xml")


def programs(kind):
    """The programs of a kind: their names, and functions of ids."""
    found = {}

    def add(name, there, make):
        if there is None:
            return
        try:
            found[name] = make()
        except Exception as e:  # what a peer of this version, or this processor, cannot do
            print(f"{name}, {kind}: {str(e).splitlines()[0]}")

    if onnxruntime and kind != "bf16":
        add("onnxruntime", onnxruntime, lambda: in_onnxruntime(onnx if kind == "f32" else quantised_onnx()))
    add("OpenVINO", openvino, lambda: in_openvino(onnx if kind != "int8" else quantised_openvino(), "bf16" if kind == "bf16" else "f32"))
    names = {"f32": "float32", "bf16": "bfloat16", "int8": "int8"}
    add("CTranslate2", ctranslate2, lambda: in_ctranslate2(names[kind]))
    if torch and kind != "int8":
        add("PyTorch", torch, lambda: TorchBert(torch.bfloat16 if kind == "bf16" else torch.float32))
    return found


bert_peer.write_onnx(bert, onnx)
ids = inputs(2, 8)
wanted = None
for kind in args.kinds:
    peers = programs(kind)
    for name, run in peers.items():  # they compute the same model
        y = numpy.asarray(run(ids) if name != "PyTorch" else run(ids).float(), dtype=numpy.float32).mean(axis=1)
        wanted = y if wanted is None else wanted
        cosine = ((y * wanted).sum(-1) / numpy.linalg.norm(y, axis=-1) / numpy.linalg.norm(wanted, axis=-1)).min()
        print(f"{name} in {kind}: least cosine with the first program {cosine:.6f}")
    runs = {}
    if kind == "f32" and args.f32:
        runs["isotope"] = Ours(args.f32)
        runs["isotope, any order"] = Ours(args.f32, "--any-order")
    if kind == "int8" and args.f32:
        runs["isotope"] = Ours(args.f32, "--weights", "q8_0", "--a8")
    if kind == "int8" and args.bf16:
        runs["isotope bf16"] = Ours(args.bf16, "--weights", "q8_0")
        runs["isotope bf16, a8"] = Ours(args.bf16, "--weights", "q8_0", "--a8")
    if kind == "bf16" and args.bf16:
        runs["isotope"] = Ours(args.bf16)
    for name, run in peers.items():
        runs[name] = lambda b, s, seconds, run=run: timed(lambda ids=inputs(b, s): run(ids), b, seconds)
    print(f"\n{kind}, {args.threads} thread(s): sentences/s by the clock (by processor time), the best round\n| B x S | " + " | ".join(runs) + " | isotope / best peer |")
    print("|---" * (len(runs) + 2) + "|")
    for b, s in SHAPES:
        rates = {name: [] for name in runs}
        for _ in range(args.rounds):
            for name, run in runs.items():
                rates[name].append(run(b, s, args.seconds))
        middle = {name: tuple(statistics.median(x[i] for x in all) for i in (0, 1)) for name, all in rates.items()}
        fastest = {name: max(x[0] for x in all) for name, all in rates.items()}

        def ratio(rates):
            own, best = (max((x for name, x in rates.items() if name.startswith("isotope") == ours), default=0) for ours in (True, False))
            return f"{own / (best or 1):.2f}"

        print(f"| {b} x {s} | " + " | ".join(f"{w:.1f} ({c:.1f}), {fastest[name]:.1f}" for name, (w, c) in middle.items()) +
              f" | {ratio({name: x[0] for name, x in middle.items()})} ({ratio({name: x[1] for name, x in middle.items()})}), {ratio(fastest)} |", flush=True)
