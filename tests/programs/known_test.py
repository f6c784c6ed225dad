"""The corpus of known answers: it is there, every file says where its numbers come from, and a wrong number is found."""

import json
import pathlib

from known_answers import results
from program import main

FILES = sorted((pathlib.Path(__file__).resolve().parents[1] / "conform" / "known").glob("*.json"))


def wrong_by_one_number(case):
    """The case once for each of its expected numbers, with that number changed by a hundredth."""
    def places(c):
        for key in ("outputs", "grads"):
            for k, x in enumerate(c.get(key, [])):
                if isinstance(x, dict):
                    yield from ((x["numbers"], i) for i in range(len(x["numbers"])))
                else:
                    yield c[key], k

    for n in range(len(list(places(case)))):
        wrong = json.loads(json.dumps(case))
        numbers, i = list(places(wrong))[n]
        numbers[i] += 1 if numbers[i] == 0 or isinstance(numbers[i], int) else numbers[i] / 100
        yield wrong


def test_every_number_of_the_corpus_is_looked_at(folder):
    assert len(FILES) >= 10, FILES
    for path in FILES:
        answers = json.loads(path.read_text())
        broken = [wrong for case in answers["cases"] for wrong in wrong_by_one_number(case)]
        for case, result in zip(broken, results(folder, answers | {"cases": broken}, "--backend", "cpu"), strict=True):
            assert result["status"] == "fail", (path.name, case, result)


if __name__ == "__main__":
    main(globals())
