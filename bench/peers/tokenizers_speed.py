#!/usr/bin/env python3
"""Times isotope's tokenizer beside Hugging Face tokenizers and, for GPT-2's split, tiktoken, in alternation; processor time of one thread.

usage: tokenizers_speed.py BENCH_TOKENIZER TOKENIZER.json TEXT [ROUNDS]

Needs `pip install tokenizers tiktoken`. Prints the best figure of each, whether all made the same ids, and the ratios.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers  # noqa: E402

GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def digest(ids):
    h = 0
    for i in ids:
        h = (h * 31 + i) & 0xFFFFFFFF
    return h


def timed(work):
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def tiktoken_of(path):
    """The same tokenizer for tiktoken, or None if its text is not split as GPT-2's."""
    data = json.loads(pathlib.Path(path).read_text())
    if data["model"].get("type") == "WordPiece" or (data.get("pre_tokenizer") or {}).get("type") != "ByteLevel":
        return None
    import tiktoken

    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    of = {chr(b): b for b in plain} | {chr(256 + n): b for n, b in enumerate(b for b in range(256) if b not in plain)}
    special = {a["content"]: a["id"] for a in data["added_tokens"]}
    ranks = {bytes(of[c] for c in k): i for k, i in data["model"]["vocab"].items() if k not in special}
    return tiktoken.Encoding("same", pat_str=GPT2, mergeable_ranks=ranks, special_tokens=special)


def main():
    bench, path, file = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    text = pathlib.Path(file).read_text()
    megabytes = len(text.encode()) / 1e6
    open_s, hf = timed(lambda: tokenizers.Tokenizer.from_file(path))
    tik = tiktoken_of(path)
    best = {}

    def keep(name, **figures):
        row = best.setdefault(name, {})
        for key, value in figures.items():
            less = key in ("open_ms",)
            row[key] = value if key not in row or key in ("ids", "digest") else (min if less else max)(row[key], value)

    for _ in range(rounds):
        ours = json.loads(subprocess.run([bench, path, file, "3"], capture_output=True, text=True, check=True).stdout)
        keep("isotope", **{k: v for k, v in ours.items() if k != "name"})
        seconds, made = timed(lambda: hf.encode(text))
        back, _ = timed(lambda: hf.decode(made.ids, skip_special_tokens=False))
        keep("tokenizers", open_ms=1e3 * open_s, encode_mb_s=megabytes / seconds, decode_mb_s=megabytes / back, ids=len(made.ids), digest=digest(made.ids))
        if tik:
            seconds, made = timed(lambda: tik.encode(text, allowed_special="all"))
            back, _ = timed(lambda: tik.decode(made))
            keep("tiktoken", encode_mb_s=megabytes / seconds, decode_mb_s=megabytes / back, ids=len(made), digest=digest(made))
    for name, row in best.items():
        print(f"{name:11}", "  ".join(f"{k} {v:.1f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()))
    print("same ids:", len({row["digest"] for row in best.values()}) == 1)
    for name in best:
        if name != "isotope":
            print(f"isotope / {name}: encode {best['isotope']['encode_mb_s'] / best[name]['encode_mb_s']:.1f}, "
                  f"decode {best['isotope']['decode_mb_s'] / best[name]['decode_mb_s']:.1f}")


if __name__ == "__main__":
    main()
