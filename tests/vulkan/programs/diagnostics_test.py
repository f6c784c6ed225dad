"""Diagnostics of runs on a Vulkan device: shaders, pipelines, uploads, failures, and a machine without a driver."""

import pathlib
import re

from program import main

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_info_lists_every_variant_of_every_shader(f):
    kernels = ROOT / "kernels" / "vulkan"
    wanted = []
    for source in kernels.rglob("*.comp"):
        variants = re.findall(r"^// variant ([a-z0-9_]+):", source.read_text(), re.M)
        stem = re.sub("^(portable|native)/", "", str(source.relative_to(kernels).with_suffix(""))).replace("/", "_")
        wanted += [(f"{stem}_{v}" if v else stem, str(source.relative_to(kernels))) for v in variants or [""]]
    out = f.run("info", "--kernels").succeeded().out
    listed = [tuple(line.split()[:2]) for line in out[out.index("\ncode ") :].splitlines()[2:] if ".comp" in line]
    assert sorted(listed) == sorted(wanted), set(listed) ^ set(wanted)


def test_pipelines_are_kept_in_the_folder_asked_for(f):
    for _ in range(2):
        f.run("mlp", env={"ISOTOPE_CACHE_DIR": str(f.path / "made" / "here")}).succeeded()
    assert f.names("made/here") == ["isotope-pipelines", "isotope-pipelines.choices"]
    f.run("mlp", "--cache", "pipelines", "--cache-dir", "other").succeeded()
    assert not (f.path / "other").exists() and f.read("pipelines")


def test_variants_of_kernels_are_chosen_as_asked_for_and_then_taken_from_the_file(f):
    f.run("mlp", "--autotune", "fastest").refused(2, "autotune", "off, cached or measure")
    f.run("mlp", "--cache", "off", "--autotune", "off").succeeded()
    assert "off.choices" not in f.names(".")
    measure = ["mlp", "--cache", "pipelines", "--autotune", "measure"]
    choices = b""
    for _ in range(8):  # timing of a plan ends after 1.5 s, and what is left is timed by the next run: a slow device needs several
        before = choices
        f.run(*measure).succeeded()
        choices = f.read("pipelines.choices")
        assert choices.startswith(b"isotope choices 1\tvulkan, ") and b"\tmeasured " in choices and b"estimated" not in choices, choices
        if choices == before:
            break
    first = f.run(*measure).succeeded().out
    assert f.run(*measure).succeeded().out == first
    assert f.read("pipelines.choices") == choices


def test_a_device_that_fails_ends_the_run_and_keeps_the_checkpoints(f):
    run = ["--steps", "8", "--warmup", "1", "--checkpoint-every", "2", "--checkpoint-dir"]
    whole = f.train(*run, "whole", "--verbose")
    assert whole.code == 0, whole.err
    submissions = int(re.search(r"device: (\d+) submissions", whole.err).group(1))
    words = {"device_lost": "VK_ERROR_DEVICE_LOST", "out_of_memory": "VK_ERROR_OUT_OF_DEVICE_MEMORY", "hung": "VK_TIMEOUT"}
    for fault, word in words.items():
        f.train(*run, f"first-{fault}", "--inject-fault", fault).refused(1, "injected", word)
        assert not f.names(f"first-{fault}") or not [n for n in f.names(f"first-{fault}") if n.endswith(".safetensors")]
        for after in (submissions // 2, submissions - 3):
            name = f"{fault}-{after}"
            f.train(*run, name, "--inject-fault", f"{fault}:{after}").refused(1, "injected", word)
            kept = [n for n in f.names(name) if n.endswith(".safetensors")]
            assert not [n for n in f.names(name) if "writing" in n]
            f.train(*run, name, *(["--resume"] if kept else [])).succeeded()
            assert f.checkpoint(name, 8) == f.checkpoint("whole", 8), name
        assert [n for n in f.names(f"{fault}-{submissions - 3}") if n.startswith("step-")], "the late fault leaves checkpoints"


def test_info_says_what_every_device_can_do(f):
    out = f.run("info").succeeded().out
    for key in ("driver", "Vulkan", "memory", "one allocation", "subgroups", "workgroups", "matrix units"):
        assert re.search(rf"^  {key}\s+\S", out, re.M), (key, out)


def test_info_runs_without_a_driver_and_without_a_loader(f):
    (f.path / "broken").mkdir()
    for name in ("libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib", "libMoltenVK.dylib"):
        f.write(f"broken/{name}", "")
    no_loader = f.run("info", env={"LD_LIBRARY_PATH": str(f.path / "broken")}).succeeded()
    no_driver = f.run("info", env={"VK_ICD_FILENAMES": str(f.path / "none.json"), "VK_DRIVER_FILES": str(f.path / "none.json")}).succeeded()
    assert re.search(r"^devices\s+.*no Vulkan loader.*fix: apt-get install libvulkan1", no_loader.out, re.M), no_loader.out
    assert re.search(r"^devices\s+.*no driver.*fix: install the driver", no_driver.out, re.M), no_driver.out
    for done in (no_loader, no_driver):
        assert re.search(r"^processor\s", done.out, re.M), done.out
    for name in ("train", "generate", "parity", "mlp"):
        f.run(name, "--version", env={"LD_LIBRARY_PATH": str(f.path / "broken")}).succeeded()


def test_several_devices_are_refused(f):
    f.train("--devices", "2").refused(1, "devices of the backend vulkan cannot work together", "it has no collectives", "leave --devices")
    f.train("--ranks", "127.0.0.1:1,127.0.0.1:2").refused(1, "it has no collectives")


if __name__ == "__main__":
    main(globals())
