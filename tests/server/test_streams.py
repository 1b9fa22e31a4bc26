# SPDX-License-Identifier: Apache-2.0
# Answers piece by piece: NDJSON in and out with back-pressure, server-sent events, and clients that go.
import gzip
import http.client
import json
import shutil
import socket
import subprocess
import threading
import time

import pytest
from conftest import NANO, Endless, kserve_body, request, until, wave

LINES = {"Content-Type": "application/x-ndjson"}
EVENTS = {"Accept": "text/event-stream"}
TSFM, KSERVE = "/v1/forecast", "/v1/timeseries/forecast"


def body(i=0, steps=64, horizon=8, **parameters):
    return {"model": "toto-nano-2", "inputs": [{"item_id": f"s{i}", "target": wave(steps, i)}],
            "parameters": {"prediction_length": horizon, "quantile_levels": [0.1, 0.5, 0.9], **parameters}}


def without_id(text):
    answer = json.loads(text)
    for name in ("id", "created_at"):
        answer.pop(name, None)
    for output in answer.get("outputs", []):
        output.pop("id", None)
    return json.dumps(answer)


def events_of(text):
    found = []
    for block in text.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found


def duplex(server, lines, take, headers=(), path=TSFM, pause=0.0):
    """Sends lines and reads at the same time; `take` gets each line of the answer."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    connection.sendall("\r\n".join([f"POST {path} HTTP/1.1", "Host: x", "Transfer-Encoding: chunked",
                                    "Content-Type: application/x-ndjson", *headers, "", ""]).encode())

    def send():
        for line in lines:
            connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))
        connection.sendall(b"0\r\n\r\n")

    sender = threading.Thread(target=send)
    sender.start()
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    for line in answer:
        take(json.loads(line))
        if pause:
            time.sleep(pause)
    sender.join()
    connection.close()
    return answer.status


@pytest.mark.parametrize("path", [TSFM, KSERVE])
def test_each_line_is_answered_as_it_is_alone(server, path):
    bodies = [body(i, 30 + i, 4 + i % 7) if path == TSFM else kserve_body(f"s{i}", 30 + i, 4 + i % 7)
              for i in range(40)]
    bodies[7] = {"model": "none", "inputs": []}
    alone = [request("POST", server.url + path, json.dumps(b).encode()).body for b in bodies]
    text = "\n".join(map(json.dumps, bodies[:20])) + "\n\r\n" + "\n".join(map(json.dumps, bodies[20:]))
    answer = server.post(path, text.encode(), LINES)
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-ndjson"
    lines = answer.body.decode().splitlines()
    assert [without_id(a) for a in lines] == [without_id(b) for b in alone]
    assert "error" in lines[7]


def test_compressed_lines(server):
    text = "\n".join(json.dumps(body(i)) for i in range(10)).encode()
    plain = server.post(TSFM, text, LINES).body.splitlines()
    packed = {"gzip": gzip.compress(text[:300]) + gzip.compress(text[300:])}
    if shutil.which("zstd"):
        packed["zstd"] = subprocess.run(["zstd", "-c"], input=text, capture_output=True, check=True).stdout
    for name, data in packed.items():
        lines = server.post(TSFM, data, {**LINES, "Content-Encoding": name}).body.splitlines()
        assert [without_id(a) for a in lines] == [without_id(b) for b in plain]
        cut = server.post(TSFM, data[:-9], {**LINES, "Content-Encoding": name}).body.splitlines()
        assert json.loads(cut[-1])["code"] == "invalid_encoding"


def test_thousands_of_lines_in_constant_memory(server):
    count, seen = 4000, []
    line = json.dumps(body(1, 512, 16)).encode() + b"\n"
    warm = server.post(TSFM, line * 200, LINES)
    assert warm.body.count(b"\n") == 200
    before = server.memory()
    assert duplex(server, (line for _ in range(count)), seen.append) == 200
    assert len(seen) == count and all(a["outputs"] for a in seen)
    assert server.memory() - before < 64 << 20, "a window of lines is kept, not all of them"


def test_a_client_that_does_not_read_is_not_read_from(start):
    server = start("--write-timeout", "30")
    line = json.dumps(body(1, 2000, 64)).encode() + b"\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"POST /v1/forecast HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                           b"Content-Type: application/x-ndjson\r\n\r\n")
        connection.settimeout(2)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 256 << 20:
                connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))
                sent += len(line)
        assert server.memory() < 400 << 20
    assert server.post(TSFM, body()).status == 200


def test_lines_that_are_wrong_end_where_they_must(start):
    server = start("--max-body", "64KiB")
    good = json.dumps(body()).encode() + b"\n"
    answer = server.post(TSFM, good + b"{\n[]\n\xff\n" + good, LINES).body.splitlines()
    assert [json.loads(a).get("code") for a in answer] == [None, "invalid_json", "invalid_request", "invalid_utf8", None]
    answer = server.post(TSFM, good + b" " * 70_000, LINES).body.splitlines()
    assert [json.loads(a).get("code") for a in answer] == [None, "body_too_large"]
    bomb = gzip.compress(good + b"[" * (64 << 20))
    answer = server.post(TSFM, bomb, {**LINES, "Content-Encoding": "gzip"}).body.splitlines()
    assert json.loads(answer[-1])["code"] == "body_too_large"
    assert server.post(TSFM, good, {**LINES, "Content-Encoding": "br"}).status == 415
    server = start("--body-timeout", "1")
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(b"POST /v1/forecast HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                           b"Content-Type: application/x-ndjson\r\n\r\n%x\r\n%s\r\n" % (len(good), good))
        out = b""
        while piece := connection.recv(65536):
            out += piece
    assert out.count(b"outputs") == 1 and b"body_timeout" in out
    assert server.post(TSFM, body()).status == 200


@pytest.mark.parametrize("path", [TSFM, KSERVE])
def test_events_by_series(server, path):
    many = body(0) if path == TSFM else kserve_body("s0")
    one = many["inputs"][0]
    name = "item_id" if path == TSFM else "name"
    many["inputs"] = [{**one, name: f"s{i}"} for i in range(5)]
    answer = server.post(path, many, EVENTS)
    assert answer.headers["Content-Type"] == "text/event-stream"
    found = events_of(answer.body)
    assert found[0][0] == "progress" and found[0][2]["total"] == 5
    assert found[-1] == ("done", None, {"done": 5, "failed": 0, "total": 5})
    series = {int(i): data for kind, i, data in found if kind == "series"}
    assert sorted(series) == list(range(5))
    for i, data in series.items():
        alone = server.post(path, {**many, "inputs": [many["inputs"][i]]}).body
        if path == TSFM:
            assert data["outputs"] == json.loads(alone)["outputs"]
        else:
            assert data["outputs"][0]["content"] == json.loads(alone)["outputs"][0]["content"]
    assert server.post(path, b"{", EVENTS).status == 400


def test_long_jobs_tell_how_far_they_are_and_end_with_the_client(start):
    server = start(*NANO)
    many = {**body(0, 4096, 10_000, num_samples=1024), "model": "toto-nano"}
    with Endless(server, TSFM, "Accept: text/event-stream\r\n", many) as endless:
        out = b""
        while out.count(b"event: progress") < 3:
            piece = endless.connection.recv(65536)
            assert piece, out
            out += piece
    server.wait_for_metric("toto_running_series", lambda n: n == 0)  # it does not go on for nobody
    server.wait_for_event("request", sent=False)


def test_streams_end_when_the_server_does(start):
    server = start()
    seen = []
    stop = threading.Event()

    def lines():
        while not stop.is_set():
            yield json.dumps(body()).encode() + b"\n"
            time.sleep(0.01)

    thread = threading.Thread(target=duplex, args=(server, lines(), seen.append))
    thread.start()
    until(lambda: len(seen) >= 20, "lines are not answered")
    server.terminate()
    server.wait_for_event("draining")
    before = len(seen)
    until(lambda: len(seen) >= before + 20, "an open stream goes on")
    stop.set()
    thread.join(60)
    assert server.wait(60) == 0
    assert all("outputs" in a for a in seen), "what was sent is answered"
