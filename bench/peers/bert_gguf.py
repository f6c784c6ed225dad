"""Writes a BERT that makes embeddings, in a folder of sentence-transformers, as a GGUF file in f32 for llama.cpp: bert_gguf.py MODEL FILE.

Needs numpy and the package gguf. Vectors are means of the rows of a text, as the model's folder must say. The vocabulary is written as llama.cpp
reads it: a token that begins a word has U+2581 in front, one that continues a word lacks its ##.
"""
import json
import sys

import gguf
import numpy

import bert_peer


def write(model, path):
    pooling = json.loads((model.folder / "1_Pooling" / "config.json").read_text())
    if not pooling["pooling_mode_mean_tokens"]:
        sys.exit(f"bert_gguf: {model.folder} does not pool by the mean; fix: take a model that does")
    w = gguf.GGUFWriter(str(path), "bert")
    w.add_block_count(model.layers)
    w.add_context_length(model.context)
    w.add_embedding_length(model.width)
    w.add_feed_forward_length(model.hidden)
    w.add_head_count(model.heads)
    w.add_layer_norm_eps(model.epsilon)
    w.add_causal_attention(False)
    w.add_pooling_type(gguf.PoolingType.MEAN)
    w.add_file_type(gguf.LlamaFileType.ALL_F32)
    add_vocabulary(w, model)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, model.layers)
    for name, x in model.weights.items():
        if name != "embeddings.position_ids" and not name.startswith("pooler."):
            w.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), x.astype(numpy.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def add_vocabulary(w, model):
    settings = json.loads((model.folder / "tokenizer.json").read_text())
    ids = settings["model"]["vocab"]
    special = {t["content"] for t in settings["added_tokens"] if t["special"]}
    tokens = sorted(ids, key=ids.get)
    if [ids[t] for t in tokens] != list(range(model.vocab)):
        sys.exit(f"bert_gguf: the ids of {model.folder}/tokenizer.json are not 0 to {model.vocab - 1}; fix: take a model whose are")

    def written(token):
        return token if token in special else token[2:] if token.startswith("##") else "\u2581" + token

    w.add_tokenizer_model("bert")
    w.add_token_type_count(len(model.weights["embeddings.token_type_embeddings.weight"]))
    w.add_token_list([written(t) for t in tokens])
    w.add_token_types([gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL for t in tokens])
    for add, token in ((w.add_bos_token_id, "[CLS]"), (w.add_sep_token_id, "[SEP]"), (w.add_unk_token_id, "[UNK]"), (w.add_pad_token_id, "[PAD]"),
                       (w.add_mask_token_id, "[MASK]")):
        add(ids[token])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(bert_peer.Bert(sys.argv[1]), sys.argv[2])


main()
