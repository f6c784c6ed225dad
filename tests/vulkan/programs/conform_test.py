"""isotope-conform on a Vulkan device: workgroup sizes, and a machine without a driver."""

from conform_runs import certificate, last_line
from program import main


def test_a_sweep_of_launch_sizes_covers_them_all(folder):
    sweep = ["run", "--strength", "fast", "--launch-size"]
    for kernels, ops in (("portable", "add,adamw,copy,layer_norm,softmax"), ("reference", "add,adamw")):
        run = folder.run("conform", *sweep, "sweep", "--kernels", kernels, "--ops", ops, "--out", "sweep.json").succeeded()
        assert last_line(run).endswith(" 0 failed, 0 skipped, 0 unsupported"), run.out
        swept = certificate(folder, "sweep.json")
        assert swept["launch_size"] == "sweep" and swept["coverage"]["launches"] == 1
        adamw = swept["tally"]["launches"][f"{kernels}:adamw"]
        assert adamw["ran"] == adamw["all"] and adamw["ran"][:2] == [1, 64] and len(adamw["ran"]) >= 3, adamw
    folder.run("conform", *sweep, "32", "--ops", "add", "--out", "one.json").succeeded()
    one = certificate(folder, "one.json")
    assert one["tally"]["launches"]["portable:elementwise"]["ran"] == [32] and one["coverage"]["launches"] < 1
    for size in ("0", "2000000"):
        folder.run("conform", *sweep, size, "--ops", "exp").refused(2, f"workgroups of {size} invocations", "takes 1 to ")


def test_a_device_that_is_not_there_is_a_loud_skip_or_a_failure(folder):
    none = {"VK_DRIVER_FILES": "/none", "VK_ICD_FILENAMES": "/none"}
    run = folder.run("conform", "run", "--strength", "fast", "--out", "c.json", env=none).succeeded()
    assert run.out.startswith("SKIPPED: "), run.out
    cases = int(last_line(run).split()[0])
    assert last_line(run) == f"{cases} cases, 0 passed, 0 failed, {cases} skipped, 0 unsupported"
    c = certificate(folder, "c.json")
    assert c["device"]["name"] == "none" and c["counts"]["skipped"] == cases and c["tally"]["skipped"] == {"no device": cases} and c["coverage"]["least"] == 0
    for value in ("1", "true"):
        folder.run("conform", "run", "--strength", "fast", env=none | {"ISOTOPE_REQUIRE_GPU": value}).refused(1, "isotope-conform")
    for value in ("0", "false"):
        folder.run("conform", "run", "--strength", "fast", env=none | {"ISOTOPE_REQUIRE_GPU": value}).succeeded()
    folder.run("conform", "run", "--strength", "fast", "--require-device", env=none).refused(1, "isotope-conform")


if __name__ == "__main__":
    main(globals())
