"""Diagnostics of runs: every flag is documented, every report has its documented contents, and no flag changes a bit of the result."""

import json
import pathlib
import re

from program import main

FLAGS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "FLAGS.md"


def backend(f):
    return re.search(r"^backend\s+(\S+)", f.run("info", "--version").out, re.M).group(1)


def rows(text):
    """The columns of all lines of a report that are not totals."""
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]


def documented():
    """Flag, variable, type, default, programs and meaning of every row of the table."""
    return [
        [cell.strip().replace("\\|", "|").strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in FLAGS.read_text().splitlines()
        if re.match(r"\| `--", line)
    ]


def test_the_table_of_flags_is_what_info_prints(f):
    printed = f.run("info", "--flags").succeeded().out
    assert printed == FLAGS.read_text(), "isotope-info --flags > docs/FLAGS.md"


def test_every_documented_variable_sets_its_field(f):
    values = {"ISOTOPE_SIZE": "debug-tiny", "ISOTOPE_INJECT_FAULT": "hung:9", "ISOTOPE_COMMUNICATOR": "nccl"}
    # these contradict the others
    alone = ("ISOTOPE_CONFIG", "ISOTOPE_BENCH_DISPATCH_ONLY", "ISOTOPE_TRACE_IN", "ISOTOPE_TRACE_OUT", "ISOTOPE_FROM", "ISOTOPE_ADAPTERS", "ISOTOPE_SAVE_ADAPTERS", "ISOTOPE_RANKS")
    wanted, env = [], {}
    for flag, variable, kind, default, programs, _ in documented():
        if "train" not in programs.split(", ") or not variable or variable in alone:
            continue
        env[variable] = values.get(variable, "0" if kind == "true or false" else default or "x")
        wanted.append((flag, variable))
    assert len(wanted) > 50, wanted
    out = f.run("train", "--print-config", env=env).succeeded().out
    for flag, variable in wanted:
        assert variable == "ISOTOPE_SIZE" or re.search(rf"variable {variable}$", out, re.M), (flag, variable, out)


def test_every_documented_flag_is_in_the_help_of_its_programs(f):
    helps = {name: f.run(name, "--help").succeeded().out for name in ("train", "generate", "parity", "mlp", "info", "conform", "tokenize", "embed", "serve", "tp-smoke", "report")}
    for flag, _, _, _, programs, meaning in documented():
        for name in programs.split(", "):
            assert re.search(rf"{flag}\b", helps[name]), (flag, name)
        assert meaning, flag


def test_an_unknown_variable_is_refused_by_every_program_with_a_suggestion(f):
    for name in ("train", "generate", "parity", "mlp"):
        f.run(name, env={"ISOTOPE_DISPATCH_REPROT": "x"}).refused(2, "ISOTOPE_DISPATCH_REPROT", "did you mean 'ISOTOPE_DISPATCH_REPORT'?")


def test_a_variable_of_another_program_is_no_mistake(f):
    f.train("--print-config", env={"ISOTOPE_TOP_K": "3", "ISOTOPE_LOSS_GATE": "1"}).succeeded()
    f.run("mlp", "--version", env={"ISOTOPE_MODEL_WIDTH": "9999", "ISOTOPE_STEPS": "3"}).succeeded()


def meaningless():
    """Variable and reason of every row of the table of refused variables."""
    return re.findall(r"^\| `(ISOTOPE_\w+)` \| (.+) \|$", FLAGS.read_text().split("## Variables without a meaning")[1], re.M)


def test_a_variable_without_a_meaning_is_refused_with_the_reason(f):
    assert len(meaningless()) > 5, meaningless()
    for name, why in meaningless():
        for program in ("train", "generate", "parity", "mlp"):
            f.run(program, env={name: "1"}).refused(2, name, "has no meaning here", why)


def test_every_switch_of_matrix_units_is_a_flag_or_refused(f):
    flags = {row[1] for row in documented()}
    assert {"NO_COOP", "NO_COOP_F16", "COOP_OSC_THRESH", "COOP_NO_AUTO_WIDE", "COOP_FORCE_WIDE"} <= {x.removeprefix("ISOTOPE_") for x in flags}
    refused = {name for name, _ in meaningless()}
    assert {"COOP_NO_F32ACC", "COOP_LARGE_N", "COOP_LOAD_T", "NO_COOP_F32", "FORCE_COOP_F32"} <= {x.removeprefix("ISOTOPE_") for x in refused}
    assert not flags & refused, flags & refused


def test_the_dispatch_report_names_every_launch_and_none_on_the_host(f):
    f.train("--steps", "1", "--dispatch-report", "report").succeeded()
    text = f.read("report").decode()
    lines = rows(text)
    assert len(lines) > 20 and all(len(line) == len(lines[0]) for line in lines), text
    assert {line[3] for line in lines} <= {"native", "portable", "reference", "-"}, text
    assert {"embedding", "layer_norm", "matmul", "attention", "cross_entropy", "attention_grad", "global_norm", "adamw"} <= {line[1] for line in lines}
    totals = re.search(r"^# launches\t(.*)$", text, re.M).group(1).split("\t")
    assert totals[-1] == "host 0", totals
    counted = sum(int(total.split()[1]) for total in totals if total.split()[0] in ("native", "portable", "reference"))
    assert counted == sum(line[3] != "-" for line in lines), totals
    done = f.train("--steps", "1", "--threads", "1", env={"ISOTOPE_DISPATCH_REPORT": "-"})
    assert done.code == 0 and done.err == text, done.err[:300]


def test_the_schedule_lists_the_steps_of_the_dispatch_report_with_their_offsets(f):
    f.train("--steps", "1", "--dispatch-report", "report", env={"ISOTOPE_SCHEDULE": "schedule"}).succeeded()
    schedule, report = f.read("schedule").decode(), f.read("report").decode()
    steps = [line[1:3] for line in rows(schedule) if line[0] == "step"]
    seen = []
    for line in rows(report):
        if line[0] != "-" and line[:2] not in seen:
            seen.append(line[:2])
    assert steps == seen, (steps[:5], seen[:5])
    regions = {line[1]: (int(line[2]), int(line[2]) + int(line[3])) for line in rows(schedule) if line[0] == "region"}
    operands = [line for line in rows(schedule) if line[0] in ("in", "out")]
    assert len(operands) > 100
    for line in operands:
        first, end = regions[line[5]]
        assert first <= int(line[6]) and int(line[6]) + int(line[7]) <= end, line


def test_the_trace_and_the_fusions_are_written_by_every_program_that_plans(f):
    f.train("--steps", "2", "--checkpoint-dir", "run", "--ir-dump", "ir", "--fusion-report", "fusions").succeeded()
    assert re.search(r"^parameter %\d+ \[\d+,16\] \S+ wte.weight view of ", f.read("ir").decode(), re.M)
    assert re.search(r"\{ \$0 = add\(\*, %\d+\) -> %\d+; \$1 = gelu_tanh", f.read("ir").decode())
    assert re.search(r"^\d+\tadd\+gelu_tanh\tmatmul\t", f.read("fusions").decode(), re.M)
    assert re.search(r"comes from a kernel that takes no fused body", f.read("fusions").decode())
    f.run("generate", "--checkpoint", "run", "--tokens", "1", "--ir-dump", "ir2", "--fusion-report", "fusions2", "--dispatch-report", "report2").succeeded()
    assert b"adamw" not in f.read("ir2") and b"wte.weight" in f.read("ir2")
    assert b"host 0" in f.read("report2")
    f.run("mlp", "--ir-dump", "ir3", "--fusion-report", "fusions3", "--step-list", "steps3", "--dispatch-report", "report3").succeeded()
    assert b"hidden.0.weight" in f.read("ir3") and b"host 0" in f.read("report3") and b"\tadamw\t" in f.read("steps3")


def test_decomposed_ops_are_reported_and_train_to_nearly_the_same_loss(f):
    run = ["--steps", "3", "--json"]
    f.train(*run, "whole.jsonl").succeeded()
    f.train(*run, "parts.jsonl", "--dispatch-report", "report", env={"ISOTOPE_KERNEL_DISPATCH": "common"}).succeeded()
    assert int(re.search(r"\tcommon (\d+)\t", f.read("report").decode()).group(1)) > 10
    assert "layer_norm" not in {line[1] for line in rows(f.read("report").decode())}
    losses = lambda log: [e["loss"] for e in map(json.loads, f.read(log).decode().splitlines()) if e["event"] == "step"]
    for a, b in zip(losses("whole.jsonl"), losses("parts.jsonl")):
        assert abs(a - b) <= 2e-2 * a, (a, b)  # decomposed ops round to bf16 between their parts: 2^-8 for each of a few roundings
    f.run("mlp", "--kernel-dispatch", "common").refused(2, "--kernel-dispatch")
    f.train("--kernel-dispatch", "host").refused(2, "kernel_dispatch", "'host'", "kernels or common")


def test_a_dump_has_every_node_and_the_loss_of_the_log(f):
    f.train("--steps", "2", "--dump-nodes", "nodes", "--json", "log", "--step-list", "steps").succeeded()
    lines = rows(f.read("nodes").decode())
    outputs = [line for line in rows(f.read("steps").decode()) if line[0] == "out"]
    assert len(lines) == len(outputs), (len(lines), len(outputs))
    assert all(line[9:11] == ["0", "0"] for line in lines)
    loss = next(e["loss"] for e in map(json.loads, f.read("log").decode().splitlines()) if e["event"] == "step")
    (mean,) = [float(line[8]) for line in lines if line[2] == "cross_entropy" and line[4] == "0"]
    assert mean == loss, (mean, loss)
    for line in lines:
        assert abs(float(line[8])) <= float(line[7]) * (1 + 1e-6), line


def test_the_gradients_of_all_tensors_have_the_norm_of_the_log(f):
    run = ["--accumulate", "2", "--warmup", "1", "--gradients", "gradients", "--json", "log", "--checkpoint-dir", "run"]
    f.train(*run, "--steps", "4", "--checkpoint-stop-after", "2").succeeded()
    f.train(*run, "--steps", "4", "--checkpoint-resume").succeeded()
    lines = rows(f.read("gradients").decode())
    names = {line[1] for line in lines}
    assert len(lines) == 4 * len(names) and "wte.weight" in names, names
    norms = {e["step"]: e["grad_norm"] for e in map(json.loads, f.read("log").decode().splitlines()) if e["event"] == "step"}
    for step, norm in norms.items():
        mine = [line for line in lines if line[0] == str(step)]
        assert abs(sum(float(line[3]) ** 2 for line in mine) ** 0.5 - norm) <= 1e-4 * norm, (step, norm)
        for _, name, elements, size, largest, zeros, not_finite in mine:
            assert 0 < float(largest) <= float(size) and 0 <= int(zeros) < int(elements) and not_finite == "0", name
    sparse = f.train("--steps", "5", "--gradients", "-", "--gradients-every", "2").err
    assert sorted({line[0] for line in rows(sparse)}) == ["2", "4"], sparse[-300:]
    f.train("--gradients", "g", "--update", "within_backward", "--clip", "0").refused(2, "--gradients", "after_backward")


def test_reports_change_no_bit_of_a_run(f):
    run = ["--steps", "4", "--accumulate", "2", "--dropout", "0.1", "--warmup", "1", "--checkpoint-dir"]
    f.train(*run, "plain").succeeded()
    done = f.train(*run, "looked", "--dump-nodes", "nodes", "--trace", "trace.json", "--profile", "profile", "--nan-trace", "--verbose", "--gradients", "gradients",
                   "--dispatch-report", "report")
    assert done.code == 0, done.err
    assert f.checkpoint("plain", 4) == f.checkpoint("looked", 4)
    assert {line[0] for line in rows(f.read("nodes").decode())} == {"0", "1"}, "both micro-batches"


def test_the_first_number_that_is_not_finite_is_located(f):
    wild = ["--warmup", "0", "--learning-rate", "1e29", "--min-learning-rate", "1e29", "--steps", "30", "--nan-trace"]
    done = f.train(*wild)
    assert done.code == 1, done.code
    first, second = done.err.splitlines()
    found = re.match(r"isotope-train: step (\d+): first number that is not finite: plan step \d+, \S+.*, output \d+ \[.*\] \S+: \d+ of \d+ numbers, "
                     r"the first (nan|-?inf) at element \d+.*; (already not finite: |near )\S+", first)
    assert found, first
    assert f"step {found.group(1)}: loss " in second, second
    skipping = f.train(*wild, "--non-finite", "skip")
    assert skipping.code == 1 and skipping.err.count("first number that is not finite") > 1, skipping.err[-300:]


def test_the_trace_holds_the_launches_of_one_step_in_chromes_format(f):
    f.train("--steps", "3", "--trace", "trace.json", "--dispatch-report", "report", env={"ISOTOPE_VERBOSE": "0"}).succeeded()
    trace = json.loads(f.read("trace.json"))
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(events) == len(rows(f.read("report").decode())), len(events)
    assert {"forward", "backward", "optimizer"} <= {e["cat"] for e in events}
    assert "step 2" in next(e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name")
    end = 0
    for e in events:
        assert e["dur"] >= 0 and e["ts"] >= end - 0.01, e
        end = e["ts"] + e["dur"]


def test_a_profile_counts_the_phases_of_the_loop(f):
    f.train("--steps", "6", "--eval-every", "3", "--checkpoint-every", "2", "--checkpoint-dir", "run", env={"ISOTOPE_PROFILE": "profile"}).succeeded()
    times = {line[0]: int(line[1]) for line in rows(f.read("profile").decode())}
    assert times["data"] == 6 and times["step"] == 6 and times["evaluate"] == 2 and times["save"] >= 3, times


def test_dispatches_are_timed_without_reading_anything_back(f):
    out = f.train("--steps", "5", env={"ISOTOPE_BENCH_DISPATCH_ONLY": "1"}).succeeded().out
    found = re.fullmatch(r"4 steps after the first: (\S+) ms, (\d+) launches and (\d+) bytes in each, 0 bytes read back\n", out)
    assert found and float(found.group(1)) > 0 and int(found.group(2)) > 20, found
    f.train("--bench-dispatch-only", "--checkpoint-dir", "run").refused(2, "bench_dispatch_only")
    f.train("--bench-dispatch-only", "--nan-trace").refused(2, "bench_dispatch_only")


def test_verbose_names_device_plan_and_counters(f):
    err = f.train("--steps", "2", env={"ISOTOPE_VERBOSE": "1"}).err
    assert re.search(rf"^isotope-train: {backend(f)} device 0, .*, (cpu|integrated|discrete), \d+ units", err, re.M), err
    assert re.search(r"^isotope-train: plan of \d+ steps, \d+ parameters, arena \d+ bytes", err, re.M), err
    assert re.search(r"^isotope-train: 2 steps, \d+ evaluations, \d+ launches, \d+ bytes in, \d+ bytes out", err, re.M), err


def test_inputs_that_did_not_change_are_copied_when_asked(f):
    def bytes_in_each_step(*more):
        out = f.train("--steps", "5", *more, env={"ISOTOPE_BENCH_DISPATCH_ONLY": "1"}).succeeded().out
        return int(re.search(r"(\d+) bytes in each", out).group(1))

    more = bytes_in_each_step("--force-input-upload") - bytes_in_each_step()
    assert more == 2 * 2 * 16 * 4, "tokens and targets of 2 windows of 16, each 4 bytes"


def test_fall_throughs_are_logged_with_their_reasons(f):
    err = f.train("--steps", "1", "--dispatch-report", "report", env={"ISOTOPE_LOG_FALLBACK": "1"}).err
    logged = {m[0]: m[1:] for m in re.findall(r"^isotope-train: (\S+) runs (\S+): .* \((\d+) launch(?:es)?\)$", err, re.M)}
    fell = [line for line in rows(f.read("report").decode()) if line[4] != "-"]
    assert {line[1] for line in fell} == set(logged), (logged, err)
    assert sum(int(n) for n in re.findall(r"\((\d+) launch(?:es)?\)$", err, re.M)) == len(fell)


def test_reports_that_cannot_be_written_fail_politely(f):
    (f.path / "folder").mkdir()
    for flag in ("--dispatch-report", "--step-list", "--ir-dump", "--fusion-report", "--dump-nodes", "--trace", "--profile"):
        f.train("--steps", "1", flag, "no/where/report").refused(2, "no/where/report", "folder")
        for path in ("folder", "/dev/full"):
            done = f.train("--steps", "1", flag, path)
            assert done.code == 1 and done.err.count("\n") == 1 and path in done.err, (flag, path, done.code, done.err)
    f.run("mlp", "--dispatch-report", "no/where/report").refused(2, "no/where/report")


def test_bad_values_name_field_and_layer(f):
    f.train("--inject-fault", "fire").refused(2, "flag --inject-fault: diagnose.inject_fault", "'fire'", "device_lost:N")
    f.train(env={"ISOTOPE_INJECT_FAULT": "hung:-1"}).refused(2, "variable ISOTOPE_INJECT_FAULT", "'hung:-1'")
    f.run("mlp", "--threads", "-1").refused(2, "flag --threads", "-1")
    f.run("generate", "--checkpoint", "x", "--chunk-bytes", "-1").refused(2, "flag --chunk-bytes")


def test_info_describes_every_device(f):
    out = f.run("info").succeeded().out
    assert re.search(r"^device 0\s+\S.*, (cpu|integrated|discrete), \d+ (units|threads)$", out, re.M), out
    assert re.search(r"^default\s+device \d+$", out, re.M), out


if __name__ == "__main__":
    main(globals())
