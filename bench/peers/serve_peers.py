#!/usr/bin/env python3
"""Requests for vectors per second of isotope-serve, of llama-cpp-python's server and of infinity-emb, by turns.

    serve_peers.py MODEL TEXT ISOTOPE_SERVE [--llama PYTHON GGUF] [--infinity PROGRAM] [--threads 1 2] [--clients 1 8 32] [--rounds 3]
                   [--seconds 1.5] [--texts 64]

MODEL is the folder of an embedding model, GGUF the same model as bert_gguf.py writes it; PYTHON is that of an environment with
llama-cpp-python[server], PROGRAM is infinity_emb of one with infinity-emb[server,torch]. Each server is a process for each number of THREADS, which
its arithmetic has; it computes in f32 and starts before anything is measured. A request is one text to /v1/embeddings: from 1 to 5 lines of TEXT that
follow each other. For each number of clients, every process in turn answers that many, each with a connection of its own that sends its next request
as soon as it has an answer, for SECONDS, ROUNDS times; the order of processes turns with the rounds. Printed are the median of the rounds'
requests/s, the median and the 99th percentile of all requests' latency, and the server's processor time per request; then, with the best number of
threads of each server, the median of the rounds' ratios of isotope's requests/s to the peer's. Clients share the processor with the server. First the
vectors of all texts are compared: a cosine with isotope's below 0.99 ends the program with exit code 1.
"""
import argparse
import asyncio
import contextlib
import json
import math
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

LINES = (1, 2, 1, 5, 1, 3)  # of the texts, in turn
LEAST_COSINE = 0.99
START_SECONDS = 120
SETTLE_SECONDS = 0.1  # between two measurements: idle threads of OpenMP wait actively at first


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A process, the port on which it answers and the processor time that it has taken."""

    def __init__(self, kind, command, threads):
        self.kind, self.name, self.port = kind, f"{kind} with {threads} thread(s)", free_port()
        several = {key: str(threads) for key in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        offline = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
        self.process = subprocess.Popen([*command, "--port", str(self.port)], env=os.environ | several | offline, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    async def wait_until_it_answers(self, request):
        end = time.perf_counter() + START_SECONDS
        while True:
            try:
                client = await Client.connected(self.port)
                await client.ask(request)
                return client.close()
            except (OSError, EOFError):
                if self.process.poll() is not None or time.perf_counter() > end:
                    sys.exit(f"serve_peers: {self.name} does not answer; fix: run {' '.join(self.process.args)}")
                await asyncio.sleep(0.2)

    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # of all threads, in programs and in the kernel


class Client:
    """A connection that stays open, with one request at a time."""

    @classmethod
    async def connected(cls, port):
        self = cls()
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        return self

    async def ask(self, request):
        self.writer.write(request)
        status, *lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        size = next(int(x.split(b":")[1]) for x in lines if x.lower().startswith(b"content-length:"))
        body = await self.reader.readexactly(size)
        if status.split()[1] != b"200":
            sys.exit(f"serve_peers: {status.decode()}: {body.decode()}")
        return body

    def close(self):
        self.writer.close()


def request_of(text):
    body = json.dumps({"input": text}).encode()
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def texts_of(path, count):
    lines = [line.strip() for line in pathlib.Path(path).read_text().splitlines() if line.strip()]
    found, at = [], 0
    for k in range(count):
        size = LINES[k % len(LINES)]
        found.append(" ".join(lines[at:at + size]))
        at += size
    if at > len(lines):
        sys.exit(f"serve_peers: {count} texts need {at} lines, {path} has {len(lines)}; fix: fewer --texts")
    return found


async def vectors(server, requests):
    """Vectors of all texts, and their number of tokens."""
    client = await Client.connected(server.port)
    answers = [json.loads(await client.ask(r)) for r in requests]
    client.close()
    return [a["data"][0]["embedding"] for a in answers], [a["usage"]["prompt_tokens"] for a in answers]


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


async def measure(server, requests, clients, seconds):
    """Requests per second, all latencies in seconds and the server's processor time per request."""
    await asyncio.sleep(SETTLE_SECONDS)
    connections = [await Client.connected(server.port) for _ in range(clients)]
    latencies = []

    async def ask_until(end, client, at):
        while (begin := time.perf_counter()) < end:
            await client.ask(requests[at % len(requests)])
            latencies.append(time.perf_counter() - begin)
            at += 1

    cpu, begin = server.processor_seconds(), time.perf_counter()
    await asyncio.gather(*(ask_until(begin + seconds, c, 7 * k) for k, c in enumerate(connections)))
    wall, cpu = time.perf_counter() - begin, server.processor_seconds() - cpu
    for c in connections:
        c.close()
    return len(latencies) / wall, latencies, cpu / len(latencies)


async def compare(servers, requests):
    ours, tokens = await vectors(servers[0], requests)
    print(f"{len(requests)} texts of {min(tokens)} to {max(tokens)} tokens, {statistics.mean(tokens):.1f} on average")
    for peer in (s for s in servers if s.kind != servers[0].kind):
        theirs, _ = await vectors(peer, requests)
        least = min(cosine(a, b) for a, b in zip(ours, theirs, strict=True))
        print(f"least cosine of vectors of isotope and of {peer.name}: {least:.6f}", flush=True)
        if not least >= LEAST_COSINE:
            sys.exit(f"serve_peers: vectors differ, the least cosine is {least:.4f}, below {LEAST_COSINE}; fix: give both the same model")


async def run(args, servers):
    requests = [request_of(t) for t in texts_of(args.text, args.texts)]
    for server in servers:
        await server.wait_until_it_answers(requests[0])
    await compare(servers, requests)
    for clients in args.clients:
        found = {s.name: [] for s in servers}
        for server in servers:
            await measure(server, requests, clients, 0.5)
        for k in range(args.rounds):
            for server in servers[k % len(servers):] + servers[:k % len(servers)]:
                found[server.name].append(await measure(server, requests, clients, args.seconds))
        for name, rounds in found.items():
            latencies = sorted(x for r in rounds for x in r[1])
            p50, p99 = (1e3 * latencies[min(len(latencies) - 1, int(q * len(latencies)))] for q in (0.5, 0.99))
            print(f"clients {clients}, {name}: {statistics.median(r[0] for r in rounds):.1f} requests/s, p50 {p50:.1f} ms, p99 {p99:.1f} ms, "
                  f"{1e3 * statistics.median(r[2] for r in rounds):.2f} ms of processor time a request", flush=True)
        best = {}
        for kind in dict.fromkeys(s.kind for s in servers):
            best[kind] = max((found[s.name] for s in servers if s.kind == kind), key=lambda rounds: statistics.median(r[0] for r in rounds))
        ours = best.pop(servers[0].kind)
        for kind, theirs in best.items():
            ratios = [a[0] / b[0] for a, b in zip(ours, theirs)]
            print(f"clients {clients}, isotope / {kind}: {statistics.median(ratios):.2f}, rounds {min(ratios):.2f} to {max(ratios):.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("model", "text", "program"):
        parser.add_argument(name)
    parser.add_argument("--llama", nargs=2)
    parser.add_argument("--infinity")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    for name, default in (("rounds", 3), ("texts", 64)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--seconds", type=float, default=1.5)
    args = parser.parse_args()

    def commands(threads):
        yield "isotope", [args.program, "--model", args.model, "--threads", threads]
        if args.llama:
            yield "llama-cpp-python", [args.llama[0], "-m", "llama_cpp.server", "--model", args.llama[1], "--embedding", "true", "--n_ctx", "512",
                                       "--n_threads", threads, "--n_threads_batch", threads, "--verbose", "false"]
        if args.infinity:
            yield "infinity-emb", [args.infinity, "v2", "--model-id", args.model, "--engine", "torch", "--device", "cpu", "--dtype", "float32",
                                   "--host", "127.0.0.1", "--url-prefix", "/v1", "--log-level", "error", "--no-model-warmup"]

    with contextlib.ExitStack() as stack:
        servers = []
        for threads in args.threads:
            for kind, command in commands(str(threads)):
                servers.append(Server(kind, command, threads))
                stack.callback(servers[-1].process.wait)
                stack.callback(servers[-1].process.terminate)
        print(f"load {os.getloadavg()[0]:.1f}, {args.rounds} rounds of {args.seconds:g} s", flush=True)
        asyncio.run(run(args, servers))
        print(f"load {os.getloadavg()[0]:.1f}")


main()
