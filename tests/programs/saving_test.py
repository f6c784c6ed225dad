"""A full disk or a killed process never costs the checkpoint that was there before."""

import json
import resource
import signal

from program import main

RUN = ["--steps", "12", "--checkpoint-every", "1", "--warmup", "2", "--keep", "2", "--checkpoint-dir"]


def test_a_full_disk_leaves_the_previous_checkpoint_valid(f):
    f.train(*RUN, "whole").succeeded()
    f.train(*RUN, "run", "--stop-after", "4").succeeded()
    before = {name: f.read(f"run/{name}") for name in f.names("run") if name.endswith(".safetensors")}

    # A limit on the size of files stands for the full disk: the write that crosses it fails, and the signal that would end the process is ignored.
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    f.train(*RUN, "run", "--resume", preexec_fn=limit).refused(1, "run/step-00000005.safetensors", "previous", "ulimit -f")
    after = {name: f.read(f"run/{name}") for name in f.names("run") if name not in ("loss.svg", "writer.lock")}
    assert after == before, (sorted(before), sorted(after))
    f.train(*RUN, "run", "--resume").succeeded()
    assert f.checkpoint("run", 12) == f.checkpoint("whole", 12)


def figures(f, log):
    """The losses of a log by step, and how it ends."""
    events = [json.loads(line) for line in f.read(log).decode().splitlines()]
    return [(e["event"], e["step"], e.get("loss", e.get("val_loss"))) for e in events[:-1]], events[-1]["event"]


def test_a_process_killed_while_saving_can_be_resumed(f):
    f.train(*RUN, "whole", "--json", "whole.jsonl").succeeded()
    for saves in (1, 2, 4, 7):
        folder = f"killed-{saves}"
        process = f.start(*RUN, folder, "--json", f"{folder}.jsonl")
        seen = 0
        for line in process.stdout:
            seen += line.startswith("saved step")
            if seen == saves:
                break
        process.kill()
        process.communicate()
        done = f.train(*RUN, folder, "--resume", "--json", f"{folder}.jsonl")
        assert done.code == 0 and done.err == "", (saves, done.code, done.err)
        assert f.checkpoint(folder, 12) == f.checkpoint("whole", 12), saves
        assert figures(f, f"{folder}.jsonl") == figures(f, "whole.jsonl"), saves
        left = [name for name in f.names(folder) if "writing" in name]
        assert left == [], left


def test_readers_beside_a_running_job_leave_it_alone_and_a_second_writer_is_refused(f):
    f.train(*RUN, "whole").succeeded()
    process = f.start(*RUN, "run")
    for line in process.stdout:
        if line.startswith("saved step"):
            break
    for _ in range(5):
        f.run("generate", "--checkpoint", "run", "--tokens", "1")  # reads whichever checkpoint is the newest
        f.train("--checkpoint-dir", "run", "--resume", "--print-config")
    second = f.train(*RUN, "run", "--resume")
    rest = process.communicate()[0]
    assert process.returncode == 0, rest
    if second.code != 0:  # unless the first had ended by then
        second.refused(1, "run", f"process {process.pid} ")
    assert f.checkpoint("run", 12) == f.checkpoint("whole", 12)


def test_a_resumed_run_says_what_it_does_otherwise(f):
    f.train(*RUN, "run", "--stop-after", "3").succeeded()
    done = f.train(*RUN, "run", "--resume", "--seed", "9", "--learning-rate", "0.5", "--stop-after", "1")
    assert done.code == 0 and done.err == "", done.err
    said = [line for line in done.out.splitlines() if "otherwise" in line]
    assert len(said) == 1 and "training.seed is 9, was " in said[0] and "training.learning_rate is 0.5, was " in said[0], done.out


def test_a_torn_temporary_of_a_killed_writer_is_ignored_and_removed(f):
    f.train(*RUN, "run", "--stop-after", "3").succeeded()
    f.write("run/step-00000004.safetensors.writing-1-0", f.checkpoint("run", 3)[:100])
    done = f.train(*RUN, "run", "--resume").succeeded()
    assert "resumed after step 3" in done.out, done.out
    assert not [name for name in f.names("run") if "writing" in name]


if __name__ == "__main__":
    main(globals())
