"""A running isotope-serve, and requests to it, for the tests of the program."""

import http.client
import json
import re
import signal
import socket
import subprocess
import threading

import tiny_model
from program import ENVIRONMENT, skip

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


def asks(count):
    return [{"prompt": "the " * (k % 7) + "a" * (1 + k % 3), "max_tokens": 10 + 7 * k % 40, "temperature": 0.5 + k % 5 / 4, "seed": k} for k in range(count)]


def needs_equal_bits(f):
    if "BACKEND=cpu" not in f.run("serve", "--version").out:
        skip("kernels of a GPU depend on the number of rows")
