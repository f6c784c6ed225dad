"""isotope-embed: vectors of lines, as JSON lines and as a matrix, the same bits in any batch; bad input is refused in one line."""

import json
import math
import pathlib
import shutil
import string
import struct

from program import main, skip

BERT = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "bert"
LINES = ["a cat sleeps", "the kitten naps", "", "Zebras are not cats.", "\u00e9t\u00e9", "the kitten naps"]


def model(f):
    """A copy of the fixture, whose model has 96 tokens, with a vocabulary of letters. Its limit is 16 tokens."""
    shutil.rmtree(f.path / "bert", ignore_errors=True)
    shutil.copytree(BERT, f.path / "bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "kitten", "the", *string.ascii_lowercase, *("##" + c for c in string.ascii_lowercase), "."]
    f.write("bert/vocab.txt", "".join(w + "\n" for w in words))
    f.write("lines", "".join(line + "\n" for line in LINES))
    return ["--model", "bert", "--threads", "1"]


def ran(f, *arguments, model=("--model", "bert", "--threads", "1")):
    done = f.run("embed", *model, *arguments)
    assert done.code == 0 and done.err.startswith("isotope-embed: ") and done.err.count("\n") == 1, done.err
    return done


def matrix(data):
    size = struct.unpack_from("<H", data, 8)[0]
    header = data[10:10 + size].decode()
    assert data[:8] == b"\x93NUMPY\x01\x00" and (10 + size) % 64 == 0 and header.endswith("\n"), header
    fields = eval(header)  # as numpy reads it
    assert fields["descr"] == "<f4" and fields["fortran_order"] is False, fields
    rows, cols = fields["shape"]
    numbers = struct.unpack(f"<{rows * cols}f", data[10 + size:])
    return [numbers[k * cols:(k + 1) * cols] for k in range(rows)]


def test_lines_become_vectors_in_json_and_in_a_matrix(f):
    model(f)
    done = ran(f, "lines", "-o", "out.npy")
    assert "6 texts of" in done.err and "texts/s; opened in" in done.err, done.err
    rows = matrix(f.read("out.npy"))
    most = 1e-4 if "PRECISION=f32" in f.run("info", "--version").out else 2e-2
    assert len(rows) == 6 and all(len(r) == 24 and abs(sum(x * x for x in r) - 1) < most for r in rows), rows[0]
    assert rows[1] == rows[5] and len(set(rows)) == 5
    objects = [json.loads(line) for line in ran(f, "lines").out.splitlines()]
    assert [o["index"] for o in objects] == list(range(6)) and objects[2]["tokens"] == 2, objects[2]
    assert [struct.pack("<24f", *o["embedding"]) for o in objects] == [struct.pack("<24f", *r) for r in rows]


def test_a_line_has_the_same_bits_in_any_batch_and_order(f):
    if "BACKEND=cpu" not in f.run("info", "--version").out:
        skip("kernels of a GPU depend on the number of rows")
    model(f)
    ran(f, "lines", "-o", "out.npy")
    rows = matrix(f.read("out.npy"))
    many = [(7 * k) % 6 for k in range(300)]
    f.write("many", "".join(LINES[k] + "\n" for k in many))
    for tokens in ("16", "100", "4096"):
        ran(f, "many", "-o", "many.npy", "--tokens", tokens)
        assert matrix(f.read("many.npy")) == [rows[k] for k in many], tokens
    f.write("one", LINES[3] + "\n")
    ran(f, "one", "-o", "one.npy")
    assert matrix(f.read("one.npy")) == [rows[3]]


def test_a_long_line_is_cut_or_refused(f):
    model(f)
    f.write("long", "a cat\n" + "cat " * 40 + "\n" + "cat " * 14 + "\n")
    done = ran(f, "long")
    a, long, full = [json.loads(line) for line in done.out.splitlines()]
    assert (long["tokens"], long["cut"], full["tokens"], full["cut"]) == (16, 26, 16, 0), (long, full)
    assert long["embedding"] == full["embedding"] != a["embedding"]
    assert "1 had more than 16 tokens" in done.err, done.err
    f.run("embed", "--model", "bert", "long", "--refuse").refused(2, "long: text 2", "42 ids", "limit is 16")


def test_bytes_that_are_no_text_are_embedded_and_no_lines_give_no_vectors(f):
    model(f)
    f.write("bytes", b"\xff\xfe cat\n\x80\n\xe2\x82\ncat\n")
    objects = [json.loads(line) for line in ran(f, "bytes").out.splitlines()]
    assert len(objects) == 4 and all(math.isfinite(x) for o in objects for x in o["embedding"]), objects
    f.write("nothing", "")
    assert ran(f, "nothing").out == ""
    ran(f, "nothing", "-o", "out.npy")
    assert matrix(f.read("out.npy")) == []


def test_similarities_are_a_table(f):
    model(f)
    rows = [line.split() for line in ran(f, "lines", "--similarities").out.splitlines()]
    assert all(row[k] == "1.00" for k, row in enumerate(rows)) and rows[1][5] == "1.00", rows


def test_bad_input_is_refused_in_one_line(f):
    use = model(f)
    f.run("embed", "lines").refused(2, "--model")
    f.run("embed", "--model").refused(2, "--model", "needs a value")
    f.run("embed", *use, "--modle", "x").refused(2, "did you mean '--model'")
    f.run("embed", "--model", "nowhere", "lines").refused(2, "nowhere", "no such folder")
    f.run("embed", *use, "nowhere").refused(2, "nowhere", "no such file")
    f.run("embed", *use, "lines", "more").refused(2, "more", "second file")
    f.run("embed", *use, "lines", "--refuse", "--truncate").refused(2, "--refuse", "--truncate")
    f.run("embed", *use, "lines", "--tokens", "8").refused(2, "is 8", "16")
    f.run("embed", *use, "lines", "-o", "missing/out.npy").refused(1, "missing/out.npy")
    f.run("embed", *use, "lines", "-o", "out.npy", "--similarities").refused(2, "--similarities")
    for name, change in {"vocab.txt": None, "config.json": None, "model.safetensors": None, "1_Pooling/config.json": None, "modules.json": "[",
                         "sentence_bert_config.json": '{"max_seq_length": 0}', "1_Pooling/config.json ": '{"pooling_mode_max_tokens": true}'}.items():
        model(f)
        path = f.path / "bert" / name.strip()
        path.unlink() if change is None else path.write_text(change)
        f.run("embed", *use, "lines").refused(2, "bert")
    model(f)
    f.write("bert/vocab.txt", "[UNK]\n" + "".join(f"word{k}\n" for k in range(199)))
    f.run("embed", *use, "lines").refused(2, "bert", "199", "96")


if __name__ == "__main__":
    main(globals())
