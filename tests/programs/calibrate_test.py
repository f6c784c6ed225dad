"""isotope-info calibrate and rank: what the device was measured to do, and the order of devices that follows."""

import json
import re

from program import main

STEP = ["debug-tiny", "2", "16"]
QUANTITIES = ["product_small", "product_large", "rows", "rows_8", "few_rows", "attention", "attention_grad", "stream_small", "stream_large", "heavy", "random", "launch",
              "barrier", "round_trip", "readback"]


def figures(out):
    """Value, unit and provenance by name."""
    rows = (re.match(r"(\w+) +([0-9.]+) (us|G/s) +(\w.*)$", line) for line in out.splitlines())
    return {r[1]: (float(r[2]), r[3], r[4]) for r in rows if r}


def order(out):
    """The cells of the rows of the order."""
    return [re.split(r"  +", line) for line in out.splitlines() if re.match(r"\d+  ", line)]


def test_figures_are_plausible_and_are_read_the_second_time(f):
    first = f.run("info", "calibrate", "cache", *STEP).succeeded().out
    assert first.startswith("measured and written to cache/isotope/"), first
    seen = figures(first)
    assert list(seen) == QUANTITIES, first
    units = int(re.search(r"(\d+) (?:units|threads)$", f.run("info").out, re.M)[1])
    for name, (value, unit, origin) in seen.items():
        assert origin == "measured", (name, origin)
        if name in ("few_rows", "launch", "barrier", "round_trip"):
            assert unit == "us" and 0 <= value < 1e6, (name, value)
        else:  # no unit of a device does 2^14 operations in each of 10^10 cycles a second
            assert unit == "G/s" and 0 < value < units * 2**14 * 10, (name, value)
    assert seen["product_small"][0] <= seen["product_large"][0], seen
    predicted, measured, share = map(float, re.search(r"predicted ([0-9.]+) ms .* measured ([0-9.]+) ms, .* ([0-9.]+) % of the matrix rate", first).groups())
    assert predicted > 0 and measured > 0 and share > 0, first
    second = f.run("info", "calibrate", "cache").succeeded().out
    assert second.startswith("read from cache/isotope/") and figures(second) == seen, second


def test_a_device_is_ranked_when_it_was_measured(f):
    words = ["info", "rank", "cache", *STEP]
    f.run(*words).refused(1, "the device was not measured", "--measure")
    measured = f.run(*words, "--measure").succeeded().out
    row = order(measured)[0]
    place, backend, _, _, ms, tokens, bound, planned, _, greatest = row
    assert place == "1" and bound in ("matrix rate", "bandwidth", "functions", "launch"), row
    assert abs(float(ms) * float(tokens) / 1000 / 32 - 1) < 0.1 and float(planned) > 0 and int(greatest) >= 2, row
    assert re.search(r"^this build lacks (?!.*\b%s\b)\w+(, \w+)*; to add" % backend, measured, re.M), measured
    calibrations = [n for n in f.names("cache/isotope") if n != "rank"]
    before = [f.read(f"cache/isotope/{n}") for n in calibrations]
    again = f.run(*words).succeeded().out
    assert order(again)[0][4] == ms, (again, measured)
    assert before == [f.read(f"cache/isotope/{n}") for n in calibrations] and before, calibrations


def test_devices_that_other_builds_have_ranked_are_in_the_order(f):
    words = ["info", "rank", "cache", *STEP]
    own = [row[1] for row in order(f.run(*words, "--measure").succeeded().out)]
    folder = "cache/isotope/rank/debug-tiny-2x16"
    (name,) = f.names(folder)
    saved = json.loads(f.read(f"{folder}/{name}"))

    def other(name, seconds, **changes):
        c = saved["candidates"][0] | {"backend": name, "device": "a stub", "functions seconds": seconds} | changes
        f.write(f"{folder}/{name}-f32.json", json.dumps(saved | {"candidates": [c]}))

    nothing = {k: 0 for k in saved["candidates"][0] if k.endswith(" seconds")}
    other("slow", 3600)
    other("fast", 1e-9, **nothing | {"functions seconds": 1e-9})
    other("unmeasured", 0, **{"from": "none"})
    other("usual", 1e-9, **{"from": "architecture default"})
    other("small", 1e-9, planned_bytes=3 << 20, device_bytes=1 << 20, greatest_batch=0)
    f.write(f"{folder}/damaged.json", b"{")
    f.write(f"{folder}/old.json", json.dumps(saved | {"version": "0.0.0"}))
    out = f.run(*words).succeeded().out
    assert [row[1] for row in order(out)] == ["fast", *own, "slow"], out
    assert "not ranked: unmeasured a stub" in out and "not ranked: usual a stub" in out and "architecture default" in out, out
    assert re.search(r"^not ranked: small a stub .*: the plan takes 3 MiB of 1 MiB: a batch of 1 does not fit either$", out, re.M), out
    assert "damaged.json is ignored" in out and "old.json is ignored: another version" in out, out


def test_what_cannot_be_ranked_is_refused_in_one_line(f):
    f.run("info", "rank").refused(2, "a folder, a size, a batch and a length", "0 words")
    f.run("info", "rank", "cache", *STEP, "--mesure").refused(2, "--mesure", "--measure")
    f.run("info", "rank", "cache", "gpt3", "1", "1").refused(2, "'gpt3'", "gpt2-124m")
    f.run("info", "rank", "cache", "debug-tiny", "1", "33").refused(2, "at most 32")
    f.run("info", "calibrate").refused(2, "takes a folder", "0 arguments")
    f.run("info", "calibrate", "cache", "debug-tiny", "0", "8").refused(2, "at most 32")


if __name__ == "__main__":
    main(globals())
