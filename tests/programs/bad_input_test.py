"""Bad input gives one line and exit code 2, a failure at run time one line and exit code 1; no data is lost."""

import re

from program import TEXT, main


def test_an_unknown_flag_gets_a_suggestion(f):
    f.train("--stepz", "3").refused(2, "--stepz", "did you mean '--steps'?")


def test_a_bad_number_names_flag_and_value(f):
    f.train("--steps", "many").refused(2, "--steps", "'many'")
    f.train("--steps", "-1").refused(2, "--steps", "-1")
    f.train("--learning-rate", "nan").refused(2, "--learning-rate", "nan")
    f.train("--batch", "99999999999999999999").refused(2, "--batch")


def test_an_unknown_size_lists_the_sizes(f):
    f.run("train", "--size", "char-gpt-gpu").refused(2, "char-gpt-gpu", "did you mean", "debug-tiny", "gpt2-124m")


def test_a_flag_without_value_and_a_bare_word_are_refused(f):
    f.train("--steps").refused(2, "--steps")
    f.run("train", "text.txt").refused(2, "text.txt", "--steps 100")


def test_the_variable_of_the_device_chooses_by_index_and_part_of_the_name_and_lists_what_there_is(f):
    names = re.findall(r"^device \d+ +(.+), (?:cpu|integrated|discrete), \d+ ", f.run("info").succeeded().out, re.M)
    assert names, "isotope-info names no device"
    for chosen in ("0", names[0][:6]):
        f.train("--steps", "1", env={"ISOTOPE_DEVICE": chosen}).succeeded()
    for unknown in ("voodoo", str(len(names))):
        f.train("--steps", "1", env={"ISOTOPE_DEVICE": unknown}).refused(2, f"no device '{unknown}'", f"0 {names[0]}")
        f.run("mlp", env={"ISOTOPE_DEVICE": unknown}).refused(2, f"no device '{unknown}'", f"0 {names[0]}")


def test_fields_that_do_not_fit_together_are_refused(f):
    f.train("--heads", "3").refused(2, "heads", "3", "16")
    f.train("--length", "17").refused(2, "length", "17", "16")
    f.train("--schedule", "sawtooth").refused(2, "sawtooth", "cosine")
    f.train("--update", "within").refused(2, "within", "within_backward")
    f.train("--update", "within_backward").refused(2, "training.update", "--clip 0")
    f.train("--update", "within_backward", "--clip", "0", "--accumulate", "2").refused(2, "training.update", "--accumulate 1")
    f.train("--recompute", "some").refused(2, "training.recompute", "some", "cheap")
    f.train("--head-chunks", "-1").refused(2, "training.head_chunks", "at least 0")
    f.train("--vocab", "300").refused(2, "input.vocab", "300", "--data tokens")
    f.train("--resume").refused(2, "--checkpoint-dir")
    f.train("--checkpoint-every", "2").refused(2, "--checkpoint-dir")


def test_numbers_that_single_precision_does_not_hold_are_refused(f):
    f.train("--epsilon", "1e-60").refused(2, "training.epsilon", "1e-60", "single precision")
    f.train("--learning-rate", "1e-40").refused(2, "training.learning_rate", "1e-40")
    f.train("--beta2", "0.9999999999").refused(2, "training.beta2", "0.9999999999")
    f.train("--epsilon", "nan").refused(2, "epsilon")


def test_a_missing_text_is_named(f):
    f.train("--text", "nowhere.txt").refused(2, "nowhere.txt", "no such file")


def test_an_empty_text_is_refused(f):
    f.train("--text", f.write("empty", "")).refused(2, "empty")


def test_a_short_text_says_how_long_it_must_be(f):
    f.train("--text", f.write("short", "hello")).refused(2, "short", "17")


def test_an_unreadable_text_is_refused(f):
    (f.path / "folder").mkdir()
    f.train("--text", "folder").refused(2, "folder")


def test_text_that_is_not_utf8_names_the_byte_and_works_as_bytes(f):
    f.write("binary", TEXT.encode() + b"\xff\xfe" + TEXT.encode())
    f.train("--text", "binary").refused(2, "binary", str(len(TEXT.encode())))
    f.train("--text", "binary", "--data", "byte", "--steps", "1").succeeded()


def test_a_token_file_needs_whole_known_tokens(f):
    f.write("tokens", bytes(range(200)))
    f.train("--text", "tokens", "--data", "tokens", "--vocab", "100").refused(2, "tokens", "vocabulary")
    f.write("odd", b"\0" * 4001)
    f.train("--text", "odd", "--data", "tokens", "--vocab", "100").refused(2, "odd", "4001")
    f.write("good", b"\1\0\2\0" * 1000)
    f.train("--text", "good", "--data", "tokens", "--vocab", "100", "--steps", "1").succeeded()


def test_toml_errors_name_file_and_line(f):
    f.write("broken.toml", "[training]\nsteps = 3\nbatch = = 4\n")
    f.train("--config", "broken.toml").refused(2, "broken.toml:3")
    f.write("unknown.toml", "[training]\nstepz = 3\n")
    f.train("--config", "unknown.toml").refused(2, "unknown.toml:2", "did you mean 'training.steps'?")
    f.write("type.toml", '[training]\nsteps = "three"\n')
    f.train("--config", "type.toml").refused(2, "type.toml:2", "training.steps")
    f.write("range.toml", "[training]\nsteps = 0\n")
    f.train("--config", "range.toml").refused(2, "range.toml:2", "training.steps")
    f.train("--config", "missing.toml").refused(2, "missing.toml")
    f.train("--config", f.write("config.ini", "")).refused(2, "config.ini", ".toml")


def test_variables_are_checked_like_files(f):
    f.train(env={"ISOTOPE_TRAINING_STEPZ": "3"}).refused(2, "ISOTOPE_TRAINING_STEPZ", "did you mean 'ISOTOPE_TRAINING_STEPS'?")
    f.train(env={"ISOTOPE_TRAINING_STEPS": "x"}).refused(2, "ISOTOPE_TRAINING_STEPS", "'x'")


def test_output_files_that_cannot_be_written_are_refused_before_training(f):
    f.train("--json", "no/where/out.jsonl").refused(2, "no/where/out.jsonl")
    f.train("--plot", "no/where/plot.svg").refused(2, "no/where/plot.svg")


def test_a_folder_with_checkpoints_is_not_overwritten_by_a_fresh_run(f):
    f.train("--steps", "2", "--checkpoint-dir", "run").succeeded()
    before = f.checkpoint("run", 2)
    f.train("--steps", "2", "--checkpoint-dir", "run").refused(2, "run", "step 2", "--resume")
    assert f.checkpoint("run", 2) == before


def test_nothing_to_resume_from_is_refused(f):
    f.train("--checkpoint-dir", "empty", "--resume").refused(2, "empty", "no checkpoint")
    assert not (f.path / "empty").exists()


def test_a_checkpoint_of_another_model_size_or_text_is_refused(f):
    f.train("--steps", "2", "--checkpoint-dir", "run").succeeded()
    f.train("--width", "32", "--checkpoint-dir", "run", "--resume").refused(2, "16", "32")
    f.run("train", "--size", "char-gpt", "--checkpoint-dir", "run", "--resume").refused(2, "debug-tiny", "char-gpt")
    f.train("--text", f.write("other", TEXT + "?"), "--checkpoint-dir", "run", "--resume").refused(2, "vocabulary")
    f.train("--text", f.write("turned", TEXT[::-1]), "--checkpoint-dir", "run", "--resume").refused(2, "the checkpoint's text (hash ")
    f.train("--steps", "3", "--checkpoint-dir", "run", "--resume").succeeded()


def test_a_truncated_checkpoint_is_refused_at_every_length_tried(f):
    f.train("--steps", "2", "--checkpoint-dir", "run").succeeded()
    name = "run/step-00000002.safetensors"
    whole = f.read(name)
    header = 8 + int.from_bytes(whole[:8], "little")
    lengths = [0, 1, 7, 8, 9, header // 2, header - 1, header, header + 1, len(whole) // 2, len(whole) - 1]
    for length in lengths:
        f.write(name, whole[:length])
        f.train("--checkpoint-dir", "run", "--resume").refused(2, "run")
        f.run("generate", "--checkpoint", name).refused(2, name)
    f.write(name, whole)
    f.train("--checkpoint-dir", "run", "--resume").succeeded()


def test_a_damaged_checkpoint_is_refused_and_an_older_one_is_taken(f):
    f.train("--steps", "4", "--checkpoint-dir", "run", "--checkpoint-every", "2").succeeded()
    name = "run/step-00000004.safetensors"
    whole = f.read(name)
    for at in (3, 100, len(whole) - 3):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        f.write(name, bytes(damaged))
        f.run("generate", "--checkpoint", name).refused(2, name)
        f.write(name, bytes(damaged))
        done = f.train("--checkpoint-dir", "run", "--resume")
        assert done.code == 0 and "skipped" in done.err and "resumed after step 2" in done.out, (done.err, done.out)
        assert f.read(name) == whole


def test_a_checkpoint_of_another_version_is_refused(f):
    f.train("--steps", "2", "--checkpoint-dir", "run").succeeded()
    name = "run/step-00000002.safetensors"
    whole = f.read(name)
    other = whole.replace(b'"version":"1"', b'"version":"9"')
    assert other != whole
    f.write(name, other)
    f.run("generate", "--checkpoint", name).refused(2, name)


def test_a_memory_budget_is_kept_before_any_allocation(f):
    f.run("train", "--size", "char-gpt", "--text", "text", "--length", "64", "--memory-mib", "1").refused(1, "budget")


def test_a_non_finite_loss_names_the_step_and_keeps_the_last_good_checkpoint(f):
    f.train("--steps", "3", "--warmup", "0", "--checkpoint-dir", "run").succeeded()
    before = f.checkpoint("run", 3)
    done = f.train("--steps", "30", "--warmup", "0", "--learning-rate", "1e29", "--min-learning-rate", "1e29", "--checkpoint-dir", "run", "--resume",
                   "--checkpoint-every", "1")
    assert done.code == 1 and done.err.count("\n") == 1 and "step " in done.err, (done.code, done.err, done.out[-300:])
    assert f.checkpoint("run", 3) == before
    f.train("--steps", "4", "--checkpoint-dir", "run", "--resume").succeeded()


def test_generate_refuses_bad_options_and_prompts(f):
    f.train("--steps", "2", "--checkpoint-dir", "run").succeeded()
    f.run("generate").refused(2, "--checkpoint")
    f.run("generate", "--checkpoint", "nowhere").refused(2, "nowhere")
    f.run("generate", "--checkpoint", "text").refused(2, "text")
    f.run("generate", "--checkpoint", "run", "--prompt", "\N{SNOWMAN}").refused(2, "\N{SNOWMAN}")
    f.run("generate", "--checkpoint", "run", "--temperature", "-1").refused(2, "--temperature")
    f.run("generate", "--checkpoint", "run", "--top-p", "0").refused(2, "--top-p")
    f.run("generate", "--checkpoint", "run", "--tokenz", "0").refused(2, "--tokens")


if __name__ == "__main__":
    main(globals())
