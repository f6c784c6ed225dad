#!/usr/bin/env python3
"""The time of a prompt of GPT-2 124M here and in onnxruntime, OpenVINO and PyTorch, of those that are installed, by turns.

    prompt_peers.py --f32 BENCH_DECODE [--bf16 BENCH_DECODE] [--kinds f32 bf16] [--threads 2] [--rounds 5] [--prompt 512] [--work FOLDER]

--f32 and --bf16 name bench_decode of builds for cpu in these precisions. Weights and ids are random. Every program computes the logits of the last token and
gives keys and values of each layer, which decoding would go on from. In each round every program reads the prompt twice, one program after the other, of which the
second time counts: milliseconds by the clock, the median of the rounds and the least. Needs numpy, and onnx for the graph of onnxruntime and OpenVINO, which have GELU
in its tanh form and a causal mask as a constant.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import time

LAYERS, HEADS, WIDTH, VOCAB, CONTEXT = 12, 12, 768, 50257, 1024
parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("--f32", required=True)
parser.add_argument("--bf16")
parser.add_argument("--kinds", nargs="*", default=["f32", "bf16"])
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--prompt", type=int, default=512)
parser.add_argument("--work", default="prompt_peers.work")
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(args.threads)

import numpy

from installed import installed

onnxruntime, openvino, torch = (installed(n) for n in ("onnxruntime", "openvino", "torch"))
work = pathlib.Path(args.work)
work.mkdir(exist_ok=True)
ids = numpy.array([[(i * 104729) % 50000 for i in range(args.prompt)]])
LINEAR = {"qkv": (WIDTH, 3 * WIDTH), "proj": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}


def random_weights():
    random, w = numpy.random.default_rng(1), {}
    w["words"] = (0.02 * random.standard_normal((VOCAB, WIDTH))).astype(numpy.float32)
    w["places"] = (0.02 * random.standard_normal((CONTEXT, WIDTH))).astype(numpy.float32)
    for name in ["norm"] + [f"{k}.{n}" for k in range(LAYERS) for n in ("first", "second")]:
        w[name + ".weight"], w[name + ".bias"] = numpy.ones(WIDTH, numpy.float32), numpy.zeros(WIDTH, numpy.float32)
    for k in range(LAYERS):
        for name, dims in LINEAR.items():
            w[f"{k}.{name}.weight"] = (0.02 * random.standard_normal(dims)).astype(numpy.float32)
            w[f"{k}.{name}.bias"] = numpy.zeros(dims[1], numpy.float32)
    return w


def write_onnx(w, path):
    """The graph that exports of GPT-2 have: ids (1, S), logits of the last token, and keys and values of each layer."""
    import onnx
    from onnx import helper, numpy_helper

    nodes, constants, outputs = [], {}, []

    def constant(name, value):
        if name not in constants:
            constants[name] = numpy_helper.from_array(numpy.ascontiguousarray(value), name)
        return name

    def op(kind, *inputs, **attributes):
        out = attributes.pop("out", f"v{len(nodes)}")
        nodes.append(helper.make_node(kind, inputs, out if isinstance(out, list) else [out], **attributes))
        return out

    def number(value):
        return constant(f"number {value}", numpy.array(value, numpy.float32))

    def linear(x, name):
        return op("Add", op("MatMul", x, constant(name + ".weight", w[name + ".weight"])), constant(name + ".bias", w[name + ".bias"]))

    def norm(x, name):
        return op("LayerNormalization", x, *(constant(name + end, w[name + end]) for end in (".weight", ".bias")), axis=-1, epsilon=1e-5)

    def heads(x, order):
        return op("Transpose", op("Reshape", x, constant("by heads", numpy.array([0, 0, HEADS, WIDTH // HEADS]))), perm=order)

    def gelu(x):
        cube = op("Mul", op("Mul", x, x), x)
        inner = op("Mul", op("Add", x, op("Mul", cube, number(0.044715))), number((2 / numpy.pi)**0.5))
        return op("Mul", op("Mul", x, op("Add", op("Tanh", inner), number(1.0))), number(0.5))

    s = args.prompt
    mask = numpy.where(numpy.tril(numpy.ones((s, s), bool)), 0, -1e9).astype(numpy.float32)
    x = op("Add", op("Gather", constant("words", w["words"]), "ids", axis=0), constant("places", w["places"][:s]))
    for k in range(LAYERS):
        q, key, v = op("Split", linear(norm(x, f"{k}.first"), f"{k}.qkv"), axis=-1, num_outputs=3, out=[f"{k}.{n}" for n in "qkv"])
        q, v = heads(q, [0, 2, 1, 3]), heads(v, [0, 2, 1, 3])
        key = heads(key, [0, 2, 1, 3])
        outputs += [key, v]
        scores = op("Mul", op("MatMul", q, op("Transpose", key, perm=[0, 1, 3, 2])), number((WIDTH // HEADS)**-0.5))
        p = op("Softmax", op("Add", scores, constant("mask", mask)), axis=-1)
        a = op("Transpose", op("MatMul", p, v), perm=[0, 2, 1, 3])
        x = op("Add", x, linear(op("Reshape", a, constant("joined", numpy.array([0, 0, WIDTH]))), f"{k}.proj"))
        x = op("Add", x, linear(gelu(linear(norm(x, f"{k}.second"), f"{k}.up")), f"{k}.down"))
    last = op("Gather", x, constant("last", numpy.array([s - 1])), axis=1)
    op("MatMul", norm(last, "norm"), op("Transpose", "words", perm=[1, 0]), out="logits")
    dims = [1, HEADS, s, WIDTH // HEADS]
    graph = helper.make_graph(nodes, "gpt2", [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [1, s])],
                              [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, [1, 1, VOCAB])] +
                              [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, dims) for n in outputs], list(constants.values()))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


class Ours:
    """bench_decode --ask in a process of its own; it reports the median of single runs, each of which is waited for."""

    def __init__(self, program):
        command = [program, "gpt2-124m", "1", "0", "1", "--prompt", str(args.prompt), "--threads", str(args.threads), "--ask"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self):
        self.process.stdin.write("0 1\n")
        self.process.stdin.flush()
        return float(re.search(r"alone ([0-9.]+)", self.process.stdout.readline())[1]) / 1e3


def timed(run):
    def measure():
        begin = time.perf_counter()
        run()
        return 1e3 * (time.perf_counter() - begin)
    return measure


def in_onnxruntime(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return timed(lambda: session.run(None, {"ids": ids}))


def in_openvino(path, precision):
    exact = {"INFERENCE_NUM_THREADS": args.threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": precision}
    request = openvino.Core().compile_model(path, "CPU", exact).create_infer_request()
    return timed(lambda: request.infer({"ids": ids}))


def in_torch(weights, kind):
    torch.set_num_threads(args.threads)
    f = torch.nn.functional
    w = {n: torch.tensor(x.T.copy() if n.split(".")[-2:-1] and n.split(".")[-2] in LINEAR and x.ndim == 2 else x).to(kind) for n, x in weights.items()}

    def linear(x, name):
        return f.linear(x, w[name + ".weight"], w[name + ".bias"])

    def norm(x, name):
        return f.layer_norm(x, [WIDTH], w[name + ".weight"], w[name + ".bias"])

    def run():
        with torch.inference_mode():
            kept, x = [], w["words"][torch.as_tensor(ids)] + w["places"][:args.prompt]
            for k in range(LAYERS):
                q, key, v = (part.view(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2) for part in linear(norm(x, f"{k}.first"), f"{k}.qkv").chunk(3, -1))
                kept += [key, v]
                a = f.scaled_dot_product_attention(q, key, v, is_causal=True).transpose(1, 2).reshape(x.shape)
                x = x + linear(a, f"{k}.proj")
                x = x + linear(f.gelu(linear(norm(x, f"{k}.second"), f"{k}.up"), approximate="tanh"), f"{k}.down")
            return f.linear(norm(x[:, -1], "norm"), w["words"]), kept
    return timed(run)


def main():
    path, weights = str(work / "gpt2.onnx"), random_weights()
    if not os.path.exists(path) and (onnxruntime or openvino):
        write_onnx(weights, path)
    print("milliseconds of a prompt by the clock: the median of the rounds (the least)", flush=True)
    for kind in args.kinds:
        program = getattr(args, kind)
        runs = {"isotope": Ours(program)} if program else {}
        if onnxruntime and kind == "f32":
            runs["onnxruntime"] = in_onnxruntime(path)
        if openvino:
            runs["OpenVINO"] = in_openvino(path, kind)
        if torch:
            runs["PyTorch"] = in_torch(weights, torch.float32 if kind == "f32" else torch.bfloat16)
        found = {name: [] for name in runs}
        for k in range(args.rounds + 1):
            for name, run in runs.items():
                if name != "isotope":  # whose program runs several times before the run that counts
                    run()
                t = run()
                if k > 0:
                    found[name].append(t)
        middle = {name: statistics.median(x) for name, x in found.items()}
        best = min((t for name, t in middle.items() if name != "isotope"), default=float("nan"))
        print(f"{kind}, {args.prompt} tokens, {args.threads} threads: " +
              ", ".join(f"{name} {middle[name]:.0f} ({min(x):.0f})" for name, x in found.items()) +
              (f"; best peer / isotope {best / middle['isotope']:.2f}" if program else ""), flush=True)


main()
