"""isotope-serve: vectors over HTTP are those of isotope-embed, in any company."""

import base64
import json
import struct

from program import main
from serve_rig import Server, at_once, needs_equal_bits


def vectors(answer):
    return [tuple(d["embedding"]) for d in answer["data"]]


def test_vectors_are_those_of_isotope_embed_in_any_company(f):
    needs_equal_bits(f)
    lines = ["a cat sleeps", "the kitten naps", "not a cat.", "\u00e9t\u00e9", "the", "a kitten"]
    f.write("lines", "".join(line + "\n" for line in lines))
    with Server(f, "bert") as s:
        done = f.run("embed", "--model", "bert", "lines", "--threads", "1")
        want = [tuple(json.loads(line)["embedding"]) for line in done.out.splitlines()]
        answer = s.good("/v1/embeddings", {"input": lines})
        assert vectors(answer) == want and [d["index"] for d in answer["data"]] == list(range(6)), answer
        ids = [s.good("/tokenize", {"content": line, "add_special": True})["tokens"] for line in lines]
        assert answer["usage"] == {"prompt_tokens": sum(map(len, ids)), "total_tokens": sum(map(len, ids))}
        assert vectors(s.good("/v1/embeddings", {"input": ids})) == want
        coded = s.good("/v1/embeddings", {"input": lines[0], "encoding_format": "base64"})["data"][0]["embedding"]
        assert base64.b64decode(coded, validate=True) == struct.pack("<24f", *want[0])
        got = at_once([lambda k=k: vectors(s.good("/v1/embeddings", {"input": lines[k % 6:] + lines[:k % 6]})) for k in range(40)])
        assert all(g == want[k % 6:] + want[:k % 6] for k, g in enumerate(got)), "forty clients"
        assert s.metric("embedded_texts_total") == 6 + 6 + 1 + 240 and s.metric("embedding_runs_total") <= 43
        for body, part in (({"input": "cat " * 30}, "text 1: the text has 32 ids, and the limit is 16"), ({"input": [[5] * 17]}, "17 ids, and the limit is 16"),
                           ({"input": "a", "dimensions": 8}, "dimensions: is 8"), ({"input": [[96]]}, "the id 96")):
            status, wrong, _ = s.ask("/v1/embeddings", body)
            assert status == 400 and part in wrong["error"]["message"], wrong
        status, wrong, _ = s.ask("/v1/completions", {"prompt": "a"})
        assert status == 400 and "use /v1/embeddings" in wrong["error"]["message"], wrong
        assert s.stop() == (0, "")


if __name__ == "__main__":
    main(globals())
