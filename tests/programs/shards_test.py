"""Texts become token shards, and training on them is the same whether it is stopped and resumed or not."""

import array
import json

from program import TEXT, TINY, main

MODEL = [a for a in TINY if a not in ("--text", "text")]
RUN = [*MODEL, "--data", "shards", "--accumulate", "2", "--warmup", "2", "--dropout", "0.1"]


def made(f, *more):
    f.run("tokenize", "train", "text", "--size", "300", "--out", "t.json").succeeded()
    return f.run("tokenize", "shards", "--tokenizer", "t.json", "text", "--out", "shards", "--shard-tokens", "300", *more).succeeded().out


def train(f, *more):
    return f.run("train", *RUN, *more)


def test_shards_hold_the_text_and_their_hashes_are_checked(f):
    out = made(f, "--split", "line", "--validation", "0.2", "--seed", "3")
    assert out.startswith(f"120 documents, {len(TEXT)} bytes: "), out
    manifest = json.loads(f.read("shards/manifest.json"))
    ids, splits = array.array("H"), []
    for shard in manifest["shards"]:
        ids.frombytes(f.read("shards/" + shard["file"]))
        splits.append(shard["split"])
    assert manifest["vocabulary"] == 301 and manifest["end_of_text"] == 300 and max(ids) == 300, manifest
    assert splits.count("validation") == round(0.2 * len(splits)), splits
    f.write("ids", " ".join(map(str, ids)))
    assert f.run("tokenize", "decode", "shards", "ids").succeeded().out == TEXT.replace("\n", "<|endoftext|>")
    assert f.run("tokenize", "check", "shards").succeeded().out.endswith("all hashes right\n")
    again = f.run("tokenize", "shards", "--tokenizer", "shards", "--data", "text", "--out", "again", "--shard-tokens", "300", "--split=line", "--validation=0.2", "--seed=3")
    again.succeeded()
    assert f.names("again") == f.names("shards")
    for name in f.names("again"):
        assert f.read("again/" + name) == f.read("shards/" + name), name


def test_a_run_on_shards_learns_and_goes_on_with_the_same_bytes(f):
    made(f)
    steps = ["--steps", "40", "--eval-every", "10", "--checkpoint-every", "10", "--shuffle-window", "16", "--checkpoint-dir"]
    train(f, *steps, "whole", "--json", "out.jsonl").succeeded()
    losses = [e["loss"] for e in map(json.loads, f.read("out.jsonl").decode().splitlines()) if e["event"] == "step"]
    assert sum(losses[-5:]) < 0.95 * sum(losses[:5]), losses
    train(f, *steps, "parts", "--stop-after", "17").succeeded()
    resumed = f.run("train", "--data", "shards", "--checkpoint-dir", "parts", "--resume", "--checkpoint-every", "10", "--threads", "2").succeeded()
    assert "resumed after step 17" in resumed.out and "otherwise" not in resumed.out, resumed.out
    for file in ("step-00000040.safetensors", "best.safetensors"):
        assert f.read(f"parts/{file}") == f.read(f"whole/{file}"), file
    f.run("tokenize", "shards", "--tokenizer", "t.json", "text", "--out", "other", "--shard-tokens", "300", "--seed", "2").succeeded()
    f.run("train", "--data", "other", "--checkpoint-dir", "parts", "--resume", "--steps", "50").refused(2, "the checkpoint's text")


def test_a_learned_vocabulary_goes_from_text_to_generated_text(f):
    made(f)
    train(f, "--steps", "5", "--save-hf", "model").succeeded()
    assert f.names("model") == ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"]
    assert json.loads(f.read("model/generation_config.json")) == {"eos_token_id": 300}
    done = f.run("generate", "--model", "model", "--prompt", "7 bottles", "--tokens", "5")
    f.run("train", "--from", "model", "--data", "shards", "--steps", "2", "--batch", "2", "--threads", "1").succeeded()
    assert done.code == 0 and done.out.startswith("7 bottles") and len(done.out) > len("7 bottles") + 1, (done.out, done.err)


def test_bad_shards_are_refused_in_one_line(f):
    made(f)
    shards = lambda *more: f.run("tokenize", "shards", *more)
    shards("--tokenizer", "t.json", "text", "--out", "shards").refused(2, "shards: already holds token shards")
    shards("--data", "text", "--out", "x").refused(2, "--tokenizer", "shards needs it")
    shards("--tokenizer", "t.json", "--out", "x").refused(2, "--data", "shards needs it")
    shards("--tokenizer", "t.json", "text").refused(2, "--out", "shards needs it")
    for flag, value in (("--validation", "1"), ("--validation", "nan"), ("--seed", "-1"), ("--split", "word"), ("--shard-tokens", "1")):
        shards("--tokenizer", "t.json", "text", "--out", "x", flag, value).refused(2, flag, f"'{value}'")
    shards("--tokenizer", "t.json", "text", "--out", "x", "--end-token", "[SEP]").refused(2, 'has no token "[SEP]"')
    shards("--tokenizer", "t.json", "text", "absent", "--out", "x").refused(2, "absent", "no such file")
    shards("--tokenizer", "t.json", "text", "--out", "x", "--shard-tokens", "100000").refused(2, "none is left for training")
    f.run("tokenize", "check", "x").refused(2, "x: has no manifest.json")
    (f.path / "x").mkdir()
    shards("--tokenizer", "t.json", "text", "--out", "x").refused(2, "a run may have been cut off")
    f.run("tokenize", "check").refused(2, "check takes one folder")

    f.run("train", *MODEL, "--data", "words").refused(2, "flag --data", "is 'words'", "tokens, text, or a folder")
    f.run("train", *MODEL, "--data", "x").refused(2, "is 'x'", "manifest.json")
    train(f, "--text", "text").refused(2, "flag --text", "does not go with --data shards")
    train(f, "--vocab", "301").refused(2, "flag --vocab")
    train(f, "--shuffle-window", "0").refused(2, "flag --shuffle-window", "is 0")
    train(f, "--length", "15", "--batch", "100000").refused(2, "a batch takes 100000")
    good = f.read("shards/shard-00001.bin")
    f.write("shards/shard-00001.bin", good[:-1])
    train(f, "--steps", "1").refused(2, "shard-00001.bin: has")
    f.write("shards/shard-00001.bin", good[:-2] + b"\x01\x00")
    f.run("tokenize", "check", "shards").refused(2, "shard-00001.bin: its hash is")
    f.write("shards/shard-00001.bin", b"\xff" * len(good))
    train(f, "--steps", "40", "--checkpoint-dir", "run").refused(2, "shard-00001.bin", "is 65535, the vocabulary has 301")
    manifest = f.read("shards/manifest.json")
    f.write("shards/manifest.json", manifest[:100])
    train(f, "--steps", "1").refused(2, "manifest.json:")
    f.write("shards/manifest.json", manifest.replace(b"shard-00001.bin", b"../text"))
    train(f, "--steps", "1").refused(2, "is not 'shard-00001.bin'")


if __name__ == "__main__":
    main(globals())
