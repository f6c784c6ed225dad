"""isotope-conform: runs, shards, resumes and replays. run_file_test.py tests cases from other programs."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from conform_runs import CPU, certificate, last_line
from program import ENVIRONMENT, main

FAST = ["--strength", "fast", "--threads", "1", *CPU]


def runs(pid):
    try:
        return "\nState:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


# labels: conform-fast
def test_every_kernel_set_passes_the_fast_cases(folder):
    for kernels in ("reference", "portable", "native"):
        run = folder.run("conform", "run", *FAST, "--kernels", kernels).succeeded()
        assert last_line(run).endswith(" 0 failed, 0 skipped, 0 unsupported"), run.out
        assert int(last_line(run).split()[0]) >= 1000, run.out


def passes_the_fast_cases(folder, kernels):
    """Runs on the backend and in the precision of the build."""
    run = folder.run("conform", "run", "--strength", "fast", "--kernels", kernels).succeeded()
    assert last_line(run).endswith(" 0 failed, 0 skipped, 0 unsupported"), run.out
    assert int(last_line(run).split()[0]) >= 2000, run.out


# labels: conform-fast
def test_reference_kernels_of_the_build_pass(folder):
    passes_the_fast_cases(folder, "reference")


# labels: conform-fast
def test_portable_kernels_of_the_build_pass(folder):
    passes_the_fast_cases(folder, "portable")


# labels: conform-fast
def test_native_kernels_of_the_build_pass(folder):
    passes_the_fast_cases(folder, "native")


def test_a_launch_size_is_a_number_of_invocations(folder):
    for size in ("0", "2000000", "-1", "many"):
        folder.run("conform", "run", "--ops", "exp", *CPU, "--launch-size", size).refused(2, "--launch-size")


# labels: conform-standard
def test_the_standard_cases_pass_and_are_more_than_two_thousand(folder):
    run = folder.run("conform", "run", "--strength", "standard", *CPU).succeeded()
    assert last_line(run).endswith(" 0 failed, 0 skipped, 0 unsupported"), run.out
    assert int(last_line(run).split()[0]) >= 2000, run.out


def test_two_runs_give_one_certificate_and_it_verifies(folder):
    for name in ("a.json", "b.json"):
        folder.run("conform", "run", *FAST, "--out", name).succeeded()
    assert certificate(folder, "a.json") == certificate(folder, "b.json")
    assert "coverage 1;" in folder.run("conform", "verify", "a.json").succeeded().out


def test_batches_beside_each_other_give_the_certificate_of_batches_one_by_one(folder):
    for jobs in ("1", "2", "3"):
        folder.run("conform", "run", *FAST, "--ops", "add,matmul,relu,sum", "--batch", "16", "--jobs", jobs, "--out", f"j{jobs}").succeeded()
    assert certificate(folder, "j1") == certificate(folder, "j2") == certificate(folder, "j3")


def test_a_certificate_with_another_count_is_refused(folder):
    folder.run("conform", "run", *FAST, "--ops", "exp", "--out", "a.json").succeeded()
    text = folder.read("a.json").decode()
    folder.write("b.json", text.replace('"failed":0', '"failed":1', 1))
    folder.run("conform", "verify", "b.json").refused(2, "b.json", "digest")


def test_progress_is_a_line_every_so_many_cases(folder):
    run = folder.run("conform", "run", *FAST, "--ops", "exp,matmul", "--batch", "7", "--progress", "20")
    n = int(last_line(run).split()[0])
    told = run.err.splitlines()
    assert run.code == 0 and len(told) == n // 20 + 1, run.err
    for k, line in enumerate(told):
        assert line == f"isotope-conform: {min(20 * (k + 1), n)} of {n} cases, 0 failed, 0 unsupported", line
    folder.run("conform", "run", *FAST, "--ops", "exp").succeeded()  # without --progress, stderr is empty


def test_shards_together_are_the_whole(folder):
    folder.run("conform", "run", *FAST, "--ops", "exp,matmul,sum", "--out", "whole.json").succeeded()
    for n in range(1, 8):
        parts = [f"{n}-{i}.json" for i in range(n)]
        for i, part in enumerate(parts):
            folder.run("conform", "run", *FAST, "--ops", "exp,matmul,sum", "--shard", f"{i}/{n}", "--out", part).succeeded()
        folder.run("conform", "merge", *parts, "--out", "merged.json").succeeded()
        assert certificate(folder, "merged.json") == certificate(folder, "whole.json"), n
    folder.run("conform", "merge", *parts[1:]).refused(2, "part 0 of 7 is missing")
    folder.run("conform", "merge", *parts, parts[3]).refused(2, "part 3 of 7 is there twice")


def test_shards_that_there_are_not_are_refused(folder):
    for shard in ("0/0", "3/3", "-1/2", "1", "a/b"):
        folder.run("conform", "run", "--shard", shard).refused(2, "--shard" if "/" not in shard or shard == "a/b" else "shard", "i/n with 0 <= i < n")


def test_a_run_that_is_killed_goes_on_to_the_same_certificate(folder):
    # The run is killed at 50 points, each a little after the checkpoint has been saved again, so that every attempt gets further and is killed at a different point.
    run = ["run", *FAST, "--ops", "add,concat,dropout,exp,matmul,sum", "--batch", "1", "--checkpoint", "c"]
    folder.run("conform", *run, "--out", "whole.json").succeeded()
    (folder.path / "c").unlink()
    command = folder.command("conform", [*run, "--resume", "--out", "resumed.json"])
    saved = folder.path / "c"
    for kills in range(50):
        before = saved.stat().st_mtime_ns if saved.exists() else 0
        program = subprocess.Popen(command, cwd=folder.path, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not saved.exists() or saved.stat().st_mtime_ns == before:
            assert program.poll() is None, f"it ended after {kills} kills: {program.communicate()}"
        for _ in range(kills * 977 % 4000):  # waits for a varying number of instructions
            pass
        program.send_signal(signal.SIGKILL)
        program.communicate()
    folder.run("conform", *run, "--resume", "--out", "resumed.json").succeeded()
    assert certificate(folder, "resumed.json") == certificate(folder, "whole.json")


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused(folder):
    folder.run("conform", "run", *FAST, "--ops", "exp", "--checkpoint", "c").succeeded()
    folder.run("conform", "run", *FAST, "--ops", "log", "--checkpoint", "c", "--resume").refused(2, "c:", "another")
    folder.write("c", folder.read("c").replace(b'"next"', b'"nexT"'))
    folder.run("conform", "run", *FAST, "--ops", "exp", "--checkpoint", "c", "--resume").refused(2, "c:", "hash")


def test_more_cases_take_no_more_memory(folder):
    # Sanitizers keep freed memory for a while, by default 256 MiB, which does not count as growth of the program.
    asan = ":".join(filter(None, [ENVIRONMENT.get("ASAN_OPTIONS"), "quarantine_size_mb=1"]))

    def most_memory(*flags):
        command = folder.command("conform", ["run", *CPU, "--ops", "relu", "--strength", "full", "--threads", "1", "--batch", "512", *flags])
        program = subprocess.Popen(command, cwd=folder.path, env=ENVIRONMENT | {"ASAN_OPTIONS": asan}, stdout=subprocess.PIPE)
        cases = int(program.stdout.read().split()[0])
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        assert program.returncode == 0
        return cases, usage.ru_maxrss

    few, little = most_memory("--repeat", "10")  # a few batches for each of the concurrent jobs
    many, more = most_memory("--repeat", "100")
    assert few < 5000 and many > 40_000, (few, many)
    # A leaked record of a case has at least 1 KiB, so 40,000 cases would leak 40 MiB. The allocator itself grows by less: 3 MiB, with a sanitizer 10 to 18.
    assert more - little < 32 * 1024, f"{little} KiB, then {more} KiB"


def stopped_once(folder, jobs):
    """A run whose process is suspended after its first batch, so that the watching process sees an op that does not end."""
    command = folder.command("conform", ["run", *FAST, "--ops", "matmul,relu,sum", "--batch", "4", "--budget", "2", "--checkpoint", f"c{jobs}", "--jobs", jobs,
                                         "--out", f"c{jobs}.json"])
    program = subprocess.Popen(command, cwd=folder.path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (folder.path / f"c{jobs}").exists():
        assert program.poll() is None, program.communicate()
    children = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
    assert len(children) == 1, children
    os.kill(int(children[0]), signal.SIGSTOP)
    out, err = program.communicate()
    assert program.returncode == 1, (program.returncode, err, out[-300:])
    return certificate(folder, f"c{jobs}.json")["tally"]["ops"], out, err


def test_an_op_that_does_not_end_is_a_failure_and_the_others_go_on(folder):
    ops, out, err = stopped_once(folder, "1")
    assert err == "" and ops["matmul"]["failed"] > 10 and "does not end within 2 seconds" in out, (ops, out[-300:])
    assert ops["relu"]["failed"] == ops["sum"]["failed"] == 0 and ops["relu"]["passed"] > 20 and ops["sum"]["passed"] > 20, ops


def test_batches_beside_each_other_that_do_not_end_run_again_one_by_one_and_the_end_is_told(folder):
    ops, out, err = stopped_once(folder, "2")
    assert all(op["failed"] == 0 and op["passed"] > 20 for op in ops.values()), (ops, out[-300:])
    assert "--jobs 2 does not end within 2 seconds" in err and err.count("\n") == 1, err


def test_a_run_dies_with_the_process_that_watches_it(folder):
    program = subprocess.Popen(folder.command("conform", ["run", *FAST, "--batch", "16", "--checkpoint", "c"]), cwd=folder.path, env=ENVIRONMENT)
    while not (folder.path / "c").exists():
        assert program.poll() is None
    child = int(pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text())
    program.kill()
    program.wait()
    while runs(child):
        pass


def test_a_wish_for_a_device_that_is_neither_yes_nor_no_is_refused(folder):
    for value in ("yes", "2", ""):
        run = folder.run("conform", "run", *FAST, "--ops", "exp", env={"ISOTOPE_REQUIRE_GPU": value})
        run.refused(run.code, "variable ISOTOPE_REQUIRE_GPU", f"'{value}'")
        assert run.code in (1, 2), run.code


def test_a_certificate_says_what_the_device_was_seen_to_do(folder):
    folder.run("conform", "run", *FAST, "--ops", "exp", "--precision", "f32", "--out", "a.json").succeeded()
    seen = certificate(folder, "a.json")["arithmetic"]
    assert seen["rounding"] == "to nearest, ties to even" and seen["subnormal numbers"] == "kept", seen
    assert 0.5 <= float(seen["ulps of exp"]) <= 4 and float(seen["ulps of sqrt"]) == 0.5, seen


def capsule():
    return {"backend": "cpu", "precision": "f32", "kernels": "portable", "case": {
        "op": "exp", "version": 1, "kind": "forward", "law": -1, "i": [0] * 8, "f": [0, 0, 0], "seed": "0" * 16, "ill_conditioned": False,
        "scalars": {"seed": "0" * 16, "counter": 0, "optimizer_step": 1} | dict.fromkeys(["learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "momentum",
                                                                                       "clip_norm", "clip_value", "gradient_scale"], 0),
        "in": [{"dims": [3], "dtype": "f32", "generator": "uniform", "low": -1, "high": 1, "order": [0, 1, 2, 3, 4, 5]}], "given": [[1, 2, "nan"]]}}


def test_a_capsule_replays_one_case(folder):
    record = capsule()
    folder.write("c.json", json.dumps(record))
    assert "c.json: pass" in folder.run("conform", "replay", "c.json").succeeded().out
    record["case"]["version"] = 7
    folder.write("c.json", json.dumps(record))
    folder.run("conform", "replay", "c.json").refused(2, "version")


def test_a_replay_exits_with_1_until_what_it_holds_is_fixed(folder):
    record = capsule()
    record["case"]["kind"] = "refusal"  # the case expects a refusal, but its operands are valid, so they are not refused
    del record["case"]["given"]
    folder.write("c.json", json.dumps(record))
    run = folder.run("conform", "replay", "c.json")
    assert run.code == 1 and "c.json: fail: operands that do not fit were accepted. Fix: " in run.out, (run.code, run.out, run.err)
    folder.write("sound.json", json.dumps(capsule()))
    assert folder.run("conform", "replay", "sound.json", "c.json").code == 1 and folder.run("conform", "replay", "c.json", "sound.json").code == 1
    record["case"]["in"][0]["dtype"] = "i32"  # makes the operands invalid
    folder.write("c.json", json.dumps(record))
    assert "c.json: pass" in folder.run("conform", "replay", "c.json").succeeded().out


def test_the_corpus_of_regressions_is_replayed_first_and_none_of_them_fails(folder):
    corpus = pathlib.Path(__file__).resolve().parents[1] / "conform" / "regressions"
    files = sorted(corpus.rglob("*.json"))
    assert len(files) >= 7
    for file in files:  # a file's name is the hash of its contents, so files are never changed
        text = file.read_bytes()
        assert file.stem == hashlib.sha256(text[:-1]).hexdigest() and text[-1:] == b"\n", file
        case = json.loads(text)
        assert file.parts[-3:-1] == (case["op"], f"v{case['version']}"), file
    ops = ",".join(sorted({json.loads(file.read_bytes())["op"] for file in files}))
    shutil.copytree(corpus, folder.path / "corpus")
    for kernels in ("reference", "portable", "native"):
        run = folder.run("conform", "run", *FAST, "--precision", "f32", "--kernels", kernels, "--ops", ops, "--regressions", "corpus", "--out", "c.json").succeeded()
        assert f"{len(files)} known failures replayed, 0 of them fail" in run.out, run.out
        verdicts = certificate(folder, "c.json")["tally"]["regressions"]
        assert set(verdicts) == {file.stem for file in files} and set(verdicts.values()) == {"pass"}, verdicts
    assert sorted(p.name for p in (folder.path / "corpus").rglob("*.json")) == sorted(p.name for p in files), "nothing was added"


def test_what_is_left_out_is_counted_and_too_little_coverage_fails(folder):
    whole = folder.run("conform", "run", *FAST, "--ops", "exp,log", "--out", "whole.json").succeeded()
    cases = int(last_line(whole).split()[0])
    skipped = sum(certificate(folder, "whole.json")["tally"]["ops"]["exp"][kind] for kind in ("forward", "gradient", "law", "refusal")) - 9
    run = folder.run("conform", "run", *FAST, "--ops", "exp,log", "--skip", skipped, "--out", "c.json")
    assert run.code == 1 and f"{skipped} skipped: its number is below {skipped}" in run.out, (run.code, run.out)
    assert "too little coverage: 9 cases of exp ran, its specification asks for 10" in run.out and "of log" not in run.out, run.out
    assert last_line(run) == f"{cases} cases, {cases - skipped} passed, 0 failed, {skipped} skipped, 0 unsupported"
    c = certificate(folder, "c.json")
    assert c["counts"] == {"cases": cases, "failed": 0, "passed": cases - skipped, "skipped": skipped, "unsupported": 0} and c["coverage"]["runs"] < 1, c["counts"]
    assert c["tally"]["skipped"] == {f"its number is below {skipped}": skipped}
    folder.run("conform", "run", *FAST, "--ops", "exp,log", "--skip", skipped - 1).succeeded()
    assert folder.run("conform", "verify", "c.json").code == 1
    folder.run("conform", "verify", "whole.json").succeeded()
    # A shard has fewer cases than a whole run must have. That is no failure, since coverage is judged after the shards are merged.
    for n in "01":
        folder.run("conform", "run", *FAST, "--ops", "accumulate", "--shard", f"{n}/2", "--out", f"{n}.json").succeeded()
        assert certificate(folder, f"{n}.json")["counts"]["cases"] < 10
    folder.run("conform", "merge", "0.json", "1.json", "--out", "all.json").succeeded()


def test_a_certificate_says_what_it_was_built_of_and_which_variants_ran(folder):
    folder.run("conform", "run", *FAST, "--ops", "exp,matmul", "--kernels", "native", "--out", "a.json").succeeded()
    c = certificate(folder, "a.json")
    version = folder.run("conform", "--version").succeeded().out
    assert re.search(r"^commit +(\S+)", version, re.M).group(1) == c["commit"]
    for row in ("compiler", "build type", "cpu arch"):
        assert re.search(rf"^{row} +(.+)$", version, re.M).group(1).strip() in c["build"], (row, c["build"])
    assert c["format"] == 2 and c["kernels_digest"] == "", "kernels of a processor are told by commit and build"
    variants = c["tally"]["variants"]
    assert "matmul[native]" in variants and any(v.startswith("elementwise[") for v in variants), variants
    assert c["tracks"]["approximate"]["ops"] == 2 and c["tracks"]["approximate"]["passed"] == c["counts"]["passed"], c["tracks"]


def test_known_failures_are_replayed_in_every_shard(folder):
    known = folder.path / "corpus" / "exp" / "v1"
    known.mkdir(parents=True)
    (known / ("0" * 64 + ".json")).write_text(json.dumps(capsule()["case"]))
    for shard in ("0/2", "1/2"):
        run = folder.run("conform", "run", *FAST, "--ops", "exp,log", "--regressions", "corpus", "--shard", shard, "--out", f"{shard[0]}.json").succeeded()
        assert "1 known failures replayed, 0 of them fail" in run.out, run.out
    folder.run("conform", "merge", "0.json", "1.json", "--out", "all.json").succeeded()
    assert list(certificate(folder, "all.json")["tally"]["regressions"].values()) == ["pass"]
    (known / ("1" * 64 + ".json")).write_text("{")
    folder.run("conform", "run", *FAST, "--ops", "exp", "--regressions", "corpus").refused(2, "1111.json")


def test_wrong_words_are_one_line(folder):
    for words, parts in [([], ["no command"]), (["walk"], ["no command 'walk'"]), (["run", "--speed", "9"], ["no flag '--speed'"]), (["run", "--ops", "foo"], ["no op 'foo'"]),
                         (["run", "--batch", "0"], ["--batch"]), (["run", "--batch", "1048577"], ["--batch"]), (["run", "--backend", "metal"], ["metal"]),
                         (["run", "--precision", "f8"], ["f8"]), (["run", *CPU, "--precision", "f16"], ["no precision 'f16' on the cpu"]), (["run", "--kernels", "best"], ["best"]), (["run", "--strength", "weak"], ["weak"]),
                         (["run", "--resume"], ["--checkpoint"]), (["run", "stray"], ["stray"]), (["verify"], ["needs files"]), (["verify", "none"], ["none"]),
                         (["run", "--seed"], ["needs a value"]), (["run", "--seed", "1", "--seed", "2"], ["twice"])]:
        folder.run("conform", *words).refused(2, *parts)


if __name__ == "__main__":
    main(globals())
