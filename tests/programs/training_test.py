"""The output of training runs, which must be the same if a run is stopped and resumed."""

import fcntl
import json
import math
import os
import pty
import re
import signal
import struct
import termios
import xml.etree.ElementTree

from program import ENVIRONMENT, TINY, main, skip

RUN = ["--steps", "12", "--eval-every", "4", "--checkpoint-every", "5", "--warmup", "2", "--accumulate", "2", "--dropout", "0.1", "--checkpoint-dir"]


def events(f, name):
    return [json.loads(line) for line in f.read(name).decode().splitlines()]


def test_json_lines_have_the_documented_keys_in_order(f):
    f.train(*RUN, "run", "--json", "out.jsonl").succeeded()
    keys = {
        "run": ["event", "step", "program", "title", "parameters", "settings"],
        "arena": ["event", "step", "bytes", "launches", "regions", "parts", "tensors"],
        "step": ["event", "step", "loss", "grad_norm", "lr", "ms", "tokens_per_s"],
        "eval": ["event", "step", "val_loss"],
        "done": ["event", "steps", "val_loss", "best_val_loss", "seconds", "planned_bytes", "measured_bytes"],
    }
    seen = events(f, "out.jsonl")
    for event in seen:
        assert list(event) == keys[event["event"]], event
    assert [e["step"] for e in seen if e["event"] == "step"] == list(range(1, 13))
    evals = [e for e in seen if e["event"] == "eval"]
    assert [e["step"] for e in evals] == [4, 8, 12]
    done = seen[-1]
    assert done["event"] == "done" and done["steps"] == 12
    assert done["val_loss"] == evals[-1]["val_loss"] and done["best_val_loss"] == min(e["val_loss"] for e in evals)


def test_planned_bytes_are_what_is_measured(f):
    run = f.run("train", "--size", "char-gpt-cpu", "--text", "text", "--steps", "1", "--batch", "2", "--json", "out.jsonl").succeeded()
    done = events(f, "out.jsonl")[-1]
    assert abs(done["planned_bytes"] / done["measured_bytes"] - 1) <= 0.05, done
    planned, whole = re.search(r"([\d.]+) MiB planned(?:, ([\d.]+) MiB with what was in use before)?\n", run.out).groups()
    assert abs(float(planned) - done["planned_bytes"] / 2**20) <= 0.1, run.out
    assert whole is None or float(whole) > float(planned), run.out


def test_the_loss_falls_and_starts_near_the_logarithm_of_the_vocabulary(f):
    done = f.run("train", "--size", "debug-tiny", "--text", "text", "--steps", "60", "--threads", "1", "--json", "out.jsonl").succeeded()
    vocabulary = int(re.search(r"vocabulary (\d+)", done.out).group(1))
    losses = [e["loss"] for e in events(f, "out.jsonl") if e["event"] == "step"]
    # With small initial weights the guess is nearly uniform; 0.15 allows for their variance.
    assert abs(losses[0] - math.log(vocabulary)) <= 0.15, (losses[0], vocabulary)
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5]), losses


def test_a_stopped_and_resumed_run_has_the_bytes_of_an_uninterrupted_one(f):
    f.train(*RUN, "whole", "--json", "whole.jsonl").succeeded()
    for stop in (5, 7, 8):
        name = f"parts-{stop}"
        done = f.train(*RUN, name, "--stop-after", stop, "--json", f"{name}.jsonl").succeeded()
        assert f"stopped after step {stop}" in done.out, done.out
        f.train(*RUN, name, "--resume", "--json", f"{name}.jsonl").succeeded()
        for file in ("step-00000012.safetensors", "best.safetensors"):
            assert f.read(f"{name}/{file}") == f.read(f"whole/{file}"), (stop, file)
        figures = lambda log: [(e["step"], e["loss"], e["grad_norm"], e["lr"]) for e in events(f, log) if e["event"] == "step"]
        assert figures(f"{name}.jsonl") == figures("whole.jsonl"), stop
        assert f.read(f"{name}/loss.svg") == f.read("whole/loss.svg"), stop


def test_a_resumed_run_needs_no_flag_but_the_folder_and_the_text(f):
    f.train(*RUN, "whole").succeeded()
    f.train(*RUN, "parts", "--stop-after", "7").succeeded()
    f.run("train", "--text", "text", "--checkpoint-dir", "parts", "--resume", "--checkpoint-every", "5").succeeded()
    assert f.checkpoint("parts", 12) == f.checkpoint("whole", 12)


def test_one_two_and_three_threads_give_the_same_bytes(f):
    for threads in (1, 2, 3):
        f.train(*RUN, f"threads-{threads}", "--threads", threads).succeeded()
    for threads in (2, 3):
        assert f.checkpoint(f"threads-{threads}", 12) == f.checkpoint("threads-1", 12), threads


def test_updates_within_the_backward_pass_give_the_same_losses_in_less_memory(f):
    logs = {}
    for update in ("after_backward", "within_backward"):
        name = f"{update}.jsonl"
        # The width is chosen so that gradients need more memory than the layout of such a small model wastes.
        f.train("--width", "32", "--steps", "12", "--clip", "0", "--dropout", "0.1", "--update", update, "--checkpoint-dir", update, "--json", name).succeeded()
        logs[update] = events(f, name)
    after, within = logs["after_backward"], logs["within_backward"]
    losses = lambda log: [e["loss"] for e in log if e["event"] == "step"]
    assert len(losses(after)) == 12 and losses(after) == losses(within)
    assert after[-1]["val_loss"] == within[-1]["val_loss"]
    assert within[-1]["planned_bytes"] < after[-1]["planned_bytes"]
    # The norm of all gradients is rounded once to f32, 2^-24; the norms of tensors are rounded once each.
    for a, b in zip(after, within):
        assert a["event"] != "step" or abs(a["grad_norm"] / b["grad_norm"] - 1) <= 1e-6, (a, b)
    f.train("--width", "32", "--update", "within_backward", "--clip", "0", "--steps", "14", "--checkpoint-dir", "within_backward", "--resume").succeeded()


def test_the_newest_checkpoints_and_the_best_are_kept(f):
    f.train("--steps", "10", "--checkpoint-every", "2", "--keep", "2", "--eval-every", "5", "--checkpoint-dir", "run").succeeded()
    kept = [n for n in f.names("run") if n.endswith(".safetensors")]
    assert kept == ["best.safetensors", "step-00000008.safetensors", "step-00000010.safetensors"], kept


def test_an_interrupt_finishes_the_step_saves_and_exits_130(f):
    steps = ["--steps", "100000", "--warmup", "2", "--schedule", "constant", "--checkpoint-dir"]
    process = f.start(*steps, "run")
    for line in process.stdout:
        if line.startswith("step "):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, (process.returncode, err)
    assert err == "", err
    step = int(re.search(r"interrupted after step (\d+)", out).group(1))
    f.train(*steps, "whole", "--stop-after", step).succeeded()
    assert f.checkpoint("run", step) == f.checkpoint("whole", step)


def test_early_stopping_ends_with_exit_code_0(f):
    # With a rate of zero, the validation loss never improves.
    done = f.train("--steps", "50", "--learning-rate", "0", "--min-learning-rate", "0", "--eval-every", "2", "--patience", "3").succeeded()
    assert "stopped early after step 8" in done.out, done.out


def test_plain_lines_are_printed_to_a_pipe(f):
    out = f.train("--steps", "5").succeeded().out
    assert "\r" not in out and "\x1b" not in out
    assert re.search(r"^step 1/5  loss \d+\.\d{4}  norm ", out, re.M), out
    assert re.search(r"^finished after step 5  val loss ", out, re.M), out


def test_a_progress_bar_is_drawn_on_a_terminal(f):
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
    pid = os.fork()
    if pid == 0:
        os.chdir(f.path)
        for fd in (0, 1, 2):
            os.dup2(follower, fd)
        os.execve(f.command("train", [])[0], f.command("train", [*TINY, "--steps", "20"]), ENVIRONMENT)
    os.close(follower)
    out = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # Linux reports a closed terminal by this error
            break
        if not part:
            break
        out += part
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, out
    bars = [line for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[K", "", out.decode())) if "ETA" in line]
    assert bars and all(len(bar) < 90 for bar in bars), bars
    assert re.search(r"100% \[=+\] 20/20  loss \d+\.\d{4}.* tok/s  ETA 0:00$", bars[-1]), bars[-1]


def test_the_plot_is_well_formed_and_shows_both_curves(f):
    f.train("--steps", "8", "--eval-every", "2", "--plot", "loss.svg").succeeded()
    root = xml.etree.ElementTree.fromstring(f.read("loss.svg"))
    kinds = [e.get("class") for e in root.iter("{http://www.w3.org/2000/svg}path")]
    assert kinds == ["train", "validation"], kinds


def test_print_config_names_the_layer_of_every_field(f):
    f.write("run.toml", "[training]\nsteps = 7\nbatch = 3\n")
    out = f.train("--config", "run.toml", "--print-config", env={"ISOTOPE_TRAINING_BATCH": "5", "ISOTOPE_TRAINING_SEED": "6"}).succeeded().out
    rows = {line.split()[0]: line.split(None, 2)[1:] for line in out.splitlines()}
    assert rows["training.steps"] == ["7", "run.toml:2"], rows
    assert rows["training.batch"] == ["2", "flag --batch"], rows
    assert rows["training.seed"] == ["6", "variable ISOTOPE_TRAINING_SEED"], rows
    assert rows["training.warmup"] == ["10", "size debug-tiny"], rows


def test_help_lists_the_sizes_and_describes_every_field(f):
    out = f.run("train", "--help").succeeded().out
    for size in ("gpt2-124m", "gpt2-355m", "gpt2-774m", "gpt2-1558m", "char-gpt", "char-gpt-cpu", "debug-tiny"):
        assert f"\n  {size}" in out, size
    fields = [line for line in out.splitlines() if line.startswith("  --")]
    assert len(fields) > 30
    for line in fields:
        assert len(re.split(r"\s{2,}", line.strip())) >= 2, f"no description: {line}"


def test_version_says_what_was_built(f):
    first = f.run("info", "--version").succeeded().out.split()[1]
    assert re.fullmatch(r"\d+\.\d+\.\d+([~+][a-z0-9.+]+)?", first), first
    for name in ("train", "generate", "info"):
        out = f.run(name, "--version").succeeded().out
        assert out.startswith(f"isotope-{name} {first}\n"), out
        for key in ("backend", "precision", "compiler", "commit"):
            assert re.search(rf"^{key}\s+\S", out, re.M), (name, key, out)


def test_weights_in_f16_are_refused_by_builds_for_another_precision_than_f32(f):
    if "PRECISION=f32" in f.run("info", "--version").out:
        skip("this build is for f32")
    f.train("--steps", "6", "--checkpoint-dir", "run").succeeded()
    f.run("generate", "--checkpoint", "run", "--tokens", "20", "--f16-weights").refused(2, "--f16-weights", "f32 builds")


def test_generate_stores_weights_in_f16_on_request_and_nothing_else_does(f):
    if "PRECISION=f32" not in f.run("info", "--version").out:
        skip("this build is not for f32")
    f.train("--steps", "6", "--checkpoint-dir", "run").succeeded()
    make = lambda *more, **kw: f.run("generate", "--checkpoint", "run", "--tokens", "20", "--prompt", "7 bottles", *more, **kw)
    wide = make("--step-list", "wide").succeeded().out
    narrow = make("--step-list", "narrow", "--dispatch-report", "report", env={"ISOTOPE_F16_WEIGHTS": "1"}).succeeded().out
    assert len(wide) == len(narrow) and narrow.startswith("7 bottles")
    size = lambda name: int(re.search(r"^region\tparam\t\d+\t(\d+)$", f.read(name).decode(), re.M).group(1))
    formats = lambda name: re.findall(r"^in\t.*\tparam\t.*$", f.read(name).decode(), re.M)
    assert size("narrow") < 0.75 * size("wide"), (size("narrow"), size("wide"))
    assert sum("\tf16\t" in line for line in formats("narrow")) == 7, formats("narrow")  # four products per block, the head, two embeddings
    assert not any("\tf16\t" in line for line in formats("wide"))
    make("--weights", "int3").refused(2, "flag --weights", "is 'int3'", "give f32, f16, bf16, q8_0 or q4_0")
    for name in ("train", "parity", "mlp"):
        f.run(name, "--weights", "q8_0").refused(2, "flag --weights", "isotope-generate")
        f.run(name, "--f16-weights").refused(2, "flag --f16-weights", "isotope-generate")
        f.run(name, env={"ISOTOPE_F16_WEIGHTS": "1"}).refused(2, "variable ISOTOPE_F16_WEIGHTS", "isotope-generate")


def test_generate_is_a_function_of_seed_and_options(f):
    f.train("--steps", "20", "--checkpoint-dir", "run").succeeded()
    make = lambda *more: f.run("generate", "--checkpoint", "run", "--tokens", "40", "--prompt", "7 bottles", *more).succeeded().out
    first = make()
    assert first.startswith("7 bottles") and len(first) == len("7 bottles") + 41, first
    assert make() == first
    assert make("--seed", "2") != first
    greedy = make("--temperature", "0")
    assert make("--temperature", "0", "--seed", "2") == greedy
    assert make("--top-k", "1", "--seed", "3") == greedy
    assert f.run("generate", "--checkpoint", "run/best.safetensors", "--tokens", "3").succeeded().out


def test_the_mlp_learns_the_spirals(f):
    out = f.run("mlp").succeeded().out
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", out)]
    assert losses[-1] < 0.1 * losses[0], out
    assert float(re.search(r"accuracy (\S+) %", out).group(1)) >= 98, out
    f.run("mlp", "--fast").refused(2, "--fast")


def test_a_loop_written_by_hand_fits(f):
    out = f.run("regression").succeeded().out
    losses = [float(loss) for loss in re.findall(r"^step +\d+  loss ([0-9.]+)$", out, re.M)]
    assert len(losses) == 5 and losses[-1] < losses[0] / 100, out


if __name__ == "__main__":
    main(globals())
