"""isotope-serve: texts and vectors over HTTP are those of the model alone, whoever else asks; slow, hostile and vanished clients cost nobody an answer."""

import base64
import http.client
import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading

import tiny_model
from program import ENVIRONMENT, main, skip

JSON = {"Content-Type": "application/json"}


class Server:
    """A running program, and requests to it."""

    def __init__(self, f, folder, *arguments):
        if not (f.path / folder).exists():
            (tiny_model.bert if folder == "bert" else tiny_model.gpt2)(f.path / folder)
        self.process = subprocess.Popen(f.command("serve", ["--model", folder, "--port", "0", "--threads", "1", *arguments]), cwd=f.path, env=ENVIRONMENT,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"isotope-serve listens on (http://127\.0\.0\.1:(\d+))\n", line)
        assert found, (line, self.process.stderr.read() if not line else "")
        self.address, self.port = found[1], int(found[2])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()

    def stop(self):
        """Ends the server as a supervisor does. Returns its exit code and what it wrote on stderr."""
        self.process.send_signal(signal.SIGTERM)
        err = self.process.communicate(timeout=120)[1]
        return self.process.returncode, err

    def open(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, path, body=None, headers=None, method=None, connection=None):
        """Returns status, body and headers of an answer."""
        c = connection or self.open()
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        c.request(method or ("GET" if body is None else "POST"), path, data, (JSON if body is not None else {}) | (headers or {}))
        answer = c.getresponse()
        got = answer.read()
        if connection is None:
            c.close()
        return answer.status, json.loads(got) if answer.headers["Content-Type"] == "application/json" else got.decode(), answer.headers

    def good(self, path, body=None, **more):
        status, answer, _ = self.ask(path, body, **more)
        assert status == 200, (status, answer)
        return answer

    def text(self, **body):
        return self.good("/v1/completions", body)["choices"][0]["text"]

    def stream(self, path="/v1/completions", **body):
        """The chunks of a stream, which must end as it should."""
        return chunks_of(self.good(path, body | {"stream": True}))

    def raw(self, data=b""):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        s.sendall(data)
        return s

    def metric(self, name):
        return int(re.search(rf"^isotope_{name} (\d+)$", self.good("/metrics"), re.MULTILINE)[1])


def chunks_of(events):
    *events, done, nothing = events.split("\n\n")
    assert done == "data: [DONE]" and nothing == "", (done, nothing)
    assert all(e.startswith("data: {") for e in events), events
    return [json.loads(e[6:]) for e in events]


def everything(s):
    """What comes until the other side closes the connection."""
    got = b""
    try:
        while part := s.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    s.close()
    return got


def request(path, body, more=""):
    data = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{more}Content-Length: {len(data)}\r\n\r\n".encode() + data


def at_once(tasks):
    """Runs all functions at the same time and returns their results."""
    results = [None] * len(tasks)

    def run(k):
        results[k] = tasks[k]()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(tasks))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


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


def asks(count):
    return [{"prompt": "the " * (k % 7) + "a" * (1 + k % 3), "max_tokens": 10 + 7 * k % 40, "temperature": 0.5 + k % 5 / 4, "seed": k} for k in range(count)]


def needs_equal_bits(f):
    if "BACKEND=cpu" not in f.run("serve", "--version").out:
        skip("kernels of a GPU depend on the number of rows")


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


def test_a_closed_connection_frees_its_slot(f):
    with Server(f, "gpt", "--slots", "1") as s:
        want = s.text(prompt="a", max_tokens=20, seed=1)
        for streams in (False, True):
            begin = s.metric("generated_tokens_total")
            for k in range(20):
                before = s.metric("generated_tokens_total")
                c = s.raw(request("/v1/completions", {"prompt": "a", "max_tokens": 250, "ignore_eos": True, "stream": streams}))
                while s.metric("generated_tokens_total") == before:
                    pass
                if k % 2 == 0:  # a reset instead of a polite end
                    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                c.close()
                while s.metric("running") > 0:
                    pass
            assert s.metric("generated_tokens_total") - begin < 20 * 250, "not one of twenty texts ended early"
        waiting = [s.raw(request("/v1/completions", {"prompt": "a", "max_tokens": 250, "ignore_eos": True})) for _ in range(30)]
        begin = s.metric("generated_tokens_total")
        for c in waiting:
            c.close()
        assert s.text(prompt="a", max_tokens=20, seed=1) == want
        assert s.metric("generated_tokens_total") - begin < 30 * 250 and s.metric("cancelled_total") > 2
        assert s.stop() == (0, "")


def test_a_full_queue_answers_503_with_a_time(f):
    with Server(f, "gpt", "--slots", "1", "--queue", "2") as s:
        body = {"prompt": "a", "max_tokens": 250, "seed": 1, "ignore_eos": True}
        want = s.text(**body)
        clients = [s.raw(request("/v1/completions", body, "Connection: close\r\n")) for _ in range(60)]
        answers = [everything(c).decode() for c in clients]
        served = [a for a in answers if a.startswith("HTTP/1.1 200")]
        refused = [a for a in answers if a.startswith("HTTP/1.1 503")]
        assert len(served) + len(refused) == 60 and served and refused, (len(served), len(refused))
        for a in served:
            assert json.loads(a.split("\r\n\r\n", 1)[1])["choices"][0]["text"] == want
        for a in refused:
            assert "\r\nRetry-After: 1\r\n" in a and "queue has room for 2 and is full; fix: try again later" in a, a
        assert s.metric("refused_total") == len(refused)
        status, answer, _ = s.ask("/v1/completions", {"prompt": ["a", "b", "c"]})
        assert status == 400 and "room for 2" in answer["error"]["message"], answer


def test_slow_and_half_open_clients_are_left(f):
    with Server(f, "gpt", "--header-seconds", "3", "--body-seconds", "3", "--idle-seconds", "3") as s:
        want = s.text(prompt="a", max_tokens=20, seed=1)
        idle = s.raw()  # says nothing
        half = s.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n")  # stops in the header
        short = s.raw(request("/v1/completions", {"prompt": "a"})[:-3])  # stops in the body
        used = s.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")  # says nothing after an answer
        endless = s.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n" + b" " * 1024 + b"\r\n")
        assert s.text(prompt="a", max_tokens=20, seed=1) == want, "while they are there"
        assert everything(idle) == b"" and everything(half) == b"" and everything(short) == b"" and everything(endless) == b""
        assert everything(used).startswith(b"HTTP/1.1 200 OK")
        assert s.stop() == (0, "")


def test_hostile_and_unusual_requests_cost_nobody_an_answer(f):
    with Server(f, "gpt", "--header-bytes", "1024", "--body-bytes", "4096") as s:
        want = s.text(prompt="a", max_tokens=20, seed=1)
        long = s.raw(b"GET /health HTTP/1.1\r\nX: " + b"x" * 2000 + b"\r\n\r\n")
        large = s.raw(request("/v1/completions", {"prompt": "a" * 5000}))
        chunks = s.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + 5 * (b"400\r\n" + b" " * 1024 + b"\r\n"))
        noise = s.raw(bytes(range(256)) * 8)
        tls = s.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200))
        nested = s.raw(request("/v1/completions", {}, "Connection: close\r\n").replace(b"Content-Length: 2\r\n\r\n{}", b"Content-Length: 4000\r\n\r\n" + b"[" * 4000))
        assert s.text(prompt="a", max_tokens=20, seed=1) == want, "while they are there"
        assert everything(long).startswith(b"HTTP/1.1 431 ")
        for got in (everything(large), everything(chunks)):
            assert got.startswith(b"HTTP/1.1 413 ") and b"more than 4096 bytes; fix: " in got, got
        assert everything(noise).startswith(b"HTTP/1.1 400 ") and everything(tls).startswith(b"HTTP/1.1 400 ")
        assert everything(nested).startswith(b"HTTP/1.1 400 ")
        assert everything(s.raw(b"GET /health HTTP/1.0\r\n\r\n")).endswith(b'{"status":"ok"}'), "HTTP/1.0"
        old = everything(s.raw(request("/v1/completions", {"prompt": "a", "max_tokens": 20, "seed": 1, "stream": True}).replace(b"HTTP/1.1", b"HTTP/1.0")))
        head, events = old.split(b"\r\n\r\n", 1)
        assert b"chunked" not in head and "".join(c["choices"][0]["text"] for c in chunks_of(events.decode())) == want, old
        two = s.raw(request("/v1/completions", {"prompt": "a", "max_tokens": 20, "seed": 1}) + b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        got = everything(two)
        assert got.count(b"HTTP/1.1 200 OK") == 2 and got.endswith(b'{"status":"ok"}'), "requests one after the other on a connection"
        waits = s.raw(request("/v1/completions", {"prompt": "a", "max_tokens": 2}, "Expect: 100-continue\r\nConnection: close\r\n"))
        assert everything(waits).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
        assert s.stop() == (0, "")


def test_connections_beyond_the_limit_are_answered_503(f):
    with Server(f, "gpt", "--connections", "3") as s:
        open_ones = [s.open() for _ in range(3)]
        for c in open_ones:
            assert s.ask("/health", connection=c)[0] == 200
        refused = everything(s.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"))
        assert refused.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in refused and b"3 connections already" in refused, refused
        for c in open_ones:
            assert s.ask("/health", connection=c)[0] == 200
            c.close()


def test_sigterm_answers_what_runs_and_refuses_what_comes(f):
    with Server(f, "gpt", "--slots", "1") as s:
        body = {"prompt": "a", "max_tokens": 250, "seed": 1, "ignore_eos": True}
        want = s.text(**body)
        kept = s.open()
        assert s.ask("/health", connection=kept)[0] == 200
        running = s.raw(request("/v1/completions", body | {"stream": True}))
        head = running.recv(15)
        waiting = [s.raw(request("/v1/completions", body)) for _ in range(3)]
        assert s.good("/health") == {"status": "ok"}, "which comes after them"
        code, err = s.stop()
        assert (code, err) == (0, ""), (code, err)
        stream = head + everything(running)
        assert stream.startswith(b"HTTP/1.1 200 OK") and stream.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), stream[-200:]
        for c in waiting:
            got = everything(c)
            assert got.startswith(b"HTTP/1.1 200 OK") and json.loads(got.split(b"\r\n\r\n", 1)[1])["choices"][0]["text"] == want, got
        assert kept.sock.recv(1) == b"", "an idle connection is closed"
        try:
            s.raw()
            raise AssertionError("the port is still open")
        except ConnectionRefusedError:
            pass


def test_a_key_is_asked_for_and_never_written(f):
    f.write("keys", "first-secret\n\n second-secret \r\n")
    with Server(f, "gpt", "--api-key-file", "keys", "--log-requests", "--served-name", "small") as s:
        body = {"prompt": "a", "max_tokens": 3}
        for headers in ({}, {"Authorization": "Bearer wrong-secret"}, {"Authorization": "first-secret"}, {"Authorization": "Bearer first-secretx"}, {"Authorization": "Bearer "}):
            status, answer, got = s.ask("/v1/completions", body, headers=headers)
            assert status == 401 and answer["error"]["code"] == "invalid_api_key" and got["WWW-Authenticate"] == "Bearer", answer
            assert s.ask("/metrics", headers=headers)[0] == 401
        for key in ("first-secret", "second-secret"):
            assert s.ask("/v1/completions?key=" + key, body | {"model": "small"}, headers={"Authorization": "Bearer " + key})[0] == 200
        assert s.good("/health") == {"status": "ok"}
        code, err = s.stop()
        assert code == 0 and "secret" not in err and err.count("isotope-serve: POST /v1/completions 200 ") == 2 and "POST /v1/completions 401" in err, err


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


def test_bad_input_is_refused_in_one_line(f):
    f.run("serve").refused(2, "--model", "is missing")
    f.run("serve", "--model", "nowhere").refused(2, "nowhere", "no such folder")
    tiny_model.gpt2(f.path / "gpt")
    f.run("serve", "--model", "gpt", "--port", "70000").refused(2, "--port", "is 70000", "0 to 65535")
    f.run("serve", "--model", "gpt", "--slots", "0").refused(2, "--slots", "is 0")
    f.run("serve", "--model", "gpt", "--host", "example.org").refused(2, "'example.org' is no address")
    f.run("serve", "--model", "gpt", "--api-key-file", "missing").refused(2, "missing", "no such file")
    f.write("keys", "\n \n")
    f.run("serve", "--model", "gpt", "--api-key-file", "keys").refused(2, "keys", "has no key")
    f.write("gpt/tokenizer_config.json", "{")
    f.run("serve", "--model", "gpt").refused(2, "tokenizer_config.json", "not JSON")
    f.write("gpt/tokenizer_config.json", "{}")
    with Server(f, "gpt") as s:
        f.run("serve", "--model", "gpt", "--port", s.port).refused(1, f"127.0.0.1:{s.port}", "cannot listen")


def test_the_examples_of_the_document_work(f):
    if shutil.which("curl") is None:
        skip("curl is not there")
    text = (tiny_model.BERT.parents[2] / "docs" / "SERVING.md").read_text()
    commands = re.findall(r"^curl (?:\\\n|[^\n])*", text, re.MULTILINE)
    assert len(commands) >= 8, commands
    f.write("keys", "KEY\n")
    ran = 0
    for folder in ("gpt", "bert"):
        with Server(f, folder, "--api-key-file", "keys") as s:
            for command in commands:
                if ("/v1/embeddings" in command) != (folder == "bert"):
                    continue
                done = subprocess.run(command.replace("http://127.0.0.1:8080", s.address), shell=True, cwd=f.path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
                assert done.returncode == 0 and done.stdout and '"error"' not in done.stdout, (command, done.stdout, done.stderr)
                ran += 1
    assert ran == len(commands)


if __name__ == "__main__":
    main(globals())
