#!/usr/bin/env python3
"""Compares the ids of isotope-tokenize with those of Hugging Face tokenizers: every code point between letters, and random strings of awkward parts.

usage: tokenizers_fuzz.py ISOTOPE_TOKENIZE TOKENIZER.json [STRINGS [SEED]]

Needs `pip install tokenizers`. Prints each difference, at most 20, and the counts; exits with 1 if there is a difference.
"""

import json
import random
import subprocess
import sys

from tokenizers import Tokenizer

PARTS = ["'s", "'S", "'ll", "'LL", "'re", "'\u017f", "don't", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\x00", "\x1f", "1", "12345", "\u0661\u0662",
         "\u00bd", "hello", " World", "\u00e9", "e\u0301", "\u1e9b\u0323", "\uac01", "\u1100\u1161\u11a8", "\u4e2d\u6587", "\u304b\u3099", "\U0001f600",
         "\U0001f468\u200d\U0001f469", "\ufb01", "\u0130", "\u1e9e", "\u03a3", "\ufeff", "\u200b", "\ufffd", "!", "...", "$5.00", "[SEP]", "[sep]", "<|endoftext|>",
         "<|begin_of_text|>", "<|im_start|>", "<tool_call>", "n\u00e9w", "a" * 120, "\u0301\u0316\u0334", "<|", "|>", "##", "_", "-"]


def strings(count, seed):
    chance = random.Random(seed)
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            yield f"a{chr(code)}b {chr(code)} {chr(code)}{chr(code)}1"

    def part():
        if chance.random() < 0.6:
            return chance.choice(PARTS)
        top = chance.choice([0x80, 0x250, 0x600, 0x3100, 0x10000, 0x110000])
        code = chance.randrange(top)
        return chr(code) if not 0xD800 <= code < 0xE000 else "\ue000"

    for _ in range(count):
        yield "".join(part() for _ in range(chance.randint(1, 12)))


def main():
    program, path = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    theirs = Tokenizer.from_file(path)
    theirs.no_truncation()
    theirs.no_padding()
    compared = different = 0
    batch = []

    def flush():
        nonlocal compared, different
        text = "".join(json.dumps(s) + "\n" for s in batch)
        done = subprocess.run([program, "encode", path, "--json"], input=text, capture_output=True, text=True, check=True)
        for s, line, theirs_of_s in zip(batch, done.stdout.splitlines(), theirs.encode_batch(batch), strict=True):
            ours = json.loads(line)
            compared += 1
            if ours["ids"] == theirs_of_s.ids and ours["types"] == theirs_of_s.type_ids:
                continue
            different += 1
            if different <= 20:
                print(f"{json.dumps(s)}\n  isotope    {ours['ids']}\n  tokenizers {theirs_of_s.ids}")
        batch.clear()

    for s in strings(count, seed):
        batch.append(s)
        if len(batch) == 50_000:
            flush()
    if batch:
        flush()
    print(f"{path}: {compared} strings compared, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
