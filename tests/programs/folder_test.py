"""A decoder in a folder of Hugging Face is where training begins, of all weights or of adapters, and what it is saved as."""

import json
import pathlib
import struct

from program import main, skip

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


FAMILIES = ("gpt2", "llama", "qwen2", "qwen3")
LORA = ["--lora", "2", "--lora-targets", "all", "--learning-rate", "5e-3", "--steps", "6"]


STILL = ["--learning-rate", "0", "--min-learning-rate", "0", "--steps", "1", "--json", "still.log"]


def validation(f, log):
    """The loss of the last validation of a log."""
    return [x["val_loss"] for x in map(json.loads, f.read(log).splitlines()) if "val_loss" in x][-1]


def loss_of(f, folder, *arguments):
    """The validation loss of the weights in a folder."""
    train(f, "--from", folder, *STILL, *arguments).succeeded()
    return validation(f, "still.log")


def tensors(data):
    """The tensors of a safetensors file in F32: {name: (shape, numbers)}."""
    size = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, x in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = x["data_offsets"]
            found[name] = (x["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end]))
    return found


def test_all_families_are_trained_whole_and_saved_with_the_losses_of_the_last_weights(f):
    for kind in FAMILIES:
        train(f, "--from", FIXTURES / kind, "--learning-rate", "1e-2", "--steps", "6", "--dropout", "0", "--save-hf", kind, "--json",
              f"{kind}.log").succeeded()
        last = validation(f, f"{kind}.log")
        assert last < loss_of(f, FIXTURES / kind, "--dropout", "0") - 0.1, kind
        assert loss_of(f, kind) == last, kind
        ours, theirs = json.loads(f.read(f"{kind}/config.json")), json.loads((FIXTURES / kind / "config.json").read_text())
        assert ours == theirs | {"dtype": "float32"}, kind


def test_adapters_are_trained_alone_saved_apart_and_applied_to_the_weights(f):
    rounding = 5e-6 if "PRECISION=f32" in f.run("info", "--version").out else 1e-2
    for kind in FAMILIES:
        source = FIXTURES / kind
        train(f, "--from", source, *LORA, "--dropout", "0", "--save-hf", kind, "--save-adapters", f"{kind}-lora", "--json",
              f"{kind}.log").succeeded()
        adapted = validation(f, f"{kind}.log")
        assert adapted < loss_of(f, source, "--save-hf", f"{kind}-base") - 0.05, kind
        # The loss is some 5; a product that is added to the weight and not to its result is rounded otherwise.
        assert abs(loss_of(f, kind) - adapted) < rounding, (kind, loss_of(f, kind) - adapted)
        config = json.loads(f.read(f"{kind}-lora/adapter_config.json"))
        assert config["r"] == 2 and config["lora_alpha"] == 16 and config["fan_in_fan_out"] == (kind == "gpt2"), config
        adapters, merged = tensors(f.read(f"{kind}-lora/adapter_model.safetensors")), tensors(f.read(f"{kind}/model.safetensors"))
        assert len(adapters) == (16 if kind == "gpt2" else 28), sorted(adapters)
        # W0 + alpha/r B A = W, with the numbers of the files alone.
        base = tensors(f.read(f"{kind}-base/model.safetensors"))
        changed = set()
        for name in adapters:
            if not name.endswith("lora_A.weight"):
                continue
            weight = name.removeprefix("base_model.model.").replace("lora_A.weight", "weight")
            changed.add(weight)
            (rank, cols), a = adapters[name]
            (rows, _), b = adapters[name.replace("lora_A", "lora_B")]
            at = (lambda o, i: i * rows + o) if kind == "gpt2" else (lambda o, i: o * cols + i)  # Conv1D is stored (in, out)
            for o in range(rows):
                for i in range(cols):
                    want = base[weight][1][at(o, i)] + 8 * sum(b[o * rank + j] * a[j * cols + i] for j in range(rank))
                    assert abs(merged[weight][1][at(o, i)] - want) < 1e-5, (weight, o, i)
        assert changed == {name for name in base if base[name] != merged[name]}, changed


def test_a_resumed_run_with_adapters_goes_on_with_the_same_bits(f):
    for kind in ("gpt2", "llama"):
        source = ["--from", FIXTURES / kind, *LORA, "--accumulate", "2"]
        train(f, *source, "--checkpoint-dir", kind, "--stop-after", "3").succeeded()
        train(f, *source[:2], "--steps", "6", "--checkpoint-dir", kind, "--resume", "--save-hf", f"{kind}-resumed", "--save-adapters",
              f"{kind}-resumed-lora").succeeded()
        train(f, *source, "--save-hf", f"{kind}-whole", "--save-adapters", f"{kind}-whole-lora").succeeded()
        assert f.read(f"{kind}-resumed/model.safetensors") == f.read(f"{kind}-whole/model.safetensors")
        assert f.read(f"{kind}-resumed-lora/adapter_model.safetensors") == f.read(f"{kind}-whole-lora/adapter_model.safetensors")
        train(f, *source[:2], "--checkpoint-dir", kind, "--resume", "--lora", "3").refused(2, kind, '"rank":2', '"rank":3')
        what = "adapters beside the weights"
        f.run("generate", "--checkpoint", kind).refused(2, kind, what, "--save-hf")
    train(f, "--from", FIXTURES / "llama", "--checkpoint-dir", "whole").succeeded()
    train(f, "--checkpoint-dir", "whole", "--resume", "--data", "tokens", "--vocab", "96").refused(2, "llama", "resume with the options")
    f.run("generate", "--checkpoint", "whole").refused(2, "whole", "a Llama or Qwen", "--model DIR")


def test_training_goes_on_from_adapters_that_were_saved(f):
    rounding = 0 if "PRECISION=f32" in f.run("info", "--version").out else 1e-3  # losses of weights in bf16 depend on the order of their parts
    still = [*STILL[:-2], "--dropout", "0", "--json", "still.log"]
    for kind in FAMILIES:
        source = ["--from", FIXTURES / kind]
        train(f, *source, *LORA, "--dropout", "0", "--save-adapters", f"{kind}-lora", "--json", "first.log").succeeded()
        first = validation(f, "first.log")
        more = [*source, "--adapters", f"{kind}-lora"]
        done = train(f, *more, *still, "--save-adapters", f"{kind}-again").succeeded()
        assert f"loaded {16 if kind == 'gpt2' else 28} tensors of adapters from {kind}-lora" in done.out, done.out
        assert "in adapters of rank 2" in done.out, done.out
        assert abs(validation(f, "still.log") - first) <= rounding, kind
        for name in f.names(f"{kind}-lora"):
            assert f.read(f"{kind}-again/{name}") == f.read(f"{kind}-lora/{name}"), name
        train(f, *more, "--learning-rate", "5e-3", "--steps", "6", "--dropout", "0", "--json", "second.log").succeeded()
        assert validation(f, "second.log") < first - 0.01, (kind, validation(f, "second.log"), first)
    more = ["--from", FIXTURES / "gpt2", "--adapters", "gpt2-lora"]
    train(f, "--adapters", "gpt2-lora").refused(2, "flag --adapters", "no model to adapt", "--from")
    train(f, *more[:2], "--adapters", "nowhere").refused(2, "nowhere/adapter_config.json")
    train(f, *more, "--lora", "3").refused(2, "flag --lora", "is 3", "gpt2-lora 2")
    train(f, *more, "--lora-alpha", "4").refused(2, "flag --lora-alpha", "is 4", "gpt2-lora 16")
    train(f, *more, "--lora-targets", "attention").refused(2, "gpt2-lora", "mlp.c_fc.lora_A.weight belongs to no adapter of the model")
    train(f, "--from", FIXTURES / "llama", "--adapters", "gpt2-lora").refused(2, "gpt2-lora", "is missing", "the adapters of this model")
    train(f, *more, "--checkpoint-dir", "run", "--stop-after", "1").succeeded()
    train(f, *more, "--checkpoint-dir", "run", "--resume").succeeded()

    data = bytearray(f.read("llama-lora/adapter_model.safetensors"))
    size = struct.unpack("<Q", data[:8])[0]
    key = next(x for n, x in json.loads(data[8:8 + size]).items() if n.endswith("k_proj.lora_A.weight"))
    data[8 + size + key["data_offsets"][0]] ^= 1
    f.write("llama-lora/adapter_model.safetensors", bytes(data))
    train(f, "--from", FIXTURES / "llama", "--adapters", "llama-lora").refused(2, "llama-lora", "q_proj", "k_proj", "differ")


def test_a_text_is_encoded_by_the_tokenizer_of_the_folder_which_the_saved_model_keeps(f):
    train(f, "--size", "debug-tiny", "--layers", "1", "--width", "16", "--data", "tokens", "--vocab", "300", *STILL, "--save-hf",
          "base").succeeded()
    train(f, "--from", "base", "--data", "text", "--text", "text").refused(2, "base", "no tokenizer")
    f.run("tokenize", "train", "text", "--size", "290", "--out", "base/tokenizer.json").succeeded()
    ids = [int(x) for x in f.run("tokenize", "encode", "base", "text").succeeded().out.split()]
    f.write("ids", struct.pack(f"<{len(ids)}H", *ids))
    by_text = train(f, "--from", "base", "--text", "text", "--json", "text.log", "--save-hf", "tuned").succeeded()
    assert f"{len(ids)} tokens, vocabulary 300" in by_text.out, by_text.out
    train(f, "--from", "base", "--text", "ids", "--data", "tokens", "--json", "ids.log").succeeded()
    assert validation(f, "text.log") == validation(f, "ids.log")
    assert f.names("tuned") == ["config.json", "model.safetensors", "tokenizer.json"]
    assert f.read("tuned/tokenizer.json") == f.read("base/tokenizer.json")
    train(f, "--from", "base", "--text", "ids").refused(2, "ids", "not UTF-8 at byte", "--data tokens")
    f.run("tokenize", "train", "text", "--size", "310", "--out", "base/tokenizer.json").succeeded()
    train(f, "--from", "base", "--text", "text").refused(2, "base", "the tokenizer has 311 ids, the model 300")


def test_a_folder_with_weights_in_blocks_is_computed_as_one_whose_weights_are_rounded_while_they_are_read(f):
    if "BACKEND=cpu PRECISION=f32" not in f.run("info", "--version").out:
        skip("weights in blocks are for builds for cpu in f32")
    train(f, "--size", "debug-tiny", "--layers", "1", "--width", "32", "--data", "tokens", "--vocab", "300", *STILL, "--save-hf",
          "base").succeeded()
    f.run("tokenize", "train", "text", "--size", "290", "--out", "base/tokenizer.json").succeeded()
    generate = lambda *more: f.run("generate", "--model", *more)
    lines = lambda *more: generate(*more, "--perplexity", "text").succeeded().out.splitlines()

    def text(*more):
        done = generate(*more, "--prompt", "7 bottles", "--temperature", "0", "--tokens", "8")
        assert done.code == 0, done.err
        return done.out

    for kind in ("q8_0", "q4_0"):
        stored = ["--weights", kind]
        generate("base", *stored, "--save-quantised", kind).succeeded()
        assert f.names(kind) == ["config.json", "model.safetensors", "tokenizer.json"]
        own, wide, cost = lines("base", *stored)
        assert f"with weights in {kind}: " in own and "with weights in f32: " in wide and cost.startswith("it costs "), (own, wide, cost)
        assert lines("base") == [wide]
        assert lines(kind) == [own]
        assert lines("base", *stored, "--a8")[0] not in (own, wide)
        assert text(kind) == text("base", *stored)
    generate("q8_0", "--weights", "q4_0", "--save-quantised", "twice").refused(2, "q8_0", "has weights in q8_0 already")
    generate("base", "--weights", "q8_0", "--save-quantised", "q4_0").refused(2, "q4_0", "has a file 'config.json'")
    generate("base", "--save-quantised", "new").refused(2, "flag --save-quantised", "give --weights q8_0 or q4_0")
    generate("base", "--a8").refused(2, "flag --a8", "not f32")
    f.run("generate", "--checkpoint", "x", "--perplexity", "text").refused(2, "flag --perplexity", "is for --model")


def test_adapters_that_were_saved_are_added_to_the_weights_of_their_model(f):
    if "PRECISION=f32" not in f.run("info", "--version").out:
        skip("weights that are saved with their adapters are rounded to the format of this build")
    train(f, "--size", "debug-tiny", "--layers", "1", "--width", "32", "--data", "tokens", "--vocab", "300", *STILL, "--save-hf",
          "base").succeeded()
    f.run("tokenize", "train", "text", "--size", "290", "--out", "base/tokenizer.json").succeeded()
    train(f, "--from", "base", *LORA, "--data", "tokens", "--save-hf", "merged", "--save-adapters", "lora").succeeded()
    measure = lambda model, *more: f.run("generate", "--model", model, "--perplexity", "text", *more)
    own, base = measure("base", "--adapters", "lora").succeeded().out, measure("base").succeeded().out
    assert own == measure("merged").succeeded().out and own != base, (own, base)
    write = ["--prompt", "7 bottles", "--temperature", "0", "--tokens", "8"]
    texts = [f.run("generate", "--model", *m, *write).out for m in (["base", "--adapters", "lora"], ["merged"])]
    assert texts[0] == texts[1] != "", texts
    measure("base", "--adapters", "nowhere").refused(2, "nowhere/adapter_config.json")
    config = json.loads(f.read("lora/adapter_config.json"))
    for field, value in (("peft_type", "IA3"), ("use_dora", True), ("bias", "all"), ("rank_pattern", {"mlp.c_fc": 4}), ("r", 0)):
        f.write("lora/adapter_config.json", json.dumps(config | {field: value}).encode())
        measure("base", "--adapters", "lora").refused(2, "lora/adapter_config.json", field)
    f.write("lora/adapter_config.json", json.dumps(config | {"r": 3}).encode())
    measure("base", "--adapters", "lora").refused(2, "lora", "[2,32] of F32, the model needs [3,32] of F32")
    f.write("lora/adapter_config.json", json.dumps(config).encode())
    train(f, "--size", "debug-tiny", "--layers", "2", "--width", "32", "--data", "tokens", "--vocab", "300", *STILL, "--save-hf",
          "deep").succeeded()
    train(f, "--from", "deep", *LORA, "--data", "tokens", "--save-adapters", "deep-lora").succeeded()
    measure("base", "--adapters", "deep-lora").refused(2, "deep-lora", "h.1.attn.c_attn.lora_A.weight belongs to no weight of the model")
    f.run("generate", "--checkpoint", "x", "--adapters", "lora").refused(2, "flag --adapters", "is for --model")


def test_nothing_that_a_folder_has_is_replaced(f):
    for kind in ("config.json", "model.safetensors", "tokenizer.json"):
        (f.path / kind.split(".")[0]).mkdir()
        f.write(f"{kind.split('.')[0]}/{kind}", "mine")
        train(f, "--from", FIXTURES / "gpt2", "--save-hf", kind.split(".")[0]).refused(2, f"has a file '{kind}'", "name another folder")
        assert f.read(f"{kind.split('.')[0]}/{kind}") == b"mine"
    lora = ["--from", FIXTURES / "gpt2", "--lora", "1", "--save-adapters", "lora"]
    train(f, *lora).succeeded()
    train(f, *lora).refused(2, "lora", "has a file 'adapter_model.safetensors'")


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
    train(f, "--from", "llama").refused(2, "llama/config.json", "no 'lm_head.weight'")
    train(f, "--from", FIXTURES / "llama", "--dropout", "0.1").refused(2, "--dropout", "a Llama drops nothing")
    train(f, "--from", FIXTURES / "bert").refused(2, "bert/config.json", "BERT (model_type 'bert') is no decoder")
    train(f, "--lora", "2").refused(2, "--lora", "no model to adapt", "--from")
    train(f, "--from", gpt2, "--lora", "-1").refused(2, "--lora", "is -1")
    train(f, "--from", gpt2, "--lora", "2", "--lora-alpha", "0").refused(2, "--lora-alpha", "change nothing")
    train(f, "--from", gpt2, "--lora", "2", "--lora-targets", "mlp").refused(2, "--lora-targets", "'mlp'", "attention, all")
    train(f, "--from", gpt2, "--save-adapters", "lora").refused(2, "--save-adapters", "give --lora")
    train(f, "--data", "text").refused(2, "--data", "no folder with a tokenizer", "--from")
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
