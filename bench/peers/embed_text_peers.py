#!/usr/bin/env python3
"""Texts in, vectors out: the paragraphs of a text here, in tokenizers with onnxruntime or OpenVINO, in fastembed, and in sentence-transformers, of those that are installed.

    embed_text_peers.py MODEL TEXT ISOTOPE_EMBED [--bf16] [--threads 1] [--rounds 1] [--every 1] [--only NAME...] [--work FOLDER]

Paragraphs are what blank lines separate; --every 10 takes each tenth one; --only: beside isotope the peers alone whose name begins so. isotope-embed is a process that opens the model and writes vectors.npy; the peers have their
model open already. onnxruntime and OpenVINO take texts one at a time, and in batches of 32 sorted by length and, in f32, in the order of the text, padded to the longest of a batch;
sentence-transformers sorts, too, and fastembed takes texts in order, 256 (its own size) or 32 at a time. Without sentence-transformers, its steps are taken with transformers:
32 sorted by length, padded, the model, and the mean of the tokens. --bf16 is for an isotope-embed of a build in bf16: OpenVINO and PyTorch compute in it, and the others are left out.
Seconds by the clock and by processor time, the medians of the rounds and the best one, and the least cosine with isotope's vectors.
"""
import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import time

parser = argparse.ArgumentParser(usage=__doc__)
for name in ("model", "text", "program"):
    parser.add_argument(name)
for name, default in (("threads", 1), ("rounds", 1), ("every", 1)):
    parser.add_argument("--" + name, type=int, default=default)
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--only", nargs="*", default=[""])
parser.add_argument("--work", default="embed_text.work")
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(args.threads)
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy

import bert_peer
from installed import installed

work = pathlib.Path(args.work)
work.mkdir(exist_ok=True)
texts = [" ".join(p.split()) for p in pathlib.Path(args.text).read_text().split("\n\n")]
texts = [t for t in texts if t][:: args.every]
(work / "lines").write_text("\n".join(texts) + "\n")


def isotope():
    subprocess.run([args.program, "--model", args.model, "--threads", str(args.threads), str(work / "lines"), "-o", str(work / "vectors.npy")],
                   check=True, stderr=subprocess.DEVNULL)
    return numpy.load(work / "vectors.npy")


def masked_graph():
    path = str(work / "masked.onnx")
    bert_peer.write_onnx(bert_peer.Bert(args.model), path, masked=True)
    return path


def in_batches(name, run):
    """The ways to give texts to a graph, which is run by run(ids, mask)."""
    import tokenizers

    words = tokenizers.Tokenizer.from_file(str(pathlib.Path(args.model) / "tokenizer.json"))
    words.no_padding()
    words.enable_truncation(256)

    def embed(batch, by_length):
        all_ids = [e.ids for e in words.encode_batch_fast(texts)]
        order = sorted(range(len(texts)), key=lambda k: -len(all_ids[k])) if by_length else range(len(texts))
        out = numpy.empty((len(texts), 384), numpy.float32)
        for first in range(0, len(texts), batch):
            some = order[first:first + batch]
            longest = max(len(all_ids[k]) for k in some)
            ids, mask = numpy.zeros((len(some), longest), numpy.int64), numpy.zeros((len(some), longest), numpy.float32)
            for row, k in enumerate(some):
                ids[row, :len(all_ids[k])], mask[row, :len(all_ids[k])] = all_ids[k], 1
            y = run(ids, mask)
            mean = (y * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
            out[list(some)] = mean / numpy.linalg.norm(mean, axis=1)[:, None]
        return out

    ways = {f"{name}, one at a time": lambda: embed(1, False), f"{name}, 32 sorted by length": lambda: embed(32, True)}
    return ways if args.bf16 else ways | {f"{name}, 32 in order": lambda: embed(32, False)}


def in_onnxruntime():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(masked_graph(), options, providers=["CPUExecutionProvider"])
    return in_batches("onnxruntime", lambda ids, mask: session.run(None, {"ids": ids, "mask": mask})[0])


def in_openvino():
    import openvino

    exact = {"INFERENCE_NUM_THREADS": args.threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "bf16" if args.bf16 else "f32"}
    request = openvino.Core().compile_model(masked_graph(), "CPU", exact).create_infer_request()
    return in_batches("OpenVINO", lambda ids, mask: request.infer({"ids": ids, "mask": mask})[0])


def in_fastembed():
    import shutil

    import fastembed
    from fastembed.common.model_description import ModelSource, PoolingType

    folder, name = work / "fastembed", "random/minilm"
    folder.mkdir(exist_ok=True)
    bert_peer.write_onnx(bert_peer.Bert(args.model), str(folder / "model.onnx"), masked=True, names_of_transformers=True)
    for file in ("config.json", "tokenizer.json"):
        shutil.copy(pathlib.Path(args.model) / file, folder / file)
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 256, "pad_token": "[PAD]"}')
    (folder / "special_tokens_map.json").write_text('{"pad_token": "[PAD]"}')
    fastembed.TextEmbedding.add_custom_model(
        model=name, pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf=name), dim=384, model_file="model.onnx")
    model = fastembed.TextEmbedding(name, threads=args.threads, specific_model_path=str(folder))
    return {f"fastembed, {batch}": lambda batch=batch: list(model.embed(texts, batch_size=batch)) for batch in (256, 32)}


def in_sentence_transformers():
    import sentence_transformers
    import torch

    torch.set_num_threads(args.threads)
    model = sentence_transformers.SentenceTransformer(args.model, device="cpu")
    if args.bf16:
        model = model.to(torch.bfloat16)
    return {"sentence-transformers, 32": lambda: model.encode(texts, batch_size=32, show_progress_bar=False)}


def in_transformers():
    """As sentence-transformers does."""
    if installed("sentence_transformers"):
        return {}
    import torch
    import transformers

    torch.set_num_threads(args.threads)
    model = transformers.AutoModel.from_pretrained(args.model, add_pooling_layer=False).to(torch.bfloat16 if args.bf16 else torch.float32).eval()
    words = transformers.PreTrainedTokenizerFast(tokenizer_file=str(pathlib.Path(args.model) / "tokenizer.json"), pad_token="[PAD]")

    def embed():
        order, out = sorted(range(len(texts)), key=lambda k: -len(texts[k])), numpy.empty((len(texts), 384), numpy.float32)
        with torch.inference_mode():
            for first in range(0, len(texts), 32):
                some = order[first:first + 32]
                x = words([texts[k] for k in some], padding=True, truncation=True, max_length=256, return_tensors="pt")
                y = model(input_ids=x["input_ids"], attention_mask=x["attention_mask"]).last_hidden_state
                kept = x["attention_mask"][:, :, None].to(y.dtype)
                mean = (y * kept).sum(1) / kept.sum(1)
                out[some] = torch.nn.functional.normalize(mean, dim=1).float().numpy()
        return out

    return {"transformers, 32 sorted by length": embed}


def processor_seconds():
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


runs = {"isotope": isotope}
for make in (in_openvino, in_sentence_transformers, in_transformers) if args.bf16 else (in_onnxruntime, in_openvino, in_fastembed, in_sentence_transformers, in_transformers):
    try:
        runs |= make()
    except Exception as e:
        print(f"{make.__name__}: {str(e).splitlines()[0]}")
runs = {name: run for name, run in runs.items() if name == "isotope" or name.startswith(tuple(args.only))}
print(f"{len(texts)} paragraphs, {args.threads} thread(s)")
seconds, vectors = {name: [] for name in runs}, {}
for _ in range(args.rounds):
    for name, run in runs.items():
        wall, cpu = time.perf_counter(), processor_seconds()
        vectors[name] = numpy.asarray(run())
        seconds[name].append((time.perf_counter() - wall, processor_seconds() - cpu))
        if len(seconds[name]) == args.rounds:
            wall, cpu = (statistics.median(x[i] for x in seconds[name]) for i in (0, 1))
            best = min(x[0] for x in seconds[name])
            unit, other = (v / numpy.linalg.norm(v, axis=1)[:, None] for v in (vectors[name].astype(numpy.float64), vectors["isotope"].astype(numpy.float64)))
            print(f"{name}: {wall:.2f} s ({cpu:.2f}), {len(texts) / wall:.0f} texts/s, the best round {len(texts) / best:.0f}, least cosine with isotope's "
                  f"{(unit * other).sum(1).min():.6f}", flush=True)
