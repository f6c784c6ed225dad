"""A full disk or a killed process never destroys the previous checkpoint."""

import json
import os
import random
import re
import resource
import signal
import stat
import time

from program import PROGRAMS, main

RUN = ["--steps", "12", "--checkpoint-every", "1", "--warmup", "2", "--keep", "2", "--checkpoint-dir"]


def test_a_full_disk_leaves_the_previous_checkpoint_valid(f):
    f.train(*RUN, "whole").succeeded()
    f.train(*RUN, "run", "--stop-after", "4").succeeded()
    before = {name: f.read(f"run/{name}") for name in f.names("run") if name.endswith(".safetensors")}

    # A limit on file sizes emulates a full disk: the write that exceeds it fails, and the signal that would end the process is ignored.
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    f.train(*RUN, "run", "--resume", preexec_fn=limit).refused(1, "run/step-00000005.safetensors", "previous", "ulimit -f")
    after = {name: f.read(f"run/{name}") for name in f.names("run") if name not in ("loss.svg", "writer.lock")}
    assert after == before, (sorted(before), sorted(after))
    f.train(*RUN, "run", "--resume").succeeded()
    assert f.checkpoint("run", 12) == f.checkpoint("whole", 12)


def figures(f, log):
    """The losses of a log by step, and its last event. A run that goes on describes itself and its plan again, which is left out."""
    events = [e for e in map(json.loads, f.read(log).decode().splitlines()) if e["event"] not in ("run", "arena", "kernels")]
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
        f.run("generate", "--checkpoint", "run", "--tokens", "1")  # reads the newest checkpoint
        f.train("--checkpoint-dir", "run", "--resume", "--print-config")
    second = f.train(*RUN, "run", "--resume")
    rest = process.communicate()[0]
    assert process.returncode == 0, rest
    if second.code != 0:  # unless the first had ended by then
        second.refused(1, "run", f"process {process.pid} ")
    assert f.checkpoint("run", 12) == f.checkpoint("whole", 12)


def begun(f, folder):
    """The flags that continue a run: --resume if it has saved a step."""
    return ["--resume"] if (f.path / folder).exists() and any(re.fullmatch(r"step-\d+\.safetensors", n) for n in f.names(folder)) else []


def test_a_run_that_is_killed_again_and_again_ends_with_the_bytes_of_one_that_was_not(f):
    """Kills runs by signal 9 at random moments, one after another, 50 times (5 with a software driver); then lets the run end."""
    f.train(*RUN, "whole").succeeded()
    begin = time.monotonic()
    f.train(*RUN, "timed").succeeded()
    lasts = time.monotonic() - begin
    moments = random.Random(20261123)
    run, kills = 0, 0
    wanted = 50 if lasts < 1 else 5
    while kills < wanted:
        folder = f"run-{run}"
        process = f.start(*RUN, folder, *begun(f, folder))
        time.sleep(moments.uniform(0, 1.2 * lasts))
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), (kills, process.returncode, err)
        kills += process.returncode != 0
        if process.returncode == 0 or kills == wanted:
            f.train(*RUN, folder, *begun(f, folder)).succeeded()
            assert f.checkpoint(folder, 12) == f.checkpoint("whole", 12), (run, kills)
            left = [name for name in f.names(folder) if "writing" in name]
            assert left == [], left
            run += 1


def another_user(f):
    """A function that makes a child process run as a user other than root, to whom permissions apply; the folder becomes that user's. None if that user
    cannot access the programs, or if it is not needed."""
    folders = [*PROGRAMS.resolve().parents, PROGRAMS.resolve(), *f.path.parents]
    if os.geteuid() != 0 or not all(folder.stat().st_mode & stat.S_IXOTH for folder in folders):
        return None
    os.chmod(f.path, 0o755)
    for path in [f.path, *f.path.rglob("*")]:
        os.chown(path, 65534, 65534)

    def become():
        os.setgid(65534)
        os.setuid(65534)

    return become


def test_a_folder_that_may_not_be_written_is_refused_before_training(f):
    f.train(*RUN, "run", "--stop-after", "2").succeeded()
    before = {name: f.read(f"run/{name}") for name in f.names("run") if name.endswith(".safetensors")}
    f.write("file", "")
    f.train(*RUN, "file/new").refused(1, "file/new")  # a file in place of a folder is an error for root, too
    become = another_user(f)
    if become or os.geteuid() != 0:
        os.chmod(f.path / "run", 0o555)
        f.train(*RUN, "run", "--resume", preexec_fn=become).refused(1, "run")
        f.train(*RUN, "run/new", preexec_fn=become).refused(1, "run/new")
    os.chmod(f.path / "run", 0o755)
    assert {name: f.read(f"run/{name}") for name in before} == before


def test_a_device_or_a_pipe_in_the_place_of_a_file_stays_what_it_is(f):
    os.mkfifo(f.path / "pipe")
    f.run("generate", "--checkpoint", "pipe", timeout=60).refused(2, "pipe")
    assert stat.S_ISFIFO(os.stat(f.path / "pipe").st_mode)
    os.symlink("/dev/full", f.path / "full.svg")
    done = f.train("--steps", "3", "--plot", "full.svg")
    assert done.code == 1 and "full.svg" in done.err and done.err.count("\n") == 1, (done.code, done.err)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode) and os.readlink(f.path / "full.svg") == "/dev/full"
    os.symlink("/dev/null", f.path / "null.svg")
    f.train("--steps", "3", "--plot", "null.svg").succeeded()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode) and os.readlink(f.path / "null.svg") == "/dev/null"


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
