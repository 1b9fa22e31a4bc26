# SPDX-License-Identifier: Apache-2.0
# The end and the change of models under load: no request is lost.
import http.client
import json
import signal
import socket
import threading
import time

from conftest import NANO, Endless, kserve_body, until


class Load:
    """Clients that keep their connections and ask again and again until none can be made."""

    def __init__(self, server, clients=16, body=None):
        self.server, self.body = server, json.dumps(body or kserve_body(steps=200, horizon=40))
        self.answers, self.lost, self.stop = [], [], False
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def _run(self):
        connection = None
        while not self.stop:
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
                try:
                    connection.connect()
                except OSError:
                    return  # it has ended
            try:
                connection.request("POST", "/v1/timeseries/forecast", self.body)
                answer = connection.getresponse()
                answer.read()
                with self.lock:
                    self.answers.append(answer.status)
                if answer.headers.get("Connection") == "close":
                    connection = None
            except (OSError, http.client.HTTPException) as error:
                with self.lock:
                    self.lost.append(repr(error))
                connection = None

    def join(self):
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive(), "a client waits for ever"


def test_sigterm_under_load_loses_nothing(start):
    server = start()
    idle = socket.create_connection(("127.0.0.1", server.port))
    load = Load(server)
    until(lambda: len(load.answers) >= 50, "the load is not answered")
    begun = time.monotonic()
    server.terminate()
    assert server.wait(60) == 0
    assert time.monotonic() - begun < 30
    load.join()
    assert load.lost == []
    assert set(load.answers) == {200}
    assert idle.recv(1) == b""
    server.wait_for_event("ended", level="info")


def test_ready_says_503_at_once_and_open_work_ends(start):
    server = start("--drain-timeout", "600", *NANO)
    load = Load(server, clients=1, body=kserve_body(steps=2000, horizon=2000, model="toto-nano", num_samples=128))
    server.wait_for_metric("toto_running_series", lambda n: n == 1)
    load.stop = True  # after that one
    ready = b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as watcher:
        watcher.sendall(ready + b"\r\n" + ready)  # the second is not whole: its connection is not a silent one
        out = b""
        while b'{"ready":true}' not in out:
            out += watcher.recv(65536)
        server.terminate()
        server.wait_for_event("draining")
        watcher.sendall(b"\r\n")
        out = b""
        while piece := watcher.recv(65536):
            out += piece
    assert out.startswith(b"HTTP/1.1 503 ") and b"\r\nConnection: close\r\n" in out
    assert out.endswith(b'\r\n\r\n{"ready":false}')
    assert server.wait(600) == 0
    load.join()
    assert load.answers == [200] and load.lost == []


def test_patience_ends_and_says_draining(start):
    server = start("--drain-timeout", "0.3", *NANO)
    with Endless(server) as endless:
        server.terminate()
        answer = http.client.HTTPResponse(endless.connection)
        answer.begin()
        assert (answer.status, json.loads(answer.read())["error"]["code"]) == (503, "draining")
        assert server.wait(60) == 0
    server.wait_for_event("ended", level="warning")


def test_a_second_signal_ends_it(start):
    server = start(*NANO)
    with Endless(server):
        server.terminate()
        server.wait_for_event("draining")
        server.terminate()
        assert server.wait(60) == -signal.SIGTERM


def test_reload_under_load_fails_nothing(start):
    server = start()
    load = Load(server, clients=8)
    for n in range(1, 4):
        until(lambda: len(load.answers) >= 30 * n, "the load is not answered")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: len(server.events("reloaded")) >= n, "it was not loaded again")
    load.stop = True
    load.join()
    assert load.lost == [] and set(load.answers) == {200}
    server.terminate()
    assert server.wait(40) == 0
