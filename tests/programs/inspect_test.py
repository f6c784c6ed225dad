"""isotope-info inspect: lists the contents of a safetensors file, or refuses it in one line."""

import json
import random
import struct

from program import main

TENSORS = {"w": ("F32", [2, 3], 24), "ids": ("I64", [4], 32), "s": ("F64", [], 8), "none": ("BF16", [0, 5], 0)}


def image(tensors=None, metadata=None, data=None):
    """The bytes of a file; `tensors` replaces entries of the header."""
    header, at = {}, 0
    for name, (dtype, shape, size) in TENSORS.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    header |= tensors or {}
    if metadata is not None:
        header["__metadata__"] = metadata
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + (bytes(at) if data is None else data)


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def refused(f, blob, *parts):
    f.write("bad.safetensors", blob)
    f.run("info", "inspect", "bad.safetensors").refused(2, "bad.safetensors", *parts)


def test_a_file_is_listed(f):
    f.write("a.safetensors", image(metadata={"made by": "a test", "line": "one\ntwo", "long": "x" * 5000}))
    out = f.run("info", "inspect", "a.safetensors").succeeded().out
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["tensor", "type", "shape", "bytes"], out
    assert ["w", "F32", "2", "x", "3", "24"] in rows and ["s", "F64", "scalar", "8"] in rows and ["none", "BF16", "0", "x", "5", "0"] in rows, out
    assert "one two" in out and len(out) < 1000, out
    assert out.endswith("4 tensors, 11 elements, 64 bytes\n"), out


def test_a_checkpoint_is_listed(f):
    f.train("--steps", "2", "--checkpoint-dir", "runs").succeeded()
    name = [n for n in f.names("runs") if n.endswith(".safetensors")][0]
    out = f.run("info", "inspect", f"runs/{name}").succeeded().out
    assert "F32" in out and " tensors, " in out, out


def test_what_is_no_such_file_is_refused_in_one_line(f):
    f.run("info", "inspect").refused(2, "one file")
    f.run("info", "inspect", "a", "b").refused(2, "one file", "2")
    f.run("info", "inspect", "nowhere.safetensors").refused(2, "nowhere.safetensors")
    whole = image()
    for length in (0, 7, 8, 20, len(whole) - 1):
        refused(f, whole[:length])
    refused(f, whole + b"x")
    refused(f, struct.pack("<Q", 2**63) + whole[8:])
    refused(f, struct.pack("<Q", 100_000_001) + whole[8:])
    refused(f, image({"w": entry("F31", [2, 3], 0, 24)}), "'w'", "F31")
    refused(f, image({"w": entry("F32", [2, 4], 0, 24)}), "'w'", "32", "24")
    refused(f, image({"w": entry("F32", [2**40, 2**40], 0, 24)}), "'w'", "overflow")
    refused(f, image({"w": entry("F32", [-2, -3], 0, 24)}), "'w'")
    refused(f, image({"ids": entry("I64", [4], 16, 48)}))  # overlaps the bytes of w
    refused(f, image({"ids": entry("I64", [3], 24, 48)}))  # leaves bytes that belong to no tensor
    refused(f, image({"w": {"dtype": "F32", "shape": [2, 3]}}), "'w'", "data_offsets")
    refused(f, image(metadata={"key": 3}))
    refused(f, image(metadata=["key"]))


def test_a_damaged_file_is_listed_or_refused(f):
    chance = random.Random(1)
    whole = image(metadata={"key": "value"})
    for _ in range(60):
        blob = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            blob[chance.randrange(len(blob) - 64)] = chance.randrange(256)
        f.write("bad.safetensors", bytes(blob[: chance.choice([len(blob), chance.randrange(len(blob))])]))
        run = f.run("info", "inspect", "bad.safetensors")
        run.refused(2, "bad.safetensors") if run.code else run.succeeded()


if __name__ == "__main__":
    main(globals())
