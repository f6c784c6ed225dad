"""isotope-train --calibration: the time of a step that follows from the figures of isotope-info calibrate, beside the measured one."""

import json
import math
import re

from program import TINY, main

RUN = [*TINY[:TINY.index("--threads")], "--calibration", "figures"]  # figures are of all threads


def calibrate(f):
    """Measures this machine; returns the path of the file and its figures."""
    f.run("info", "calibrate", "figures").succeeded()
    (name,) = f.names("figures/isotope")
    (figures,) = json.loads(f.read(f"figures/isotope/{name}"))["formats"].values()
    return f"figures/isotope/{name}", {key: x["value"] for key, x in figures.items()}


def lines_of(f, name):
    return [json.loads(line) for line in f.read(name).decode().splitlines()]


def test_a_calibration_predicts_the_time_of_a_step_and_of_its_kernels(f):
    _, figures = calibrate(f)
    out = f.run("train", *RUN, "--steps", "24", "--json", "log", "--report", "page").succeeded().out
    run, *events = lines_of(f, "log")
    assert run["matrix_rate"] == figures["product_large"]
    # The parts of a step are those of its kernels and of its begin.
    launches = next(e["launches"] for e in events if e["event"] == "kernels")
    assert all(("predicted_usec" in k) == (k["op"] != "copy") and k.get("predicted_usec", 1) > 0 for k in launches)
    kernels = sum(k.get("predicted_usec", 0) for k in launches)
    assert math.isclose(kernels + 1e6 * figures["round_trip"], 1e3 * run["predicted_ms"], abs_tol=1e-3 * len(launches)), (kernels, run["predicted_ms"])
    # A product and its gradients take 6 operations for each weight and token; norms, attention and the update of this small model come besides.
    weights, tokens = 12 * 16 * 16 + 16 * 16, 2 * 16
    assert 6 * weights * tokens < run["flops"] < 40 * weights * tokens, run["flops"]
    share = lambda ms: 100 * run["flops"] / (1e-3 * ms * run["matrix_rate"])
    said = re.search(r"^predicted (\S+) ms a step, most of it (.+): \S+ operations, (\S+) % of the \S+ a second measured for large products \(MFU\)$", out, re.M)
    assert said.group(2) in ("matrix rate", "bandwidth", "functions", "launch")
    assert math.isclose(float(said.group(1)), run["predicted_ms"], abs_tol=0.0051) and math.isclose(float(said.group(3)), share(run["predicted_ms"]), abs_tol=0.051)
    # It is compared with the steps after the first, once, below the last of them.
    measured = re.findall(r"^measured (\S+) ms a step, the median of steps 2 to 21: (\S+) x predicted, (\S+) % MFU$", out, re.M)
    median = sorted(e["ms"] for e in events if e["event"] == "step" and 2 <= e["step"] <= 21)[10]
    (said,) = measured
    for number, exact, digits in zip(said, (median, median / run["predicted_ms"], share(median)), (2, 2, 1)):
        assert math.isclose(float(number), exact, abs_tol=0.51 * 10 ** -digits), (said, median)
    assert out.index("step 21/24") < out.index("\nmeasured ") < out.index("step 22/24")
    # A short run is compared at its end; what is computed again counts once, and an update of several micro-batches is made once.
    assert "the median of steps 2 to 3: " in f.run("train", *RUN, "--steps", "3").succeeded().out
    one = f.run("train", *RUN, "--steps", "1", "--recompute", "all", "--json", "again").succeeded().out
    assert "predicted " in one and "\nmeasured " not in one, one
    again, plain = lines_of(f, "again")[0], run
    assert again["flops"] == plain["flops"] and again["predicted_ms"] > plain["predicted_ms"]
    f.run("train", *RUN, "--steps", "2", "--accumulate", "3", "--json", "three").succeeded()
    three = lines_of(f, "three")[0]
    assert 2 * plain["flops"] < three["flops"] < 3 * plain["flops"] and plain["predicted_ms"] < three["predicted_ms"]
    assert "predicted " in f.run("train", *RUN, "--steps", "3", "--bench-dispatch-only").succeeded().out
    without = f.run("train", *RUN[:-2], "--steps", "3", "--json", "none").succeeded().out
    assert "predicted" not in without + f.read("none").decode()


def test_figures_that_are_not_of_this_device_are_refused(f):
    f.run("train", *RUN).refused(2, "figures/isotope/", "no figures of this device", "isotope-info calibrate figures")
    name, _ = calibrate(f)
    whole = f.read(name)
    threads = int(re.search(r'"device": "cpu, (\d+) units', whole.decode()).group(1))
    f.run("train", *RUN, "--threads", threads + 1).refused(2, name, "another device, driver or library", "with all threads")
    f.write(name, whole[:-9])
    f.run("train", *RUN).refused(2, name, "JSON")
    f.write(name, re.sub(rb'"(f32|bf16)": \{', b'"f64": {', whole))
    f.run("train", *RUN).refused(2, name, "no figures of this device in")
    f.write(name, re.sub(rb'("product_large": )\{.*?\}', rb'\1{"value": 0, "from": "none"}', whole))
    f.run("train", *RUN).refused(2, name, "nobody measured")
    f.run("train", *RUN, "--devices", "2").refused(2, "are 2", "--calibration")


if __name__ == "__main__":
    main(globals())
