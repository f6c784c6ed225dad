"""isotope-conform plan: the number of cases, their generators, and the numeric policies of ops."""

import json
import pathlib
import re

from conform_runs import CPU, backend, last_line
from program import main

TABLE = pathlib.Path(__file__).resolve().parents[2] / "include" / "isotope" / "conform" / "crossing.hpp"


def test_the_full_run_has_twenty_thousand_cases_on_every_backend_in_each_precision(folder):
    # Programs in f16 run only matrix products and attention, so they have cases of these only.
    for where in {"cpu", backend(folder)}:
        for precision in ("f32", "bf16"):
            plan = folder.run("conform", "plan", "--strength", "full", "--backend", where, "--precision", precision).succeeded()
            assert int(last_line(plan).split()[0]) >= 20_000, (where, precision, last_line(plan))


def test_the_table_of_policies_is_what_plan_prints(folder):
    table = pathlib.Path(__file__).resolve().parents[2] / "docs" / "NUMERICS.md"
    assert folder.run("conform", "plan", "--policy").succeeded().out == table.read_text(), "isotope-conform plan --policy > docs/NUMERICS.md"


def test_every_generator_has_standard_cases_of_every_op_that_it_handles(folder):
    generators, ops = set(), set()
    for precision in ("f32", "bf16"):
        lines = folder.run("conform", "plan", "--generators", *CPU, "--precision", precision).succeeded().out.splitlines()
        pairs = [re.fullmatch(r"(\w+): ([a-z ]+), (\d+) cases", line).groups() for line in lines]
        assert len(pairs) >= 500 and len(set(pairs)) == len(pairs), len(pairs)
        without = [pair for pair in pairs if pair[2] == "0"]
        assert not without, f"handled, and no case: {without}"
        generators |= {name for _, name, _ in pairs}
        ops |= {op for op, _, _ in pairs}
    names = set(re.findall(r'case_generator\{\s*"([a-z ]+)"', TABLE.read_text()))
    assert len(names) >= 15 and generators == names, generators ^ names
    listed = {op["op"] for op in json.loads(folder.run("conform", "plan", "--json", *CPU).succeeded().out)}
    # fill has no operands; the operands of sample are given numbers, since its rules are columns of them.
    assert listed - ops == {"fill", "sample"}, f"crossed with nothing: {listed - ops}"


def test_the_plan_lists_ops_attributes_and_defaults(folder):
    ops = json.loads(folder.run("conform", "plan", "--ops", "all", "--json").succeeded().out)
    by_name = {o["op"]: o for o in ops}
    assert len(by_name) >= 45
    attention = {a["name"]: a for a in by_name["attention"]["attributes"]}
    assert attention["heads"]["required"] and attention["causal"]["default"] is True
    assert by_name["layer_norm"]["attributes"][0]["default"] == 1e-5


if __name__ == "__main__":
    main(globals())
