# SPDX-License-Identifier: Apache-2.0
# A server for the tests: the built program, with the model that ships with toto.
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NANO = ("--model", "models/toto-nano")  # of Toto 1.0, whose trajectories take time
PROGRAM = os.environ.get("TOTO_PROGRAM", str(ROOT / "build/release/toto"))


class Server:
    """toto serve on a free port. Lines of its log are kept in `lines`."""

    def __init__(self, *arguments, environment=None):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TOTO_")}
        clean.update(environment or {})
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--port", "0", "--plan-cache", "never", *arguments],
            stderr=subprocess.PIPE, cwd=ROOT, env=clean, text=True)
        self.lines, self.port = [], None
        self.listening = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if not self.listening.wait(120) or self.port is None:
            self.process.kill()
            raise RuntimeError("the server did not start: " + "".join(self.lines))
        self.url = f"http://127.0.0.1:{self.port}"

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            if self.port is None and '"listening"' in line:
                self.port = int(json.loads(line)["message"].rsplit(":", 1)[1])
                self.listening.set()
        self.listening.set()

    def events(self, name):
        return [e for e in map(json.loads, [line for line in self.lines if line.startswith('{')]) if e["event"] == name]

    def wait_for_event(self, name, seconds=30, **fields):
        """The first event NAME whose FIELDS have these values. An answer may arrive before its line of the log."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for event in self.events(name):
                if fields.items() <= event.items():
                    return event
            time.sleep(0.02)
        raise AssertionError(f"no {name} with {fields} in the log: {self.lines[-5:]}")

    def metric(self, name):
        """The sum of the samples of /metrics whose name and labels begin so; 0 where there is none."""
        lines = self.get("/metrics").body.decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    def wait_for_metric(self, name, holds, seconds=60):
        """Metrics may come after the answer that they count."""
        until(lambda: holds(self.metric(name)), f"{name} is {self.metric(name)}", seconds)

    def get(self, path, headers=None):
        return request("GET", self.url + path, None, headers)

    def post(self, path, body, headers=None):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return request("POST", self.url + path, data, headers)

    def memory(self):
        """Resident bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds=60):
        status = self.process.wait(seconds)
        self.reader.join(10)
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(10)


def until(condition, what, seconds=60):
    """Waits until the condition holds. How long that takes depends on the machine, so nothing else does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


def request(method, url, data=None, headers=None, seconds=120):
    asked = urllib.request.Request(url, data=data, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(asked, timeout=seconds) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers, error.read())


class Endless:
    """A forecast that takes minutes and keeps the device busy until it is left, which cancels it. Of a server of NANO:
    Toto 2.0 forecasts in one pass."""

    def __init__(self, server, path="/v1/timeseries/forecast", headers="", body=None):
        body = json.dumps(body or kserve_body(steps=4096, horizon=10_000, model="toto-nano", num_samples=1024)).encode()
        self.server = server
        self.connection = socket.create_connection(("127.0.0.1", server.port), timeout=120)
        self.connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
                                .encode() + body)

    def __enter__(self):
        self.server.wait_for_metric("toto_running_series", lambda n: n >= 1)
        return self

    def __exit__(self, *_):
        self.connection.close()


def wave(steps, shift=0.0):
    import math

    return [round(10 + 3 * math.sin(0.3 * t + shift) + 0.01 * t, 4) for t in range(steps)]


def kserve_body(name="load", steps=64, horizon=8, model="toto-nano-2", **options):
    return {"model": model,
            "inputs": [{"type": "univariate_time_series", "name": name, "series": wave(steps),
                        "frequency": "H", "start_timestamp": "2026-01-01T00:00:00Z"}],
            "options": {"horizon": horizon, "quantiles": [0.1, 0.5, 0.9], **options}}


@pytest.fixture(scope="module")
def server():
    one = Server()
    yield one
    one.close()


@pytest.fixture
def start():
    """Starts servers of the test's own, with flags."""
    servers = []

    def begin(*arguments, environment=None):
        servers.append(Server(*arguments, environment=environment))
        return servers[-1]

    yield begin
    for one in servers:
        one.close()
