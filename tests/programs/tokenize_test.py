"""isotope-tokenize: trains a tokenizer, converts texts to ids and back, and refuses bad input in one line."""

import json
import re

from program import TEXT, main


def trained(f):
    f.run("tokenize", "train", "text", "--size", "300", "--special", "<|end|>", "--out", "t.json").succeeded()
    return "t.json"


def test_a_text_comes_back_from_its_ids(f):
    t = trained(f)
    ids = f.run("tokenize", "encode", t, "text").succeeded().out
    assert len(ids.split()) < len(TEXT) / 2, ids[:200]
    f.write("ids", ids)
    assert f.run("tokenize", "decode", t, "ids").succeeded().out == TEXT
    assert f.run("tokenize", "encode", t, "text", "--count").succeeded().out == f"{len(ids.split())}\n"


def test_version_says_what_was_built_without_a_device(f):
    out = f.run("tokenize", "--version").succeeded().out
    assert re.match(r"isotope-tokenize \d+\.\d+\.\d+([~+][a-z0-9.+]+)?\nbackend +any\n", out), out
    assert "\ncommit " in out, out


def test_training_twice_gives_the_same_file(f):
    first = f.read(trained(f))
    assert f.read(trained(f)) == first
    assert len(json.loads(first)["model"]["vocab"]) == 300


def test_lines_of_json_become_ids_with_their_spans(f):
    t = trained(f)
    f.write("lines", '"the \\u00e9<|end|>"\n""\n')
    first, second = map(json.loads, f.run("tokenize", "encode", t, "lines", "--json", "--spans").succeeded().out.splitlines())
    assert first["ids"][-1] == 300 and first["spans"][-1] == [6, 13] and len(first["types"]) == len(first["ids"]), first
    assert second == {"ids": [], "types": [], "spans": [], "cut": 0}, second
    cut = json.loads(f.run("tokenize", "encode", t, "lines", "--json", "--limit", "1").succeeded().out.splitlines()[0])
    assert cut["ids"] == first["ids"][:1] and cut["cut"] == len(first["ids"]) - 1, cut
    plain = json.loads(f.run("tokenize", "encode", t, "lines", "--json", "--plain").succeeded().out.splitlines()[0])
    assert 300 not in plain["ids"], plain
    f.write("ids", f"{first['ids']}\n")
    assert f.run("tokenize", "decode", t, "ids", "--json").succeeded().out == '"the \u00e9<|end|>"\n'
    assert f.run("tokenize", "decode", t, "ids", "--lines", "--skip-specials").succeeded().out == "the \u00e9\n"


def test_bad_input_is_refused_in_one_line(f):
    t = trained(f)
    f.run("tokenize").refused(2, "no command")
    f.run("tokenize", "encod", t).refused(2, "encod")
    f.run("tokenize", "encode").refused(2, "takes a tokenizer")
    f.run("tokenize", "encode", t, "--txt", "a").refused(2, "did you mean '--text'")
    f.run("tokenize", "encode", t, "--text").refused(2, "--text", "needs a value")
    f.run("tokenize", "encode", t, "--text", "the end", "--limit", "1", "--refuse").refused(2, "limit is 1")
    f.run("tokenize", "encode", t, "text", "--limit", "-1").refused(2, "--limit", "'-1'")
    f.run("tokenize", "encode", "nowhere.json", "text").refused(2, "nowhere.json", "no such file")
    f.run("tokenize", "encode", ".", "text").refused(2, "no tokenizer")
    f.run("tokenize", "encode", t, "text", "--json").refused(2, "line 1", "not JSON")
    f.run("tokenize", "decode", t, "text").refused(2, "no id at byte")
    f.write("ids", "1 301")
    f.run("tokenize", "decode", t, "ids").refused(2, "301", "none of the 301")
    f.write("cut.json", f.read(t)[:2000])
    f.run("tokenize", "encode", "cut.json", "text").refused(2, "cut.json:")
    f.run("tokenize", "train", "text", "--size", "300").refused(2, "--out")
    f.run("tokenize", "train", "text", "--size", "3", "--out", "x").refused(2, "--size", "'3'")
    f.run("tokenize", "train", "text", "--pattern", "gpt4", "--out", "x").refused(2, "gpt4")
    f.run("tokenize", "train", "--out", "x").refused(2, "needs a text")


if __name__ == "__main__":
    main(globals())
