"""Diagnostics of runs on a CUDA device: failures, what a device can do, and a machine without a driver."""

import re

from program import main


def test_a_device_that_fails_ends_the_run_and_keeps_the_checkpoints(f):
    run = ["--steps", "8", "--warmup", "1", "--checkpoint-every", "2", "--checkpoint-dir"]
    whole = f.train(*run, "whole", "--verbose")
    assert whole.code == 0, whole.err
    submissions = int(re.search(r"device: (\d+) submissions", whole.err).group(1))
    for fault in ("device_lost", "out_of_memory", "hung"):
        f.train(*run, f"first-{fault}", "--inject-fault", fault).refused(1, "injected")
        assert not f.names(f"first-{fault}") or not [n for n in f.names(f"first-{fault}") if n.endswith(".safetensors")]
        for after in (submissions // 2, submissions - 3):
            name = f"{fault}-{after}"
            f.train(*run, name, "--inject-fault", f"{fault}:{after}").refused(1, "injected")
            kept = [n for n in f.names(name) if n.endswith(".safetensors")]
            assert not [n for n in f.names(name) if "writing" in n]
            f.train(*run, name, *(["--resume"] if kept else [])).succeeded()
            assert f.checkpoint(name, 8) == f.checkpoint("whole", 8), name
        assert [n for n in f.names(f"{fault}-{submissions - 3}") if n.startswith("step-")], "the late fault leaves checkpoints"


def test_info_says_what_every_device_can_do(f):
    out = f.run("info").succeeded().out
    for key in ("driver", "compute capability", "uuid", "memory", "L2 cache", "blocks", "multiprocessors", "tensor cores"):
        assert re.search(rf"^  {key}\s+\S", out, re.M), (key, out)


def test_programs_start_without_a_driver_and_say_what_is_missing(f):
    (f.path / "broken").mkdir()
    f.write("broken/libcuda.so.1", "")
    without = {"LD_LIBRARY_PATH": str(f.path / "broken")}
    info = f.run("info", env=without).succeeded()
    assert re.search(r"^processor\s", info.out, re.M), info.out
    assert re.search(r"^devices\s+.*NVIDIA driver.*fix: ", info.out, re.M), info.out
    for name in ("train", "generate", "parity", "mlp"):
        f.run(name, "--version", env=without).succeeded()
    f.run("mlp", env=without).refused(1, "the NVIDIA driver is not installed")


if __name__ == "__main__":
    main(globals())
