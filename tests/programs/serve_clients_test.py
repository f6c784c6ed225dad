"""isotope-serve: slow, hostile and vanished clients cost nobody an answer, and what the server has no room for is refused."""

import json
import socket
import struct

from program import main
from serve_rig import Server, chunks_of, everything, request


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


if __name__ == "__main__":
    main(globals())
