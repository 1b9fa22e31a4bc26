# SPDX-License-Identifier: Apache-2.0
"""Requests to a server over HTTP/1.1 by hand, with as little as possible of the generator's own time: one after the
other, as many as go, and at a fixed rate. One thread, plain sockets, one epoll: a wait in asyncio costs more than a
small server. Used by server_load.py and by the soak of tests/server."""
import itertools
import json
import math
import re
import select
import socket
import subprocess
import tempfile
import time
from collections import deque
from contextlib import contextmanager
from types import SimpleNamespace

PATIENCE = 120  # seconds without an answer
LENGTH = re.compile(rb"content-length: (\d+)", re.I)
COMPUTE = re.compile(rb"compute;dur=([\d.]+)")


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def milliseconds(values, name=""):
    return {f"{name}p50_ms": 1e3 * percentile(values, 0.5), f"{name}p99_ms": 1e3 * percentile(values, 0.99)}


def message(path, body):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(text), text)


class Connection:
    """Has at most one request under way."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.due = 0.0  # when the request under way should have gone

    def send(self, request, due=None):
        self.answer, self.size = b"", None
        self.begun = time.perf_counter()
        self.due = self.begun if due is None else due
        self.socket.sendall(request)

    def take(self):
        """Reads what is there. None: the answer goes on."""
        piece = self.socket.recv(1 << 18)
        now = time.perf_counter()
        if not piece:
            raise ConnectionError("the server closed the connection")
        self.answer += piece
        if self.size is None:
            end = self.answer.find(b"\r\n\r\n")
            if end < 0:
                return None
            self.head = self.answer[:end]
            self.size = end + 4 + int(LENGTH.search(self.head).group(1))
        if len(self.answer) < self.size:
            return None
        timing = COMPUTE.search(self.head)
        return SimpleNamespace(seconds=now - self.begun, late=now - self.due, status=int(self.head[9:12]),
                               compute=float(timing.group(1)) / 1e3 if timing else 0.0)  # of the micro-batch


class Connections:
    """Many of them. `spin`: asks again and again whether there is an answer, so that the generator needs no time to
    wake up; for a core of its own. It sleeps while it waits for nothing."""

    def __init__(self, port, count, spin):
        self.spin = spin
        self.epoll = select.epoll()
        self.under_way = 0
        self.all = {}
        for _ in range(count):
            connection = Connection(port)
            self.all[connection.socket.fileno()] = connection
            self.epoll.register(connection.socket.fileno(), select.EPOLLIN)

    def answered(self, until=math.inf):
        """The connections that have an answer, and the answers, once there is one or it is `until`."""
        patience = time.perf_counter() + PATIENCE
        while True:
            if not (self.spin and self.under_way):  # select: microseconds, where epoll has milliseconds
                select.select([self.epoll], [], [], max(0, min(1, until - time.perf_counter())))
            for number, _ in self.epoll.poll(0):
                answer = self.all[number].take()
                if answer is not None:
                    self.under_way -= 1
                    yield self.all[number], answer
                    until = -math.inf  # what else is there, and no wait
            now = time.perf_counter()
            if now >= until:
                return
            if now >= patience:
                raise TimeoutError(f"no answer in {PATIENCE} s")

    def send(self, connection, request, due=None):
        self.under_way += 1
        connection.send(request, due)

    def close(self):
        for connection in self.all.values():
            connection.socket.close()
        self.epoll.close()


@contextmanager
def opened(port, count, spin=False):
    connections = Connections(port, count, spin)
    try:
        yield connections
    finally:
        connections.close()


def one_by_one(port, request, seconds, spin=False):
    """What the server adds to a forecast: the whole time without that of the micro-batch."""
    times, added = [], []
    with opened(port, 1, spin) as connections:
        connection = next(iter(connections.all.values()))
        end = time.perf_counter() + seconds
        for n in itertools.count():  # the first 20 warm it up
            connections.send(connection, request)
            for _, answer in connections.answered():
                assert answer.status == 200, answer.status
                if n >= 20:
                    times.append(answer.seconds)
                    added.append(answer.seconds - answer.compute)
            if time.perf_counter() > end:
                break
    return {"requests": len(times), **milliseconds(times), **milliseconds(added, "added_")}


def saturate(port, requests, clients, seconds):
    """Clients that ask again as soon as they have an answer. `requests`: taken in turns."""
    times, statuses = [], {}
    with opened(port, clients) as connections:
        begun = time.perf_counter()
        sent = {}
        for i, connection in enumerate(connections.all.values()):
            sent[connection] = i
            connections.send(connection, requests[i % len(requests)])
        while sent:
            for connection, answer in connections.answered():
                times.append(answer.seconds)
                statuses[answer.status] = statuses.get(answer.status, 0) + 1
                if time.perf_counter() < begun + seconds:
                    sent[connection] += 1
                    connections.send(connection, requests[sent[connection] % len(requests)])
                else:
                    del sent[connection]
        rate = len(times) / (time.perf_counter() - begun)
    return {"clients": clients, "rate": rate, "statuses": statuses, **milliseconds(times)}


def at_rate(port, requests, rate, seconds, connections=256, each_second=None, spin=False, warm_up=0):
    """Requests at fixed times, each on a free connection: a late answer delays no later request. Latency counts from
    when a request was due; that of the first `warm_up` seconds does not count. `each_second` is called about once a
    second."""
    times, added, statuses = [], [], {}
    count = max(1, int(rate * (warm_up + seconds)))
    with opened(port, connections, spin) as load:
        free = deque(load.all.values())
        time.sleep(0.5)  # the server has taken all of them
        begun = told = time.perf_counter()
        i = 0
        while i < count or load.under_way:
            while i < count and free and time.perf_counter() >= begun + i / rate:
                load.send(free.popleft(), requests[i % len(requests)], begun + i / rate)
                i += 1
            for connection, answer in load.answered(begun + i / rate if i < count and free else math.inf):
                free.append(connection)
                statuses[answer.status] = statuses.get(answer.status, 0) + 1
                if answer.status == 200 and connection.due >= begun + warm_up:
                    times.append(answer.late)
                    added.append(answer.seconds - answer.compute)
            if each_second and time.perf_counter() > told + 1:
                told = time.perf_counter()
                each_second()
        took = time.perf_counter() - begun
    return {"rate": rate, "answered": count, "answered_per_second": count / took,
            "statuses": statuses, **milliseconds(times), **milliseconds(added, "added_")}


def with_wrk(port, path, body, clients, seconds):
    """Saturation by wrk."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write("wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\n"
                     f"wrk.body = [==[{json.dumps(body)}]==]\n"
                     "done = function(summary, latency)\n"
                     "  local e = summary.errors\n"
                     "  io.write(string.format('{\"requests\": %d, \"seconds\": %f, \"p50_ms\": %f, \"p99_ms\": %f, "
                     "\"errors\": %d}\\n',\n"
                     "    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,\n"
                     "    latency:percentile(99) / 1e3, e.status + e.connect + e.read + e.write + e.timeout))\n"
                     "end\n")
        script.flush()
        done = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{int(seconds) or 1}s", "--timeout", "60s",
                               "-s", script.name, f"http://127.0.0.1:{port}{path}"],
                              capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {"clients": clients, "rate": found["requests"] / found["seconds"], **found}
