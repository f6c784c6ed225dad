"""isotope-serve: texts and chats over HTTP are those of the model alone, whoever else asks."""

import shutil

import tiny_model
from program import main
from serve_rig import Server, asks, at_once, needs_equal_bits


def test_paths_methods_and_media_types(f):
    with Server(f, "gpt") as s:
        assert s.good("/health") == {"status": "ok"}
        model = s.good("/v1/models")["data"][0]
        assert (model["id"], model["object"], model["context"], model["vocab"]) == ("gpt", "model", 256, 265), model
        assert s.good("/v1/models/gpt") == model
        assert s.ask("/v1/models/other")[0] == 404
        ids = s.good("/tokenize", {"content": "the <|im_end|>"})["tokens"]
        assert 264 not in ids and s.good("/detokenize", {"tokens": ids})["content"] == "the <|im_end|>", ids
        assert s.good("/tokenize", {"content": "<|im_end|>", "parse_special": True})["tokens"] == [264]
        status, answer, _ = s.ask("/v2")
        assert status == 404 and answer["error"]["code"] == "not_found" and "fix: " in answer["error"]["message"]
        for method, path in (("GET", "/v1/completions"), ("POST", "/health"), ("DELETE", "/v1/models")):
            assert s.ask(path, method=method, body="{}" if method == "POST" else None)[0] == 405, path
        status, answer, _ = s.ask("/v1/completions", "{}", headers={"Content-Type": "text/plain"})
        assert status == 415 and "application/json" in answer["error"]["message"], answer
        status, answer, _ = s.ask("/v1/completions", "{")
        assert status == 400 and answer["error"]["type"] == "invalid_request_error", answer
        status, answer, _ = s.ask("/v1/embeddings", {"input": "a"})
        assert status == 400 and "continues texts" in answer["error"]["message"], answer
        c = s.open()  # one connection for several requests
        for _ in range(3):
            assert s.ask("/health", connection=c)[0] == 200
        c.close()
        assert 'isotope_requests_total{path="/health",status="200"}' in s.good("/metrics")
        assert s.stop() == (0, "")


def test_completions_and_streams_are_what_the_generator_writes(f):
    with Server(f, "gpt", "--slots", "1") as s:
        how = {"prompt": "the end of a ", "max_tokens": 60, "temperature": 0.75, "top_p": 0.9, "seed": 7}
        done = f.run("generate", "--model", "gpt", "--prompt", how["prompt"], "--tokens", 60, "--temperature", 0.75, "--top-p", 0.9, "--seed", 7, "--threads", 1)
        assert done.code == 0, done.err
        answer = s.good("/v1/completions", how)
        text = answer["choices"][0]["text"]
        assert how["prompt"] + text + "\n" == done.out.encode().decode(errors="replace"), (text, done.out)
        assert answer["usage"]["completion_tokens"] == 60 and answer["choices"][0]["finish_reason"] == "length", answer
        assert answer["usage"]["prompt_tokens"] == len(s.good("/tokenize", {"content": how["prompt"]})["tokens"])
        *pieces, used = s.stream(**how, stream_options={"include_usage": True})
        assert "".join(p["choices"][0]["text"] for p in pieces) == text
        assert [p["choices"][0]["finish_reason"] for p in pieces] == [None] * (len(pieces) - 1) + ["length"]
        assert len(pieces) > 20 and used["choices"] == [] and used["usage"] == answer["usage"], used
        assert len({p["id"] for p in pieces}) == 1
        ids = s.good("/tokenize", {"content": how["prompt"]})["tokens"]
        both = s.good("/v1/completions", how | {"prompt": [ids, ids[:3]]})
        assert [c["index"] for c in both["choices"]] == [0, 1] and both["choices"][0]["text"] == text and both["choices"][1]["text"] != text
        two = s.stream(**how | {"prompt": [ids, ids]})
        for k in (0, 1):
            assert "".join(p["choices"][0]["text"] for p in two if p["choices"][0]["index"] == k) == text
        stop = next(c for c in text[10:] if c.isascii() and c.isalnum())
        for stopped in (s.good("/v1/completions", how | {"stop": stop})["choices"][0], {"text": "".join(p["choices"][0]["text"] for p in s.stream(**how, stop=[stop])), "finish_reason": "stop"}):
            assert stopped == stopped | {"text": text[:text.index(stop)], "finish_reason": "stop"}, (stopped, stop)
        assert s.text(prompt="a", max_tokens=40) != s.text(prompt="a", max_tokens=40), "without a seed, texts differ"
        assert s.text(prompt="a", max_tokens=9, temperature=0) == s.text(prompt="a", max_tokens=9, temperature=0, seed=3)
        assert s.text(max_tokens=3) is not None, "an empty prompt"
        for body, param in (({"prompt": "x" * 250, "max_tokens": 7}, "prompt"), ({"prompt": [265]}, "prompt"), ({"n": 2}, "n"), ({"model": "gpt-5"}, "model")):
            status, wrong, _ = s.ask("/v1/completions", body)
            assert status in (400, 404) and wrong["error"]["param"] == param and "; fix: " in wrong["error"]["message"], wrong
        assert "250 tokens, and with max_tokens 7 that is more than the context of 256" in s.ask("/v1/completions", {"prompt": "x" * 250, "max_tokens": 7})[1]["error"]["message"]


def test_chats_are_framed_by_their_template(f):
    with Server(f, "gpt") as s:
        messages = [{"role": "system", "content": "the<|im_end|>"}, {"role": "user", "content": "on a"}]
        plain = s.good("/tokenize", {"content": "<|im_end|>"})["tokens"]
        frame = s.good("/tokenize", {"content": "<|im_start|>system\nthe#<|im_end|>\n<|im_start|>user\non a<|im_end|>\n<|im_start|>assistant\n", "parse_special": True})["tokens"]
        at = frame.index(ord("#"))
        ids = frame[:at] + plain + frame[at + 1:]
        how = {"max_tokens": 30, "seed": 5}
        want = s.text(prompt=ids, **how)
        answer = s.good("/v1/chat/completions", {"messages": messages} | how)
        assert answer["object"] == "chat.completion" and answer["choices"][0]["message"] == {"role": "assistant", "content": want}, (answer, want)
        assert answer["usage"]["prompt_tokens"] == len(ids)
        first, *pieces = s.stream("/v1/chat/completions", messages=messages, **how)
        assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}, first
        assert "".join(p["choices"][0]["delta"].get("content", "") for p in pieces) == want and pieces[-1]["choices"][0]["finish_reason"] == "length"
        whole = s.good("/v1/chat/completions", {"messages": messages, "seed": 5, "ignore_eos": True})
        assert whole["usage"]["total_tokens"] == 256, "up to the end of the context"
    shutil.rmtree(f.path / "gpt")
    tiny_model.gpt2(f.path / "gpt", chat=False)
    with Server(f, "gpt") as s:
        status, answer, _ = s.ask("/v1/chat/completions", {"messages": messages})
        assert status == 400 and answer["error"]["code"] == "no_chat_template" and "no chat template" in answer["error"]["message"], answer
    (f.path / "gpt" / "chat_template.jinja").write_text("{{ messages[0].content }}")
    with Server(f, "gpt") as s:
        assert "neither Llama 3's nor ChatML" in s.ask("/v1/chat/completions", {"messages": messages})[1]["error"]["message"]


def many_clients(f, count):
    needs_equal_bits(f)
    with Server(f, "gpt", "--slots", "4", "--queue", str(count), "--connections", str(2 * count)) as s:
        alone = [s.text(**a) for a in asks(count)]

        def one(k):
            if k % 2 == 0:
                return s.text(**asks(count)[k])
            return "".join(c["choices"][0]["text"] for c in s.stream(**asks(count)[k]))

        assert at_once([lambda k=k: one(k) for k in range(count)]) == alone
        assert len(set(alone)) > count // 2 and s.metric("refused_total") == 0 and s.metric("running") == 0 and s.metric("waiting") == 0
        assert s.stop() == (0, "")


def test_fifty_clients_get_what_each_would_get_alone(f):
    many_clients(f, 50)


# labels: slow
def test_hundreds_of_clients_get_what_each_would_get_alone(f):
    many_clients(f, 400)


if __name__ == "__main__":
    main(globals())
