"""Writes a GPT-2 124M of random weights as GGUF files for llama.cpp: gpt2_gguf.py FOLDER [LLAMA_QUANTIZE].

Needs numpy and the package gguf (pip install gguf, or PYTHONPATH=llama.cpp/gguf-py). FOLDER gets gpt2-f32.gguf and, with the path of llama-quantize,
gpt2-bf16.gguf, gpt2-f16.gguf, gpt2-q8_0.gguf and gpt2-q4_0.gguf ("pure": the head is in 4 bits, too, as here). The files have no tokenizer: llama-bench needs none.
"""
import pathlib
import subprocess
import sys

import gguf
import numpy

LAYERS, HEADS, WIDTH, VOCAB, CONTEXT = 12, 12, 768, 50257, 1024


def write(path):
    random = numpy.random.default_rng(1)
    w = gguf.GGUFWriter(str(path), "gpt2")
    w.add_block_count(LAYERS)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(4 * WIDTH)
    w.add_head_count(HEADS)
    w.add_layer_norm_eps(1e-5)
    w.add_vocab_size(VOCAB)
    w.add_file_type(gguf.LlamaFileType.ALL_F32)
    w.add_tokenizer_model("none")

    def normal(name, *shape):
        w.add_tensor(name, (0.02 * random.standard_normal(shape)).astype(numpy.float32))

    def norm(name):
        w.add_tensor(name + ".weight", numpy.ones(WIDTH, numpy.float32))
        w.add_tensor(name + ".bias", numpy.zeros(WIDTH, numpy.float32))

    normal("token_embd.weight", VOCAB, WIDTH)
    normal("position_embd.weight", CONTEXT, WIDTH)
    norm("output_norm")
    for k in range(LAYERS):
        norm(f"blk.{k}.attn_norm")
        norm(f"blk.{k}.ffn_norm")
        for name, rows, columns in (("attn_qkv", 3 * WIDTH, WIDTH), ("attn_output", WIDTH, WIDTH),
                                    ("ffn_up", 4 * WIDTH, WIDTH), ("ffn_down", WIDTH, 4 * WIDTH)):
            normal(f"blk.{k}.{name}.weight", rows, columns)
            normal(f"blk.{k}.{name}.bias", rows)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    f32 = folder / "gpt2-f32.gguf"
    write(f32)
    for kind in ("bf16", "f16", "q8_0", "q4_0") if len(sys.argv) == 3 else ():
        subprocess.run([sys.argv[2], "--pure", str(f32), str(folder / f"gpt2-{kind}.gguf"), kind.upper()], check=True)


main()
