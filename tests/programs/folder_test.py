"""A GPT-2 in a folder of Hugging Face is where training begins, and what it is saved as."""

import json
import pathlib
import struct

from program import main

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
RUN = ["--text", "tokens", "--length", "8", "--batch", "2", "--steps", "2", "--warmup", "0", "--eval-every", "0", "--threads", "1"]


def train(f, *arguments):
    f.write("tokens", struct.pack("<3000H", *(i * i % 96 for i in range(3000))))
    return f.run("train", *RUN, *arguments)


def test_weights_that_are_not_trained_are_saved_as_they_were(f):
    still = ["--learning-rate", "0", "--min-learning-rate", "0"]
    done = train(f, "--from", FIXTURES / "gpt2", *still, "--save-hf", "new/saved").succeeded()
    assert "loaded 28 of 28 parameters" in done.out and "saved new/saved for transformers" in done.out, done.out
    assert f.names("new/saved") == ["config.json", "model.safetensors"]
    assert f.read("new/saved/model.safetensors") == (FIXTURES / "gpt2/model.safetensors").read_bytes()
    ours, theirs = json.loads(f.read("new/saved/config.json")), json.loads((FIXTURES / "gpt2/config.json").read_text())
    for key in ("model_type", "architectures", "activation_function", "layer_norm_epsilon", "n_embd", "n_head", "n_inner", "n_layer",
                "n_positions", "vocab_size", "resid_pdrop", "embd_pdrop", "attn_pdrop", "tie_word_embeddings"):
        assert ours[key] == theirs[key], key
    train(f, "--from", "new/saved", *still, "--save-hf", "again").succeeded()
    for name in f.names("again"):
        assert f.read(f"again/{name}") == f.read(f"new/saved/{name}"), name


def test_training_changes_the_weights_and_a_resumed_run_goes_on_from_its_checkpoint(f):
    source = ["--from", FIXTURES / "gpt2_sharded", "--checkpoint-dir", "run"]
    train(f, *source, "--checkpoint-every", "1", "--stop-after", "1").succeeded()
    train(f, *source, "--resume", "--save-hf", "resumed").succeeded()
    train(f, *source[:2], "--save-hf", "whole").succeeded()
    assert f.read("resumed/model.safetensors") == f.read("whole/model.safetensors")
    train(f, "--from", FIXTURES / "gpt2_sharded", "--learning-rate", "0", "--min-learning-rate", "0", "--save-hf", "still").succeeded()
    assert f.read("still/model.safetensors") != f.read("whole/model.safetensors")


def test_what_contradicts_the_folder_is_refused_in_one_line(f):
    gpt2 = FIXTURES / "gpt2"
    train(f, "--from", "nowhere").refused(2, "nowhere", "no such folder")
    train(f, "--from", gpt2, "--size", "debug-tiny").refused(2, "--size debug-tiny", "--from")
    train(f, "--from", gpt2, "--layers", "3").refused(2, "flag --layers", "is 3", "has 2")
    train(f, "--from", gpt2, "--data", "byte").refused(2, "256", "96", "--data tokens")
    train(f, "--partial").refused(2, "--partial", "--from")
    (f.path / "llama").mkdir()
    f.write("llama/config.json", (FIXTURES / "llama/config.json").read_bytes())
    f.write("llama/model.safetensors", (gpt2 / "model.safetensors").read_bytes())
    train(f, "--from", "llama").refused(2, "llama/config.json", "Llama (model_type 'llama') is not a GPT-2")
    config = json.loads((gpt2 / "config.json").read_text())
    f.write("llama/config.json", json.dumps(config | {"n_layer": 3}))
    train(f, "--from", "llama").refused(2, "12 missing", "h.2.ln_1.weight [24]", "--partial")
    done = train(f, "--from", "llama", "--partial").succeeded()
    assert "loaded 28 of 40 parameters from llama; 12 missing" in done.out, done.out
    f.write("llama/config.json", json.dumps(config | {"attn_pdrop": 0}))
    train(f, "--from", "llama").refused(2, "config.json", "--dropout")
    train(f, "--from", "llama", "--dropout", "0").succeeded()
    train(f, "--from", gpt2, "--save-hf", "tokens").refused(1, "tokens")


if __name__ == "__main__":
    main(globals())
