"""Event files for TensorBoard have the numbers of the JSON lines, at once; read here by a few lines, and by the package tensorboard where it is."""

import json
import math
import re
import resource
import struct

from program import main, skip

RUN = ["--steps", "12", "--eval-every", "4", "--warmup", "2"]
TAGS = {"loss": "loss/train", "grad_norm": "step/grad_norm", "lr": "step/lr", "tokens_per_s": "step/tokens_per_s", "val_loss": "loss/validation"}


def lines_of(f, name):
    return [json.loads(line) for line in f.read(name).decode().splitlines()]


def fields(message):
    """The fields of a protobuf message: number and value, which is an integer, bytes, or a number in f64 or f32."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            value = varint()
        elif key & 7 == 2:
            size = varint()
            value, at = message[at:at + size], at + size
        else:
            kind, size = {1: ("<d", 8), 5: ("<f", 4)}[key & 7]
            (value,), at = struct.unpack_from(kind, message, at), at + size
        yield key >> 3, value


def events_of(f, folder):
    """(file, step, what) of the records of a folder, in TensorBoard's order; what is the version, a dict of scalars, or the status of a session."""
    for name in f.names(folder):
        data, at = f.read(f"{folder}/{name}"), 0
        while at + 12 < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            if at + 16 + size > len(data):  # the kernel may cut the last write of a killed process
                break
            event = dict(fields(data[at + 12:at + 12 + size]))
            at += 16 + size
            assert event[1] > 1.7e9, (name, at, event)
            scalars = dict((tag.decode(), value) for tag, value in (dict(fields(v)).values() for _, v in fields(event.get(5, b""))))
            yield name, event[2], event.get(3, b"").decode() or scalars or dict(fields(event[7]))[1]


def rows_of(events):
    """(tag, step, value) of lines of a log, with values in f32; what JSON cannot hold is None."""
    single = lambda x: None if x is None else struct.unpack("<f", struct.pack("<f", x))[0]
    return sorted(((TAGS[key], e["step"], single(e[key])) for e in events for key in TAGS if e["event"] in ("step", "eval") and key in e), key=str)


def finite(rows):
    return sorted(((tag, step, value if math.isfinite(value) else None) for tag, step, value in rows), key=str)


def test_event_files_have_the_numbers_of_the_json_lines(f):
    f.train(*RUN, "--json", "log", "--tensorboard", "new/board").succeeded()
    events = list(events_of(f, "new/board"))
    assert len({name for name, _, _ in events}) == 1 and re.fullmatch(r"events\.out\.tfevents\.\d{10}\.isotope\.0", events[0][0]), events[0]
    assert events[0][1:] == (0, "brain.Event:2") and len(events) == 1 + 12 + 3
    assert finite((tag, step, x) for _, step, what in events[1:] for tag, x in what.items()) == rows_of(lines_of(f, "log"))
    wild = ["--warmup", "0", "--learning-rate", "1e29", "--min-learning-rate", "1e29", "--steps", "30", "--non-finite", "skip", "--eval-every", "0"]
    assert f.train(*wild, "--json", "log", "--tensorboard", "wild").code == 1
    rows = finite((tag, step, x) for _, step, what in list(events_of(f, "wild"))[1:] for tag, x in what.items())
    assert rows == rows_of(lines_of(f, "log")) and any(x is None for _, _, x in rows)


def killed_and_resumed(f):
    """Kills a run that is beyond a checkpoint and makes three steps after the last one; returns the step of that checkpoint. The run would take hours."""
    run = ["--steps", "10000000", "--eval-every", "45", "--checkpoint-every", "40", "--checkpoint-dir", "run", "--json", "log", "--tensorboard", "board"]
    with f.start(*run) as process:
        told = any(line.startswith("eval at step 45 ") for line in process.stdout)
        process.kill()
    events = list(events_of(f, "board"))
    steps = [step for _, step, what in events if "loss/train" in what]
    assert told and steps == list(range(1, len(steps) + 1)) and len(steps) >= 45, steps
    assert 45 in [step for _, step, what in events if "loss/validation" in what], "a record is in the file before its line is printed"
    saved = max(int(m.group(1)) for m in (re.fullmatch(r"step-(\d+)\.safetensors", name) for name in f.names("run")) if m)
    f.train(*run, "--resume", "--stop-after", saved + 3).succeeded()
    return saved


def test_a_killed_run_leaves_every_step_and_a_resumed_one_begins_a_new_file(f):
    saved = killed_and_resumed(f)
    _, name = f.names("board")
    events = [e[1:] for e in events_of(f, "board") if e[0] == name]
    assert events[:2] == [(0, "brain.Event:2"), (saved + 1, 1)], "SessionLog.START"
    assert [step for step, what in events[2:] if "loss/train" in what] == [saved + 1, saved + 2, saved + 3]


def test_a_folder_that_cannot_be_written_is_refused_and_a_full_disk_is_told_at_the_end(f):
    f.train("--tensorboard", "text").refused(2, "text", "cannot be made", "directory")
    f.train("--tensorboard", "/proc/board").refused(2, "/proc/board", "cannot be made")
    f.train("--bench-dispatch-only", "--tensorboard", "board").refused(2, "bench_dispatch_only")
    assert not (f.path / "board").exists()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
    done = f.train(*RUN, "--tensorboard", "board", preexec_fn=limit)
    assert done.code == 1 and "finished after step 12" in done.out and done.err.count("\n") == 1 and "records are missing" in done.err, done.err


def test_the_package_tensorboard_reads_what_the_log_says(f):
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        skip(f"no package tensorboard here: {error}")
    def seen(folder):
        board = EventAccumulator(str(f.path / folder), size_guidance={"scalars": 0})
        board.Reload()
        return finite((tag, e.step, e.value) for tag in board.Tags()["scalars"] for e in board.Scalars(tag))

    f.train(*RUN, "--json", "whole.log", "--tensorboard", "whole").succeeded()
    assert seen("whole") == rows_of(lines_of(f, "whole.log"))
    # What the killed run did after its last checkpoint is forgotten, as in the log.
    killed_and_resumed(f)
    assert seen("board") == rows_of(lines_of(f, "log"))


if __name__ == "__main__":
    main(globals())
