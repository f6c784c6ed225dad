"""isotope-conform golden: the references give the saved results, and a change without a new version is found."""

import json
import pathlib
import shutil

from program import main

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "conform" / "golden"


def test_the_references_give_what_they_gave(folder):
    run = folder.run("conform", "golden", str(GOLDEN)).succeeded()
    n = len(list(GOLDEN.glob("*.json")))
    assert n >= 50 and run.out == f"{n} ops: {n} as they were, 0 written, 0 differ\n", run.out
    for path in GOLDEN.glob("*.json"):
        # All cases of sample have given numbers: these are not filled several times.
        assert len(json.loads(path.read_text())["samples"]) == (6 if path.stem == "sample" else 50), path
    assert sum(p.stat().st_size for p in GOLDEN.glob("*.json")) < 250_000


def changed(folder, op, change):
    text = json.loads((GOLDEN / f"{op}.json").read_text())
    change(text)
    folder.write(f"golden/{op}.json", json.dumps(text))
    return folder.run("conform", "golden", "golden", "--ops", op)


def test_a_reference_that_changed_under_its_version_is_found(folder):
    (folder.path / "golden").mkdir()

    def number(at):
        def change(text):
            digest = next(d for results in text["samples"].values() for d in results if d[0] > 1 and d[2] and d[3])
            digest[at] = digest[at] * (1 + 1e-5) if at > 1 else digest[at] + 1 if at == 0 else "00000000"
        return change

    for at in range(4):
        for op in ("gelu_tanh", "layer_norm"):
            run = changed(folder, op, number(at))
            version = json.loads(folder.read(f"golden/{op}.json"))["version"]
            run.refused(1, f"golden/{op}.json", f"the reference changed, and the version is still {version}", f"op_spec<{op}> version {version + 1}", "golden --write")
            assert run.out == "1 ops: 0 as they were, 0 written, 1 differ\n", run.out

    def renamed(text):
        text["samples"] = {"ffffffff.0": r for r in text["samples"].values()}

    changed(folder, "exp", renamed).refused(1, "no such case any more")
    changed(folder, "exp", lambda text: text.update(version=777)).refused(1, "version 777, the specification has")
    changed(folder, "exp", lambda text: text.update(op="log")).refused(1, "no samples of exp")
    changed(folder, "exp", lambda text: text["samples"].update({"0.0": [[1]]})).refused(1, "malformed")
    folder.write("golden/exp.json", "{")
    folder.run("conform", "golden", "golden", "--ops", "exp").refused(1, "exp.json:1")


def test_samples_of_a_version_are_written_once(folder):
    shutil.copytree(GOLDEN, folder.path / "golden")
    (folder.path / "golden" / "exp.json").unlink()
    folder.run("conform", "golden", "golden").refused(1, "exp.json", "no such file")
    assert "1 written, 0 differ" in folder.run("conform", "golden", "golden", "--write").succeeded().out
    written, kept = json.loads(folder.read("golden/exp.json")), json.loads((GOLDEN / "exp.json").read_text())
    both = written["samples"].keys() & kept["samples"].keys()  # the 50 samples may include cases that were added later
    assert len(both) >= 25 and all(written["samples"][k] == kept["samples"][k] for k in both), (len(both), written, kept)
    assert written["version"] == kept["version"] and len(written["samples"]) == 50
    frozen = folder.read("golden/exp.json").replace(b",1]", b",2]").replace(b"0.", b"0.9")
    folder.write("golden/exp.json", frozen)
    folder.run("conform", "golden", "golden", "--write").refused(1, "exp.json")
    assert folder.read("golden/exp.json") == frozen
    folder.write("golden/exp.json", frozen.replace(b'"version":', b'"version":9'))
    folder.run("conform", "golden", "golden", "--write").succeeded()
    folder.run("conform", "golden", "golden").succeeded()
    folder.write("golden/exq.json", frozen)
    folder.run("conform", "golden", "golden").refused(2, "exq.json", "no op")
    folder.run("conform", "golden", "nowhere").refused(2, "nowhere")
    folder.run("conform", "golden").refused(2, "golden needs files")


if __name__ == "__main__":
    main(globals())
