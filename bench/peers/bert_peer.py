"""A BERT in a folder, and the same as the models of other programs: an ONNX graph, and a folder of CTranslate2.

    bert_peer.py random FROM FOLDER     a folder with random weights and the sizes, vocabulary and settings of the one in FROM

Needs numpy; onnx and ctranslate2 where these models are made. Nothing here needs PyTorch. The graph is that which torch.onnx.export makes of a BERT
whose attention is written out, with one type of tokens, whose row is added to those of the positions.
"""
import json
import pathlib
import shutil
import struct
import sys

import numpy

TYPES = {"F32": "<f4", "I64": "<i8"}


def read_tensors(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, x in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = x["data_offsets"]
            found[name] = numpy.frombuffer(data[8 + size + begin:8 + size + end], TYPES[x["dtype"]]).reshape(x["shape"])
    return found


def write_tensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for x in tensors.values():
            f.write(x.tobytes())


class Bert:
    """The sizes of a BERT and its weights by the names of transformers."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        c = json.loads((self.folder / "config.json").read_text())
        self.layers, self.heads, self.width, self.hidden = (
            c[k] for k in ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size"))
        self.vocab, self.context, self.epsilon = c["vocab_size"], c["max_position_embeddings"], c["layer_norm_eps"]
        tensors = self.folder / "model.safetensors"
        self.weights = {n.removeprefix("bert."): w for n, w in read_tensors(tensors).items()} if tensors.exists() else {}

    def of_layer(self, k, name):
        return self.weights[f"encoder.layer.{k}.{name}"]


def write_random(source, folder):
    m, folder = Bert(source), pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "vocab.txt", "modules.json", "sentence_bert_config.json", "1_Pooling/config.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(m.folder / name, folder / name)
    random, w, tensors = numpy.random.default_rng(1), m.width, {}

    def normal(name, *shape):
        tensors[name] = (0.05 * random.standard_normal(shape)).astype("<f4")

    def norm(name):
        tensors[name + ".weight"], tensors[name + ".bias"] = numpy.ones(w, "<f4"), numpy.zeros(w, "<f4")

    def linear(name, rows, cols):
        normal(name + ".weight", rows, cols)
        normal(name + ".bias", rows)

    for name, rows in (("word", m.vocab), ("position", m.context), ("token_type", 2)):
        normal(f"embeddings.{name}_embeddings.weight", rows, w)
    norm("embeddings.LayerNorm")
    for k in range(m.layers):
        at = f"encoder.layer.{k}."
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            linear(at + "attention." + name, w, w)
        norm(at + "attention.output.LayerNorm")
        linear(at + "intermediate.dense", m.hidden, w)
        linear(at + "output.dense", w, m.hidden)
        norm(at + "output.LayerNorm")
    write_tensors(folder / "model.safetensors", tensors)


def write_onnx(m, path, masked=False, names_of_transformers=False):
    """@param masked                 whether a second input `mask` (batch, length) says which tokens are not padding
    @param names_of_transformers  names the inputs as transformers' exports do, `input_ids` and `attention_mask`, both of integers, for programs that load those"""
    import onnx
    from onnx import helper, numpy_helper

    nodes, constants, names = [], [], set()

    def constant(name, value):
        if name not in names:
            names.add(name)
            constants.append(numpy_helper.from_array(numpy.ascontiguousarray(value), name))
        return name

    def op(kind, *inputs, **attributes):
        out = attributes.pop("out", f"v{len(nodes)}")
        nodes.append(helper.make_node(kind, inputs, [out], **attributes))
        return out

    def linear(x, name):
        y = op("MatMul", x, constant(name + ".weight", m.weights[name + ".weight"].T))
        return op("Add", y, constant(name + ".bias", m.weights[name + ".bias"]))

    def norm(x, name, **more):
        weights = (constant(name + end, m.weights[name + end]) for end in (".weight", ".bias"))
        return op("LayerNormalization", x, *weights, axis=-1, epsilon=m.epsilon, **more)

    def number(name, value):
        return constant(name, numpy.array(value, numpy.float32))

    def heads(x, order):
        return op("Transpose", op("Reshape", x, constant("by heads", numpy.array([0, 0, m.heads, m.width // m.heads]))), perm=order)

    places = m.weights["embeddings.position_embeddings.weight"] + m.weights["embeddings.token_type_embeddings.weight"][0]
    ids, mask = ("input_ids", "attention_mask") if names_of_transformers else ("ids", "mask")
    length = op("Gather", op("Shape", ids), constant("one", numpy.array([1])), axis=0)
    row = op("Slice", constant("places", places), constant("zero", numpy.array([0])), length, "zero")
    x = op("Gather", constant("words", m.weights["embeddings.word_embeddings.weight"]), ids, axis=0)
    x = norm(op("Add", x, row), "embeddings.LayerNorm")
    dims = ["batch", "length"]
    graph_inputs = [helper.make_tensor_value_info(ids, onnx.TensorProto.INT64, dims)]
    if masked:
        numbers = onnx.TensorProto.INT64 if names_of_transformers else onnx.TensorProto.FLOAT
        graph_inputs.append(helper.make_tensor_value_info(mask, numbers, dims))
        kept = op("Cast", mask, to=onnx.TensorProto.FLOAT) if names_of_transformers else mask
        left_out = op("Mul", op("Sub", kept, number("1", 1)), number("far", 1e4))
        left_out = op("Unsqueeze", left_out, constant("axes", numpy.array([1, 2])))
    for k in range(m.layers):
        at = f"encoder.layer.{k}."
        q = heads(linear(x, at + "attention.self.query"), [0, 2, 1, 3])
        key = heads(linear(x, at + "attention.self.key"), [0, 2, 3, 1])
        v = heads(linear(x, at + "attention.self.value"), [0, 2, 1, 3])
        scores = op("Mul", op("MatMul", q, key), number("scale", (m.width // m.heads)**-0.5))
        p = op("Softmax", op("Add", scores, left_out) if masked else scores, axis=-1)
        a = op("Transpose", op("MatMul", p, v), perm=[0, 2, 1, 3])
        a = op("Reshape", a, constant("joined", numpy.array([0, 0, m.width])))
        x = norm(op("Add", x, linear(a, at + "attention.output.dense")), at + "attention.output.LayerNorm")
        h = linear(x, at + "intermediate.dense")
        e = op("Add", op("Erf", op("Div", h, number("root", 2**0.5))), number("1", 1))
        h = op("Mul", op("Mul", h, e), number("half", 0.5))
        last = {"out": "y"} if k + 1 == m.layers else {}
        x = norm(op("Add", x, linear(h, at + "output.dense")), at + "output.LayerNorm", **last)
    graph = helper.make_graph(nodes, "bert", graph_inputs, [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, dims + [m.width])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def write_ctranslate2(m, folder):
    from ctranslate2.converters import utils
    from ctranslate2.specs import common_spec, transformer_spec

    encoder = transformer_spec.TransformerEncoderSpec(m.layers, m.heads, pre_norm=False, activation=common_spec.Activation.GELU,
                                                      layernorm_embedding=True, num_source_embeddings=2,
                                                      embeddings_merge=common_spec.EmbeddingsMerge.ADD)
    spec = transformer_spec.TransformerEncoderModelSpec(encoder)
    encoder.scale_embeddings = False

    def linear(to, name):
        to.weight, to.bias = m.weights[name + ".weight"], m.weights[name + ".bias"]

    def norm(to, name):
        to.gamma, to.beta = m.weights[name + ".weight"], m.weights[name + ".bias"]

    encoder.embeddings[0].weight = m.weights["embeddings.word_embeddings.weight"]
    encoder.embeddings[1].weight = m.weights["embeddings.token_type_embeddings.weight"]
    encoder.position_encodings.encodings = m.weights["embeddings.position_embeddings.weight"]
    norm(encoder.layernorm_embedding, "embeddings.LayerNorm")
    for k, layer in enumerate(encoder.layer):
        at = f"encoder.layer.{k}."
        parts = [common_spec.LinearSpec() for _ in range(3)]
        for part, name in zip(parts, ("query", "key", "value")):
            linear(part, at + "attention.self." + name)
        utils.fuse_linear(layer.self_attention.linear[0], parts)
        linear(layer.self_attention.linear[1], at + "attention.output.dense")
        norm(layer.self_attention.layer_norm, at + "attention.output.LayerNorm")
        linear(layer.ffn.linear_0, at + "intermediate.dense")
        linear(layer.ffn.linear_1, at + "output.dense")
        norm(layer.ffn.layer_norm, at + "output.LayerNorm")
    spec.register_vocabulary([f"token{k}" for k in range(m.vocab - 1)] + ["[UNK]"])
    spec.config.unk_token, spec.config.layer_norm_epsilon = "[UNK]", m.epsilon
    spec.validate()
    spec.optimize()
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] != "random":
        sys.exit(__doc__)
    write_random(sys.argv[2], sys.argv[3])
