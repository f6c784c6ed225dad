#!/usr/bin/env python3
"""embed_peers.py MODEL [THREADS [FILE.onnx]]: sentences per second of PyTorch, onnxruntime, OpenVINO and CTranslate2, of those that are installed, by the clock and by processor
time, for the shapes of bench_embed. MODEL is the folder of a BERT. The last hidden state is computed in f32; ids are random, lengths equal, nothing is padded. The exported model is
written to FILE.onnx, that of CTranslate2 to the folder FILE.onnx.ct2, and both are removed."""
import importlib
import os
import shutil
import sys
import time

THREADS = int(sys.argv[2]) if len(sys.argv) > 2 else 1
os.environ["OMP_NUM_THREADS"] = str(THREADS)
import torch
import transformers

SHAPES = [(1, 16), (1, 64), (1, 128), (8, 64), (32, 128)]
torch.set_num_threads(THREADS)
model = transformers.AutoModel.from_pretrained(sys.argv[1], attn_implementation="sdpa").eval().requires_grad_(False)


def inputs(b, s):
    return torch.tensor([[1000 + (k * 7919 + i * 104729) % 20000 for i in range(s)] for k in range(b)])


def rate(run, sentences):
    wall = cpu = 0
    end = time.perf_counter() + 2
    while time.perf_counter() < end:
        start, used, n = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - start < 0.1:
            run()
            n += sentences
        wall, cpu = max(wall, n / (time.perf_counter() - start)), max(cpu, n / (time.process_time() - used))
    return f"{wall:.1f} sentences/s, {cpu:.1f} by processor time"


for b, s in SHAPES:
    ids = inputs(b, s)
    with torch.inference_mode():
        print(f"PyTorch {torch.__version__} {b} x {s}: {rate(lambda: model(ids).last_hidden_state, b)}", flush=True)


def installed(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed")
        return None


class Plain(torch.nn.Module):
    """The same encoder with its attention written out, which the exporter understands."""

    def forward(self, ids):
        e, heads = model.embeddings, model.config.num_attention_heads
        b, s = ids.shape
        x = e.LayerNorm(e.word_embeddings(ids) + e.token_type_embeddings.weight[0] + e.position_embeddings.weight[:s])
        for layer in model.encoder.layer:
            a = layer.attention
            q, k, v = (f(x).view(b, s, heads, -1).transpose(1, 2) for f in (a.self.query, a.self.key, a.self.value))
            p = (q @ k.transpose(2, 3) * q.shape[-1]**-0.5).softmax(-1)
            x = a.output.LayerNorm(x + a.output.dense((p @ v).transpose(1, 2).reshape(b, s, -1)))
            x = layer.output.LayerNorm(x + layer.output.dense(torch.nn.functional.gelu(layer.intermediate.dense(x))))
        return x


path = sys.argv[3] if len(sys.argv) > 3 else "embed_peers.onnx"
ids = inputs(2, 8)
with torch.inference_mode():
    assert (Plain()(ids) - model(ids).last_hidden_state).abs().max() < 1e-4
axes = {name: {0: "batch", 1: "length"} for name in ("ids", "y")}
torch.onnx.export(Plain(), (ids,), path, input_names=["ids"], output_names=["y"], dynamic_axes=axes, opset_version=17, dynamo=False)
if onnxruntime := installed("onnxruntime"):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    print(f"onnxruntime {onnxruntime.__version__}: session in {time.perf_counter() - start:.3f} s")
    for b, s in SHAPES:
        ids = inputs(b, s).numpy()
        print(f"onnxruntime {b} x {s}: {rate(lambda: session.run(None, {'ids': ids}), b)}", flush=True)
if openvino := installed("openvino"):
    start = time.perf_counter()
    exact = {"INFERENCE_NUM_THREADS": THREADS, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(path, "CPU", exact)
    request = compiled.create_infer_request()
    print(f"OpenVINO {openvino.__version__.split('-')[0]}: compiled in {time.perf_counter() - start:.3f} s")
    for b, s in SHAPES:
        ids = inputs(b, s).numpy()
        print(f"OpenVINO {b} x {s}: {rate(lambda: request.infer({'ids': ids}), b)}", flush=True)
if ctranslate2 := installed("ctranslate2"):
    folder = path + ".ct2"
    ctranslate2.converters.TransformersConverter(sys.argv[1]).convert(folder, quantization="float32")
    start = time.perf_counter()
    encoder = ctranslate2.Encoder(folder, device="cpu", compute_type="float32", intra_threads=THREADS)
    print(f"CTranslate2 {ctranslate2.__version__}: opened in {time.perf_counter() - start:.3f} s")
    for b, s in SHAPES:
        ids = inputs(b, s).tolist()
        print(f"CTranslate2 {b} x {s}: {rate(lambda: encoder.forward_batch(ids), b)}", flush=True)
    shutil.rmtree(folder)
os.remove(path)
