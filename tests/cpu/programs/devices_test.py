"""Training on several devices, which on the processor are threads of one process, or processes that are connected by TCP."""

import json
import os
import re
import signal
import socket
import statistics
import struct
import subprocess

from program import ENVIRONMENT, main

# Four rows a step, so that two or four devices have rows of their own; dropout must drop the same everywhere.
RUN = ["--batch", "4", "--steps", "12", "--eval-every", "5", "--warmup", "2", "--dropout", "0.1"]
ENDLESS = ["--batch", "4", "--steps", "1000000", "--eval-every", "0", "--warmup", "2", "--schedule", "constant"]


def figures(f, log):
    """Loss and norm of every step, and the validation losses."""
    events = [json.loads(line) for line in f.read(log).decode().splitlines()]
    return [(e.get("loss"), e.get("grad_norm"), e.get("val_loss")) for e in events if e["event"] in ("step", "eval")]


def trained(f, name, *more):
    f.train(*RUN, "--json", f"{name}.jsonl", *more).succeeded()
    return figures(f, f"{name}.jsonl")


def expect_close(f, a, b):
    """Sums of rows are taken in another order: a few roundings to f32, 2^-24 each, or in bf16 2^-8, on numbers near 1, which the optimizer magnifies over 12 steps."""
    tolerance = 1e-5 if "PRECISION=f32" in f.run("info", "--version").out else 3e-2
    assert len(a) == len(b) == 15, (len(a), len(b))
    for x, y in zip(a, b):
        for p, q in zip(x, y):
            assert (p is None) == (q is None) and (p is None or abs(p - q) <= tolerance * abs(q)), (x, y)


def addresses(ranks):
    """Ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(ranks)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    at = ",".join(f"127.0.0.1:{s.getsockname()[1]}" for s in sockets)
    for s in sockets:
        s.close()
    return at


def start(f, ranks, *arguments, only=None):
    """Starts a process for each rank; only[r] are arguments of rank r alone."""
    at = addresses(ranks)
    return [f.start(*arguments, "--ranks", at, "--rank", r, *(only or {}).get(r, [])) for r in range(ranks)]


def ended(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def wait_for_steps(process):
    assert any(line.startswith("step") for line in process.stdout), process.stderr.read()


def one_line(err):
    assert err.startswith("isotope-train: ") and err.count("\n") == 1, err
    return err


def test_two_and_four_devices_train_as_one_on_all_rows(f):
    one = trained(f, "one")
    for name, mesh in {"data": [2, 1], "tensor": [2, 2], "both": [4, 2], "accumulated": [2, 1, "--accumulate", "2"]}.items():
        several = trained(f, name, "--devices", mesh[0], "--tensor", *mesh[1:])
        expect_close(f, several, trained(f, "micro", *mesh[2:]) if mesh[2:] else one)


def test_the_optimizers_state_is_divided_without_changing_a_bit(f):
    for mesh in (["--devices", "2"], ["--devices", "4", "--tensor", "2"]):
        whole, divided = trained(f, "whole", *mesh), trained(f, "divided", *mesh, "--zero", "1")
        assert whole == divided, mesh
        done = [json.loads(f.read(f"{name}.jsonl").decode().splitlines()[-1]) for name in ("whole", "divided")]
        assert done[1]["event"] == "done" and done[1]["steps"] == 12


def test_console_and_log_say_how_the_devices_are_arranged(f):
    done = f.train(*RUN, "--devices", "4", "--tensor", "2", "--zero", "1", "--json", "log", "--plot", "loss.svg", "--profile", "profile").succeeded()
    assert "4 devices: data 2, tensor 2, zero 1, as threads of this process, communicator threads" in done.out, done.out
    assert re.search(r"^finished after step 12 ", done.out, re.M), done.out
    first = next(e for e in map(json.loads, f.read("log").decode().splitlines()) if e["event"] == "mesh")
    assert first == {"event": "mesh", "step": 0, "devices": 4, "data": 2, "tensor": 2, "zero": 1, "ranks": "threads", "communicator": "threads"}, first
    assert b"<svg" in f.read("loss.svg") and b"step\t12" in f.read("profile")
    verbose = f.train("--batch", "4", "--steps", "1", "--devices", "2", "--verbose")
    assert verbose.code == 0 and "mesh of data 2, tensor 1; of the data group" in verbose.err, verbose.err


def test_the_page_shows_all_devices_and_the_memory_and_kernels_of_rank_0(f):
    for name, more in (("page", ["--report", "page.html", "--tensorboard", "board"]), ("plain", [])):
        f.train(*RUN, "--devices", "4", "--tensor", "2", *more, "--json", f"{name}.jsonl").succeeded()
    assert figures(f, "page.jsonl") == figures(f, "plain.jsonl")  # a step that is timed has the same bits
    events = [json.loads(line) for line in f.read("page.jsonl").decode().splitlines()]
    page = re.search(r'id="data">\n(.*?)</script>', f.read("page.html").decode(), re.S).group(1)
    assert json.loads(page)["runs"][0]["lines"] == events
    (arena,), (kernels,) = ([e for e in events if e["event"] == kind] for kind in ("arena", "kernels"))
    assert kernels["step"] == 2 and sum(k["times"] for k in kernels["launches"] if k["op"] != "copy") >= arena["launches"] > 0, kernels
    assert any(k["op"] == "all_reduce" and k["usec"] > 0 for k in kernels["launches"]), kernels
    (written,) = (f.path / "board").iterdir()
    assert written.stat().st_size > 12 * 40


def test_a_communicator_of_gpus_is_refused_where_devices_share_the_hosts_memory(f):
    f.train(*RUN, "--devices", "2", "--communicator", "direct").refused(1, "mesh.communicator", "is direct, and the devices of this build share the host's memory")
    f.train(*RUN, "--devices", "2", "--communicator", "mpi").refused(2, "mesh.communicator", "'mpi'", "nccl or direct")
    f.train(*RUN, "--communicator", "direct", "--ranks", "127.0.0.1:1,127.0.0.1:2").refused(2, "mesh.communicator", "processes")


def test_processes_give_the_bits_of_threads(f):
    threads = trained(f, "threads", "--devices", "2", "--zero", "1")
    processes = start(f, 2, *RUN, "--zero", "1", "--json", "processes.jsonl")
    for rank, process in enumerate(processes):
        code, out, err = ended(process)
        assert code == 0 and err == "", (rank, code, err)
        assert f"of which this process is rank {rank}" in out, out
    assert figures(f, "processes.jsonl") == threads


def test_a_stopped_and_resumed_run_has_the_bytes_of_an_uninterrupted_one(f):
    mesh = ["--devices", "4", "--tensor", "2", "--zero", "1"]
    f.train(*RUN, *mesh, "--checkpoint-dir", "whole", "--json", "whole.jsonl").succeeded()
    f.train(*RUN, *mesh, "--checkpoint-dir", "parts", "--stop-after", "7", "--json", "parts.jsonl").succeeded()
    # The checkpoint says on which mesh to go on.
    done = f.run("train", "--text", "text", "--threads", "1", "--checkpoint-dir", "parts", "--resume", "--json", "parts.jsonl").succeeded()
    assert "4 devices: data 2, tensor 2, zero 1" in done.out and "resumed after step 7" in done.out, done.out
    assert f.checkpoint("parts", 12) == f.checkpoint("whole", 12)
    assert figures(f, "parts.jsonl") == figures(f, "whole.jsonl")
    assert b'{"event":"mesh","step":7,' in f.read("parts.jsonl")


def test_a_run_goes_on_with_another_number_of_devices(f):
    whole = trained(f, "whole")
    for name, before, after in (("up", [], ["--devices", "2", "--tensor", "2"]), ("down", ["--devices", "2", "--tensor", "2"], ["--devices", "1"])):
        f.train(*RUN, *before, "--checkpoint-dir", name, "--stop-after", "7", "--json", f"{name}.jsonl").succeeded()
        done = f.train(*RUN, *after, "--checkpoint-dir", name, "--resume", "--json", f"{name}.jsonl").succeeded()
        assert "mesh.devices is" in done.out and "resumed after step 7" in done.out, done.out
        expect_close(f, figures(f, f"{name}.jsonl"), whole)
    assert f.run("generate", "--checkpoint", "up", "--tokens", "3").succeeded().out


def test_processes_save_and_resume_and_keep_the_last_checkpoint_when_one_is_killed(f):
    keeping = ["--checkpoint-dir", "run", "--checkpoint-every", "50"]
    processes = start(f, 2, *ENDLESS, *keeping)
    assert any("saved step 100" in line for line in processes[0].stdout)
    processes[1].kill()
    code, _, err = ended(processes[0])
    assert code == 1 and "rank 1 " in one_line(err), (code, err)
    ended(processes[1])
    newest = max(int(name[5:13]) for name in f.names("run") if name.startswith("step-"))
    assert newest >= 100 and newest % 50 == 0, newest
    for process in start(f, 2, *ENDLESS, *keeping, "--resume", "--stop-after", newest + 3):
        code, out, err = ended(process)
        assert code == 0 and err == "" and f"resumed after step {newest}" in out, (code, out, err)
    f.train(*ENDLESS, "--devices", "2", "--checkpoint-dir", "whole", "--stop-after", newest + 3).succeeded()
    assert f.checkpoint("run", newest + 3) == f.checkpoint("whole", newest + 3)


def test_a_model_of_a_folder_is_trained_on_several_devices(f):
    f.train(*RUN, "--devices", "2", "--save-hf", "model").succeeded()
    log = {}
    for name, mesh in (("one", []), ("two", ["--devices", "2", "--tensor", "2"])):
        done = f.run("train", "--from", "model", "--data", "char", "--text", "text", "--batch", "4", "--steps", "3", "--threads", "1", "--json", name, *mesh)
        assert done.code == 0 and "loaded " in done.out, (done.code, done.err)
        log[name] = [e[0] for e in figures(f, name) if e[0] is not None]
    for a, b in zip(log["one"], log["two"]):
        assert abs(a - b) <= 3e-2 * b, log
    f.train("--devices", "2", "--tensor", "2", "--save-hf", "more").refused(2, "flag --save-hf", "data 1, tensor 2", "--devices 1")


def tensors(file):
    """The numbers of a safetensors file by name."""
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8:8 + size])
    header.pop("__metadata__", None)
    return {name: struct.unpack(f"<{(t['data_offsets'][1] - t['data_offsets'][0]) // 4}f", file[8 + size:][slice(*t["data_offsets"])]) for name, t in header.items()}


def test_adapters_are_trained_on_several_devices_and_saved_whole(f):
    f.train(*RUN, "--save-hf", "model").succeeded()
    lora = ["--from", "model", "--data", "char", "--text", "text", "--batch", "4", "--steps", "3", "--threads", "1", "--lora", "2", "--lora-targets", "all", "--learning-rate", "1e-2"]
    close = 1e-4 if "PRECISION=f32" in f.run("info", "--version").out else 0.1
    losses, saved = {}, {}
    for name, mesh in {"one": [], "data": ["--devices", 2], "zero": ["--devices", 2, "--zero", 1], "tensor": ["--devices", 4, "--tensor", 2, "--zero", 1]}.items():
        out = f.run("train", *lora, *mesh, "--json", name, "--save-adapters", f"{name}-adapters", "--checkpoint-dir", f"{name}-run").succeeded().out
        assert "in adapters of rank 2" in out and f"saved {name}-adapters for peft" in out, out
        losses[name] = [e[0] for e in figures(f, name) if e[0] is not None]
        saved[name] = tensors(f.read(f"{name}-adapters/adapter_model.safetensors"))
        assert f.read(f"{name}-adapters/adapter_config.json") == f.read("one-adapters/adapter_config.json")
    assert losses["zero"] == losses["data"] and saved["zero"] == saved["data"]
    for name in ("data", "tensor"):
        for a, b in zip(losses["one"], losses[name]):
            assert abs(a - b) <= close * b, losses
        assert saved[name].keys() == saved["one"].keys() and len(saved["one"]) == 8
        for tensor, numbers in saved["one"].items():
            largest = max(map(abs, numbers))
            assert largest > 0 and len(saved[name][tensor]) == len(numbers)
            # Updates of AdamW have the sizes of the rate, whatever the gradient is: a sum near zero may round to the other side.
            assert statistics.mean(abs(a - b) for a, b in zip(numbers, saved[name][tensor])) <= 10 * close * largest, (name, tensor)
    # Adapters are read in pieces, and a run that goes on has the numbers of its checkpoint.
    begun = {name: f.run("train", *lora[:2], *lora[2:-6], "--steps", "1", "--adapters", "tensor-adapters", *mesh, "--json", name).succeeded() and figures(f, name)[0][0]
             for name, mesh in (("from-one", []), ("from-two", ["--devices", 2, "--tensor", 2]))}
    assert abs(begun["from-one"] - begun["from-two"]) <= close * begun["from-one"], begun
    f.run("train", *lora, "--devices", "2", "--tensor", "2", "--save-hf", "more").refused(2, "flag --save-hf", "data 1, tensor 2", "--devices 1")
    out = f.run("train", *lora, "--devices", "2", "--save-hf", "merged").succeeded().out
    assert "saved merged for transformers" in out, out


def test_the_smoke_test_of_tensor_parallelism_passes_on_threads_and_processes(f):
    for devices in (2, 3):
        out = f.run("tp-smoke", "--devices", devices, "--threads", 1).succeeded().out
        assert re.findall(r"^rank (\d) of (\d): the sum of 1 over all ranks is (\d); loss (\S+), on one device \S+; ", out, re.M), out
        assert out.count(f"the sum of 1 over all ranks is {devices};") == devices and f"passed: {devices} devices" in out, out
    at = addresses(2)
    smoke = lambda rank: subprocess.Popen(f.command("tp-smoke", ["--threads", 1, "--ranks", at, "--rank", rank]), env=ENVIRONMENT, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True)
    processes = [smoke(0), smoke(1)]
    for rank, process in enumerate(processes):
        code, out, err = ended(process)
        assert code == 0 and out.startswith(f"rank {rank} of 2: ") and "passed" in out, (code, out, err)
    f.run("tp-smoke", "--devices", "1").refused(2, "--devices", "'1'")
    f.run("tp-smoke", "--rank", "1").refused(2, "mesh.rank", "--ranks")
    f.run("tp-smoke", "--device", "nowhere", "--devices", "2").refused(2, "no device 'nowhere'")
    f.run("tp-smoke", "--fast").refused(2, "no flag '--fast'")


def test_processes_of_other_settings_are_refused(f):
    for process in start(f, 2, *RUN, only={1: ["--learning-rate", "0.5"]}):
        code, _, err = ended(process)
        assert code == 2 and "settings, data and step" in one_line(err), (code, err)


def test_an_interrupt_of_one_rank_ends_all_at_the_same_step(f):
    processes = start(f, 2, *ENDLESS)
    wait_for_steps(processes[0])
    processes[1].send_signal(signal.SIGINT)
    (first, out, err), (second, _, other) = ended(processes[0]), ended(processes[1])
    assert first == 130 and second == 130 and err == "" and other == "", (first, second, err, other)
    assert re.search(r"^interrupted after step \d+", out, re.M), out
    threads = f.start(*ENDLESS, "--devices", "2")
    wait_for_steps(threads)
    threads.send_signal(signal.SIGINT)
    code, out, err = ended(threads)
    assert code == 130 and err == "" and re.search(r"^interrupted after step \d+", out, re.M), (code, err)


def test_a_killed_rank_ends_the_others_by_name(f):
    for killed in (0, 1):
        processes = start(f, 2, *ENDLESS)
        wait_for_steps(processes[0])
        processes[killed].kill()
        code, _, err = ended(processes[1 - killed])
        assert code == 1 and f"rank {killed} " in one_line(err), (code, err)
        ended(processes[killed])


def test_a_rank_that_hangs_ends_the_run_after_the_step_timeout(f):
    processes = start(f, 2, *ENDLESS, "--step-timeout", "1")
    wait_for_steps(processes[0])
    processes[1].send_signal(signal.SIGSTOP)
    code, _, err = ended(processes[0])
    assert code == 1 and re.search(r"step \d+ of rank 0 took longer than 1 s", one_line(err)), (code, err)
    processes[1].send_signal(signal.SIGCONT)
    code, _, err = ended(processes[1])
    assert code == 1 and one_line(err), (code, err)


def test_saving_that_hangs_ends_the_run_and_names_the_rank_that_hangs(f):
    # A pipe that nobody reads stands where the best checkpoint is written, so that opening it never returns.
    flags = ["--batch", "4", "--steps", "4", "--eval-every", "2", "--warmup", "1", "--step-timeout", "2", "--abort-deadline", "1", "--checkpoint-dir"]
    for folder in ("threads", "processes"):
        (f.path / folder).mkdir()
        os.mkfifo(f.path / folder / "best.safetensors")
    threads, processes = f.start(*flags, "threads", "--devices", "2"), start(f, 2, *flags, "processes")
    saving = "saving the best checkpoint, after step 2, on rank 0 "
    for process in (threads, processes[0]):
        code, _, err = ended(process)
        assert code == 1 and saving + "did not end within 1 s after its timeout: it was writing" in one_line(err), (code, err)
    code, _, err = ended(processes[1])
    assert code == 1 and re.search("rank 0 ended the group: " + saving + r"took longer than 2\.\d+ s: it was writing", one_line(err)), (code, err)


def test_a_step_that_does_not_end_after_its_group_ends_the_process(f):
    # A step of this size takes many times as long, and computes on when its group has ended.
    large = ["--width", "192", "--context", "64", "--length", "64", "--batch", "64", "--steps", "2", "--devices", "2"]
    late = {"ISOTOPE_TP_STEP_TIMEOUT_S": "0.01"}
    soon = late | {"ISOTOPE_TP_ABORT_DEADLINE_S": "0.01"}
    f.train(*large, env=soon).refused(1, "step 1 of rank", "did not end within 0.01 s after its timeout")
    f.train(*large, env=late).refused(1, "step 1, ", "step 1 of rank", "took longer than 0.01 s", "--step-timeout")
    f.train(*large, env=soon | {"ISOTOPE_TP_STEP_TIMEOUT_S": "x"}).refused(2, "variable ISOTOPE_TP_STEP_TIMEOUT_S")


def test_devices_that_do_not_divide_are_refused_with_the_numbers(f):
    f.train("--batch", "4", "--devices", "3").refused(2, "flag --batch", "is 4", "3 groups of 1 device", "a multiple of 3")
    f.train("--batch", "4", "--devices", "4", "--tensor", "3").refused(2, "flag --tensor", "is 3", "4 devices")
    f.train("--batch", "4", "--devices", "4", "--tensor", "4").refused(2, "2 heads", "tensor 4", "h.0.attn.c_attn")
    f.train("--zero", "1").refused(2, "flag --zero", "--devices")
    f.train("--devices", "2", "--zero", "2").refused(2, "flag --zero", "is 2")
    f.train("--devices", "0").refused(2, "flag --devices", "is 0")
    f.train("--devices", "2", "--step-timeout", "0").refused(2, "flag --step-timeout", "is 0")
    f.train("--devices", "2", "--update", "within_backward", "--clip", "0").refused(2, "flag --update", "after_backward")
    f.train("--devices", "2", "--trace", "trace.json").refused(2, "flag --devices", "one device alone")


def test_addresses_of_ranks_are_checked(f):
    f.train("--rank", "1").refused(2, "flag --rank", "--ranks")
    f.train("--ranks", "here").refused(2, "flag --ranks", "'here' has no port")
    f.train("--ranks", "here:1").refused(2, "flag --ranks", "1 address")
    f.train("--ranks", "here:1,there:1", "--devices", "3").refused(2, "flag --ranks", "2 addresses for 3 devices")
    f.train("--ranks", "here:1,there:1", "--rank", "2").refused(2, "flag --rank", "is 2", "2 addresses")
    f.train("--ranks", "here:1,here:1").refused(2, "ranks 0 and 1 are both at here:1")
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        f.train("--ranks", f"127.0.0.1:{port},127.0.0.1:1").refused(1, f"127.0.0.1:{port} is in use")


if __name__ == "__main__":
    main(globals())
