"""Two trainings compete for one folder, one process samples from it repeatedly, and another kills trainings with signal 9 at random moments. No saved
checkpoint is lost, runs end only by a kill, and every refusal is one line. `soak_test.py PROGRAMS TEST SECONDS` runs for SECONDS."""

import random
import re
import signal
import sys
import threading
import time

from program import main

RUN = ["--steps", "1000000", "--checkpoint-every", "1", "--keep", "3", "--checkpoint-dir", "run"]
SEED = 20261123


def test_trainings_a_reader_and_kills_share_a_folder(f):
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 4
    f.train(*RUN, "--stop-after", "2").succeeded()
    ends = time.monotonic() + seconds
    wrong, running = [], {}
    counts = dict.fromkeys(["kills", "refusals", "samples", "starts"], 0)
    lock = threading.Lock()

    def count(what):
        with lock:
            counts[what] += 1

    def newest():
        return max((int(m[1]) for m in (re.fullmatch(r"step-(\d+)\.safetensors", n) for n in f.names("run")) if m), default=0)

    def train(which):
        while time.monotonic() < ends:
            process = f.start(*RUN, "--resume")
            count("starts")
            with lock:
                running[which] = process
            out, err = process.communicate()
            with lock:
                running.pop(which)
            if process.returncode == -signal.SIGKILL:
                continue
            refused = process.returncode == 1 and err.count("\n") == 1 and err.startswith("isotope-train: ") and re.search(r"process \d+ ", err)
            if not refused:
                wrong.append(f"training {which}: exit {process.returncode}: {err!r} {out[-200:]!r}")
            count("refusals")
            time.sleep(0.01)

    def sample():
        while time.monotonic() < ends:
            done = f.run("generate", "--checkpoint", "run", "--tokens", "1")
            if done.code == 0:
                count("samples")
            else:
                wrong.append(f"sample: exit {done.code}: {done.err!r}")

    def kill():
        moments = random.Random(SEED)
        while time.monotonic() < ends or running:
            time.sleep(moments.uniform(0.05, 1.5) if time.monotonic() < ends else 0.05)
            with lock:
                for process in list(running.values()):
                    if moments.random() < 0.7 or time.monotonic() >= ends:
                        process.kill()
                        counts["kills"] += 1

    reached = [newest()]

    def watch():
        while time.monotonic() < ends:
            n = newest()
            if n < reached[-1]:  # a listing during a rename may miss both names
                n = max(newest() for _ in range(5))
            if n < reached[-1]:
                wrong.append(f"the newest checkpoint was step {reached[-1]} and is {n}")
            if n > reached[-1]:
                reached.append(n)
            time.sleep(0.02)

    threads = [threading.Thread(target=t, args=a) for t, a in ((train, (1,)), (train, (2,)), (sample, ()), (watch, ()), (kill, ()))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    f.train(*RUN, "--resume", "--stop-after", "1").succeeded()
    print(f"{seconds:.0f} s, seed {SEED}: step {newest()}, " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    assert not wrong, "\n".join(wrong[:20])
    assert seconds < 60 or min(counts.values()) > 0, counts


if __name__ == "__main__":
    main(globals())
