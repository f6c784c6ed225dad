"""The report page: its figures are those of the JSON lines, no text of a log leaves its data, and damaged logs are named by line."""

import json
import math
import re
import resource
import shutil
import statistics
import struct
import subprocess
import zlib
from html.parser import HTMLParser

from program import main, skip

RUN = ["--steps", "24", "--eval-every", "8", "--warmup", "2"]
HOSTILE = 'size "a" </script><script>document.title="broken out"</script><!-- <b>\u2028 &amp;'


def lines_of(f, name):
    return [json.loads(line) for line in f.read(name).decode().splitlines()]


def data_of(page):
    """The runs in a page, which has exactly the script elements of the template."""
    text = page.decode()
    assert len(re.findall(r"<script\b", text)) == len(re.findall(r"</script", text)) == 2 and "<!--" not in text
    return json.loads(re.search(r'<script type="application/json" id="data">\n(.*?)</script>', text, re.S).group(1))["runs"]


def event(kind, **changes):
    step = {"event": "step", "step": 1, "loss": 3.5, "grad_norm": 1.25, "lr": 0.001, "ms": 4.5, "tokens_per_s": 1000}
    run = {"event": "run", "step": 0, "title": HOSTILE, "settings": [{"key": "k", "value": HOSTILE, "origin": HOSTILE}]}
    kernel = {"part": "forward", "op": "matmul", "kernel": HOSTILE, "set": "native", "times": 2, "bytes": 8, "usec": 1.5, "predicted_usec": 1.25}
    arena = {"event": "arena", "step": 0, "bytes": 64, "launches": 1, "regions": [{"name": "temp", "at": 0, "bytes": 64}],
             "parts": [{"name": "forward", "first": 0}], "tensors": [{"name": HOSTILE, "region": 0, "at": 0, "bytes": 64, "first": 0, "last": 0}]}
    mesh = {"event": "mesh", "step": 0, "devices": 2, "data": 2, "tensor": 1, "zero": 0, "ranks": "threads", "communicator": "threads"}
    return {"step": step, "run": run, "mesh": mesh, "arena": arena, "kernels": {"event": "kernels", "step": 1, "launches": [kernel]}}[kind] | changes


def log(*events):
    return "".join((e if isinstance(e, str) else json.dumps(e)) + "\n" for e in events)


def test_a_page_holds_the_lines_of_its_runs(f):
    f.train(*RUN, "--json", "a.jsonl", "--report", "a.html").succeeded()
    f.train(*RUN, "--json", "b.jsonl", "--learning-rate", "5e-3", "--trace", "trace.json").succeeded()
    kinds = [e["event"] for e in lines_of(f, "a.jsonl")]
    assert kinds[:2] == ["run", "arena"] and kinds.count("step") == 24 and kinds[-1] == "done", kinds
    (own,) = data_of(f.read("a.html"))
    assert own == {"name": "a.jsonl", "left_out": 0, "lines": lines_of(f, "a.jsonl")}
    done = f.run("report", "a.jsonl", "b.jsonl", "--out", "both.html").succeeded()
    assert done.out == "page both.html\n"
    assert [(run["name"], run["lines"]) for run in data_of(f.read("both.html"))] == [(name, lines_of(f, name)) for name in ("a.jsonl", "b.jsonl")]
    assert "kernels" in {e["event"] for e in lines_of(f, "b.jsonl")}


def test_the_lines_say_where_settings_come_from_and_where_tensors_lie(f):
    f.write("c.toml", "[training]\nwarmup = 3\n")
    f.train("--steps", "3", "--config", "c.toml", "--json", "log", "--trace", "trace.json", "--step-list", "steps", env={"ISOTOPE_BETA1": "0.8"}).succeeded()
    run, arena = lines_of(f, "log")[:2]
    settings = {s["key"]: (s["value"], s["origin"]) for s in run["settings"]}
    assert settings["training.steps"] == (3, "flag --steps") and settings["training.beta1"] == (0.8, "variable ISOTOPE_BETA1"), settings
    assert settings["training.warmup"][0] == 3 and settings["training.warmup"][1].startswith("c.toml") and settings["training.clip"][1], settings
    # The regions are those of the list of steps, and what a step reads or writes lies within tensors that are alive then.
    rows = [line.split("\t") for line in f.read("steps").decode().splitlines() if not line.startswith("#")]
    assert [(r["name"], r["at"], r["bytes"]) for r in arena["regions"]] == [(n, int(at), int(b)) for kind, n, at, b in (r[:4] for r in rows if r[0] == "region")]
    assert arena["launches"] == sum(r[0] == "step" for r in rows)
    names = [r["name"] for r in arena["regions"]]
    for kind, index, _, _, _, region, at, size in (r for r in rows if r[0] in ("in", "out")):
        if region == "packed":
            continue
        alive = [t for t in arena["tensors"] if t["first"] <= int(index) <= t["last"] and names[t["region"]] == region]
        first, end = int(at), int(at) + int(size)
        for t in sorted(alive, key=lambda t: t["at"]):
            if t["at"] <= first + 252:  # tensors of a region begin at multiples of 256 bytes or follow one another
                first = max(first, t["at"] + t["bytes"])
        assert first >= end or region in ("grad", "moment", "param", "master"), (kind, index, region, at, size)
    assert {"wte.weight", "gradient of wte.weight", "first moment of wte.weight", "second moment of wte.weight"} <= {t["name"] for t in arena["tensors"]}
    # The kernels are the launches of the trace, added up.
    kernels = next(e for e in lines_of(f, "log") if e["event"] == "kernels")
    traced = [e for e in json.loads(f.read("trace.json"))["traceEvents"] if e["ph"] == "X"]
    assert kernels["step"] == 2 and sum(k["times"] for k in kernels["launches"]) == len(traced)
    for part in ("forward", "backward", "optimizer"):
        ours, theirs = (sum(e[key] for e in all_ if e[name] == part) for all_, key, name in ((kernels["launches"], "usec", "part"), (traced, "dur", "cat")))
        assert math.isclose(ours, theirs, abs_tol=0.01 * len(traced)), (part, ours, theirs)


def test_a_resumed_run_has_a_page_of_the_whole_run(f):
    run = [*RUN, "--checkpoint-dir", "run", "--json", "log", "--report", "page.html"]
    f.train(*run, "--stop-after", "9").succeeded()
    f.train(*run, "--resume").succeeded()
    (page,) = data_of(f.read("page.html"))
    assert page["lines"] == lines_of(f, "log")
    assert [e["step"] for e in page["lines"] if e["event"] == "step"] == list(range(1, 25))
    assert [e["step"] for e in page["lines"] if e["event"] == "run"] == [0, 9]


def test_no_text_of_a_log_leaves_its_data(f):
    f.write("a<b>.jsonl", log(*(event(kind) for kind in ("run", "arena", "kernels", "step"))))
    f.run("report", "a<b>.jsonl", "--out", "page.html").succeeded()
    (page,) = data_of(f.read("page.html"))
    assert page["name"] == "a<b>.jsonl" and page["lines"][0]["title"] == HOSTILE and page["lines"][1]["tensors"][0]["name"] == HOSTILE


def test_a_damaged_line_is_named_and_a_cut_end_is_left_out(f):
    good = log(event("run"), event("step"))
    deep = '{"event":"step","step":' + "[" * 40 + "]" * 40 + "}"
    for line, *parts in (("no JSON", "not JSON"), ('{"event":"step","step":1', "not JSON"), (deep, "not JSON"), ("[1]", "an array, not an event"), ("{}", "no 'event'"),
                         ('{"event":7}', "no 'event'"), ('{"event":"step","event":"step"}', "stands twice"), (b"\xff\xfe".decode("latin1"), "not JSON"),
                         (event("step", loss="3"), "has 'loss', which is a string"), (event("step", step=None), "has 'step', which is null"),
                         (json.dumps(event("step")).replace("3.5", "1e999"), "has 'loss', which is 1e999"), (event("step", predicted_ms="fast"), "predicted_ms"),
                         ('{"event":"eval","step":1}', "no 'val_loss'"), (event("arena", tensors=[{"name": "t", "region": 1, "at": 0, "bytes": 0, "first": 0, "last": 0}]), "number of a region"),
                         (event("arena", tensors=[7]), "whose item 0 is a number"), (event("kernels", launches={}), "which is an object, not an array"),
                         (event("run", settings=[{"key": "k", "value": [], "origin": ""}]), "item 0 has 'value', which is an array")):
        f.write("bad.jsonl", good + log(line) + good)
        f.run("report", "bad.jsonl", "--out", "page.html").refused(2, "bad.jsonl:3", *parts)
    assert not (f.path / "page.html").exists()
    f.write("cut.jsonl", good + '{"event":"later","x":1}\n\n' + json.dumps(event("step"))[:30])
    assert f.run("report", "cut.jsonl", "--out", "page.html").succeeded().out == "page page.html, 2 lines left out\n"
    (page,) = data_of(f.read("page.html"))
    assert page["left_out"] == 2 and page["lines"] == [json.loads(line) for line in good.splitlines()]
    for name, content in (("empty", ""), ("strange", '{"event":"x"}\n')):
        f.write(name, content)
        f.run("report", name, "--out", "page.html").refused(2, name, "holds no event")
    f.run("report", "nowhere", "--out", "page.html").refused(2, "nowhere")
    f.run("report", "cut.jsonl").refused(2, "--out")
    f.run("report", "--out", "page.html").refused(2, "needs the JSON lines")
    f.run("report", "cut.jsonl", "--out", "no/page.html").refused(1, "no/page.html")
    f.train("--report", "no/page.html").refused(2, "no/page.html", "folder does not exist")


def test_a_page_that_cannot_be_written_leaves_the_old_one(f):
    f.write("log", log(event("step")))
    f.write("page.html", "the old page")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    f.run("report", "log", "--out", "page.html", preexec_fn=limit).refused(1, "page.html")
    assert f.read("page.html") == b"the old page" and f.names(".") == ["log", "page.html", "text"]


class Page(HTMLParser):
    """The tables, tiles and boxes of a page that a browser has drawn."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tiles, self.names, self.boxes, self.chart, self.tile, self.paths = {}, {}, {}, {}, None, None, {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if tag == "figure":
            self.chart = a["data-chart"]
            self.rows[self.chart], self.names[self.chart], self.paths[self.chart] = [], [], 0
            self.boxes[self.chart] = [float(x) for x in a["data-box"].split()]
        elif tag == "tr" and self.chart:
            self.rows[self.chart].append([])
        elif tag == "td" and self.chart:
            self.rows[self.chart][-1].append(float(a["data-value"]) if "data-value" in a else None)
        elif tag == "rect" and "data-name" in a:
            self.names[self.chart].append(a["data-name"])
        elif tag == "path" and a.get("class") == "series":
            self.paths[self.chart] += 1
        elif "data-figure" in a:
            self.tile = a["data-figure"]
        elif "data-value" in a and "data-run" in a:
            self.tiles[self.tile, int(a["data-run"])] = float(a["data-value"])

    def handle_endtag(self, tag):
        if tag == "figure":
            self.chart = None


def browser(f, page, width, height, *more):
    done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--user-data-dir=" + str(f.path / "profile"),
                           f"--window-size={width},{height}", *more, (f.path / page).as_uri() + "#figures"], capture_output=True, check=True, timeout=120)
    assert b"CONSOLE" not in done.stderr, done.stderr
    return done.stdout.decode()


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PROBE = """<script>document.querySelectorAll("figure > svg").forEach(x => {
  const b = x.getBoundingClientRect();
  x.parentNode.setAttribute("data-box", [b.left + scrollX, b.top + scrollY, b.width, b.height].join(" "));
});</script></body>"""


def pixels(png):
    """Width and rows of (r, g, b) bytes of a PNG with 8 bits a channel."""
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, _, depth, colours = struct.unpack(">IIBB", png[at + 8:at + 18])
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    assert depth == 8 and colours in (2, 6), (depth, colours)
    n = 3 if colours == 2 else 4
    raw, before, rows = zlib.decompress(data), bytearray(width * n), []
    for start in range(0, len(raw), width * n + 1):
        kind, row = raw[start], bytearray(raw[start + 1:start + 1 + width * n])
        for i in range(len(row) if kind else 0):
            a, b, c = row[i - n] if i >= n else 0, before[i], before[i - n] if i >= n else 0
            p = a + b - c
            nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            row[i] = (row[i] + (a, b, (a + b) // 2, nearest)[kind - 1]) & 255
        before = row
        rows.append([bytes(row[i:i + 3]) for i in range(0, len(row), n)])
    return rows


def test_a_browser_draws_the_figures_of_the_lines(f):
    if BROWSER is None:
        skip("no chromium is installed")
    f.train(*RUN, "--json", "a.jsonl", "--report", "own.html").succeeded()
    f.write("b.jsonl", log(*(event(kind) for kind in ("run", "mesh", "arena", "kernels")), *(event("step", step=i, loss=3 / i, predicted_ms=4.25) for i in range(1, 9)), event("step", step=9, loss=None)))
    f.run("report", "a.jsonl", "b.jsonl", "--out", "page.html").succeeded()
    f.write("page.html", f.read("page.html").decode().replace("</body>", PROBE))
    drawn = browser(f, "page.html", 640, 900, "--dump-dom")
    assert "these are the launches of rank 0" in drawn and "the memory of rank 0" in drawn and drawn.count("<small>of rank 0</small>") == 0
    page = Page(drawn)
    runs = [lines_of(f, name) for name in ("a.jsonl", "b.jsonl")]
    of = lambda run, kind: [e for e in runs[run] if e["event"] == kind]
    for chart, key in (("norm", "grad_norm"), ("lr", "lr"), ("tokens", "tokens_per_s")):
        columns = [{e["step"]: e[key] for e in of(run, "step")} for run in (0, 1)]
        assert page.rows[chart][1:] == [[i, *(c.get(i) for c in columns)] for i in range(1, 25)], chart
        assert page.paths[chart] == 2
    losses = [{e["step"]: e["loss"] for e in of(run, "step")} for run in (0, 1)] + [{e["step"]: e["val_loss"] for e in of(0, "eval")}]
    assert page.rows["loss"][1:] == [[i, *(c.get(i) for c in losses)] for i in range(1, 25)], page.rows["loss"]
    for run in (0, 1):
        kernels, arena = of(run, "kernels")[-1]["launches"], of(run, "arena")[-1]["tensors"]
        shown = [[x for x in row if x is not None] for row in page.rows[f"kernels-{run}"][1:]]
        assert shown == [[k[key] for key in ("times", "usec", "bytes", "predicted_usec") if key in k] for k in kernels]
        assert [[x for x in row if x is not None] for row in page.rows[f"arena-{run}"][1:]] == [[t[k] for k in ("at", "bytes", "first", "last")] for t in arena]
        assert page.names[f"arena-{run}"] == [t["name"] for t in arena if t["bytes"]]
        assert {f"{k['kernel']} ({k['set']})" for k in kernels if k["set"] and k["usec"]} <= set(page.names[f"kernels-{run}"])
        for tile, key in (("ms", "ms"), ("tokens", "tokens_per_s")):
            assert page.tiles[tile, run] == statistics.median(e[key] for e in of(run, "step")), (tile, run)
    done = of(0, "done")[0]
    for tile, key in (("planned", "planned_bytes"), ("measured", "measured_bytes"), ("seconds", "seconds"), ("best", "best_val_loss"), ("steps", "steps")):
        assert page.tiles[tile, 0] == done[key] and (tile, 1) not in page.tiles or tile == "steps", tile
    assert page.tiles["predicted", 1] == 4.25 and ("predicted", 0) not in page.tiles
    # The picture: every chart has many pixels of its lines or boxes, and a page without lines to draw has none there.
    f.write("small.html", f.read("page.html").decode().replace("location.hash", '""'))
    box = Page(browser(f, "small.html", 640, 900, "--dump-dom")).boxes
    height = int(max(y + h for _, y, _, h in box.values())) + 20
    browser(f, "small.html", 640, height, "--screenshot=" + str(f.path / "page.png"))
    rows = pixels(f.read("page.png"))
    for chart, (x, y, w, h) in box.items():
        inside = [p for row in rows[int(y):int(y + h)] for p in row[int(x):int(x + w)]]
        coloured = sum(max(p) - min(p) > 24 for p in inside)  # paper, grid and letters are grey
        assert coloured > 150 and coloured < len(inside), (chart, coloured, len(inside))


if __name__ == "__main__":
    main(globals())
