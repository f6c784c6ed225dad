"""Small models with random weights, as folders of Hugging Face: a GPT-2 of 256 positions whose tokens are bytes and some pairs, and a BERT."""

import json
import pathlib
import random
import shutil
import string
import struct

BERT = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "bert"
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
MERGES = ["t h", "th e", "\u0120 th", "\u0120 a", "i n", "o n"]
LAYERS, WIDTH, CONTEXT = 2, 32, 256


def byte_characters():
    """The character that stands for each byte in byte-level vocabularies."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in kept]
    return {b: chr(b) for b in kept} | {b: chr(256 + k) for k, b in enumerate(others)}


def tokenizer():
    tokens = [byte_characters()[b] for b in range(256)] + [m.replace(" ", "") for m in MERGES]
    added = [{"id": len(tokens) + k, "content": s, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for k, s in enumerate(SPECIALS)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
            "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {t: k for k, t in enumerate(tokens)}, "merges": MERGES}}


def gpt2(folder, chat=True):
    """A decoder. Random logits of this size make texts of many different bytes, some of which are no UTF-8."""
    folder.mkdir()
    vocab = 256 + len(MERGES) + len(SPECIALS)
    draw = random.Random(3)
    shapes = {"wte.weight": (vocab, WIDTH), "wpe.weight": (CONTEXT, WIDTH)}
    for k in range(LAYERS):
        shapes |= {f"h.{k}.{name}": shape for name, shape in {
            "ln_1.weight": (WIDTH,), "ln_1.bias": (WIDTH,), "attn.c_attn.weight": (WIDTH, 3 * WIDTH), "attn.c_attn.bias": (3 * WIDTH,),
            "attn.c_proj.weight": (WIDTH, WIDTH), "attn.c_proj.bias": (WIDTH,), "ln_2.weight": (WIDTH,), "ln_2.bias": (WIDTH,),
            "mlp.c_fc.weight": (WIDTH, 4 * WIDTH), "mlp.c_fc.bias": (4 * WIDTH,), "mlp.c_proj.weight": (4 * WIDTH, WIDTH), "mlp.c_proj.bias": (WIDTH,)}.items()}
    shapes |= {"ln_f.weight": (WIDTH,), "ln_f.bias": (WIDTH,)}
    header, data = {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        one = name.endswith("weight") and len(shape) == 1
        numbers = struct.pack(f"<{count}f", *((1.0 if one else 0.0) + draw.gauss(0, 0.2) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "n_embd": WIDTH,
              "n_head": 4, "n_layer": LAYERS, "n_positions": CONTEXT, "vocab_size": vocab, "bos_token_id": vocab - 3, "eos_token_id": vocab - 3}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    if chat:
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML, "bos_token": None}))


def bert(folder):
    """The fixture, whose model has 96 tokens and a limit of 16, with a vocabulary of letters."""
    shutil.copytree(BERT, folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "kitten", "the", *string.ascii_lowercase, *("##" + c for c in string.ascii_lowercase), "."]
    (folder / "vocab.txt").write_text("".join(w + "\n" for w in words))
