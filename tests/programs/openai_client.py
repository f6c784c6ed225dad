"""openai_client.py PROGRAMS: OpenAI's Python client asks isotope-serve. The last line counts the checks. See .ci/openai."""

import struct
import tempfile
import traceback

import openai
from program import Folder
from serve_rig import Server


def texts(s, client):
    how = {"model": "gpt", "prompt": "the end", "max_tokens": 40, "seed": 7, "temperature": 0.75}
    want = s.text(**how)
    whole = client.completions.create(**how)
    assert whole.choices[0].text == want and whole.usage.completion_tokens == 40
    assert "".join(c.choices[0].text for c in client.completions.create(stream=True, **how)) == want
    *chunks, last = client.completions.create(stream=True, stream_options={"include_usage": True}, **how)
    assert last.usage.total_tokens == whole.usage.total_tokens and len(chunks) > 5


def chats(s, client):
    how = {"model": "gpt", "messages": [{"role": "user", "content": "on a"}], "max_completion_tokens": 30, "seed": 7}
    want = s.good("/v1/chat/completions", how)["choices"][0]["message"]["content"]
    answer = client.chat.completions.create(**how)
    assert answer.choices[0].message.content == want and answer.choices[0].finish_reason in ("length", "stop")
    stream = list(client.chat.completions.create(stream=True, **how))
    assert stream[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in stream) == want


def errors(s, client):
    for ask, kind in ((lambda: client.completions.create(model="other", prompt="a"), openai.NotFoundError),
                      (lambda: client.completions.create(model="gpt", prompt="a", n=2), openai.BadRequestError),
                      (lambda: client.embeddings.create(model="gpt", input="a"), openai.BadRequestError),
                      (lambda: client.with_options(api_key="wrong").models.list(), openai.AuthenticationError)):
        try:
            ask()
            raise AssertionError(f"no {kind.__name__}")
        except kind as error:
            assert "fix: " in str(error), error
    assert [m.id for m in client.models.list()] == ["gpt"]


def vectors(s, client):
    lines = ["a cat sleeps", "the kitten naps"]
    want = [d["embedding"] for d in s.good("/v1/embeddings", {"input": lines}, headers={"Authorization": "Bearer KEY"})["data"]]
    got = client.embeddings.create(model="bert", input=lines)  # the client asks for base64
    assert [struct.pack("<24f", *d.embedding) for d in got.data] == [struct.pack("<24f", *w) for w in want] and got.usage.total_tokens > 0
    assert client.embeddings.create(model="bert", input=lines, encoding_format="float").data[1].embedding == want[1]


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="isotope-programs-") as path:
        f = Folder(path)
        f.write("keys", "KEY\n")
        for folder, checks in (("gpt", (texts, chats, errors)), ("bert", (vectors,))):
            for check in checks:
                keys = ["--api-key-file", "keys"] if check in (errors, vectors) else []
                with Server(f, folder, *keys) as s:
                    client = openai.OpenAI(base_url=s.address + "/v1", api_key="KEY", max_retries=0, timeout=60)
                    try:
                        check(s, client)
                        passed += 1
                    except Exception:
                        traceback.print_exc()
                        print(f"{check.__name__} failed")
                        failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    raise SystemExit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
