# SPDX-License-Identifier: Apache-2.0
# Clients that are slow, broken or hostile: the right status, flat memory, and others are served on.
import gzip
import http.client
import json
import resource
import socket
import struct
import threading
import time
import zlib

import pytest
from conftest import NANO, Endless, kserve_body, request, until, wave

FORECAST = "/v1/timeseries/forecast"


def raw(server, data, seconds=60, half_close=False):
    """What comes back for these bytes, until the server closes or is silent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection:
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        out = b""
        try:
            while piece := connection.recv(65536):
                out += piece
        except (TimeoutError, ConnectionResetError):
            pass
        return out


def status_of(answer):
    assert answer.startswith(b"HTTP/1.1 "), answer[:80]
    return int(answer[9:12])


def head(method="POST", path=FORECAST, *fields):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *fields, "", ""]).encode()


def healthy(server, model="toto-nano-2"):
    answer = server.post(FORECAST, kserve_body(model=model))
    assert answer.status == 200
    return answer


@pytest.mark.parametrize("text, status, code", [
    (b"", 400, "invalid_json"),
    (b"{", 400, "invalid_json"),
    (b"\xff\xfe", 400, "invalid_utf8"),
    (b'{"model": "a\xff"}', 400, "invalid_utf8"),
    (b'{"a": 1, "a": 2}', 400, "duplicate_key"),
    (b"[" * 250_000, 400, "invalid_json"),
    (b'{"a":' * 100_000, 400, "invalid_json"),
    (b"NaN", 400, "invalid_json"),
    (b"[1e400]", 400, "invalid_json"),
    (b"[]", 400, "invalid_request"),
    (b"null", 400, "invalid_request"),
])
def test_bodies_that_are_no_request(server, text, status, code):
    for path in (FORECAST, "/v1/forecast", "/v2/models/toto-nano-2/infer"):
        answer = server.post(path, text)
        assert answer.status == status
        assert code.encode() in answer.body
    healthy(server)


def changed(**members):
    body = kserve_body()
    body["inputs"][0].update(members)
    return body


@pytest.mark.parametrize("body, status, code, where", [
    (changed(series=[]), 400, "invalid_request", "inputs[0].series"),
    (changed(series=[1, "2"]), 400, "invalid_request", "inputs[0].series[1]"),
    (changed(series=[1e39]), 400, "not_finite", "inputs[0].series[0]"),
    (changed(series=[None, None]), 400, "no_observations", "load"),
    (changed(series=[[1, 2], [3]], type="multivariate_time_series"), 400, "invalid_request", "inputs[0].series[1]"),
    (changed(series=[[1, 2], 3], type="multivariate_time_series"), 400, "invalid_request", "inputs[0].series[1]"),
    (changed(type="other"), 400, "invalid_request", "inputs[0].type"),
    (changed(frequency="fortnight"), 400, "invalid_request", "inputs[0].frequency"),
    (changed(start_timestamp="yesterday"), 400, "invalid_timestamp", "inputs[0].start_timestamp"),
    (changed(start_timestamp="9999-12-31T23:00:00"), 400, "timestamp_overflow", "start_timestamp"),
    (changed(groups=[1, 2, 3]), 400, "invalid_request", "inputs[0].groups"),
    (changed(horizon=0), 400, "invalid_horizon", "inputs[0].horizon"),
    (kserve_body(horizon=0), 400, "invalid_horizon", "options.horizon"),
    (kserve_body(horizon=-1), 400, "invalid_horizon", "options.horizon"),
    (kserve_body(horizon=1.5), 400, "invalid_request", "options.horizon"),
    (kserve_body(horizon=1e300), 400, "invalid_horizon", "options.horizon"),
    (kserve_body(horizon=10_001), 422, "limit_exceeded", "options.horizon"),
    (kserve_body(num_samples=4097), 422, "limit_exceeded", "options.num_samples"),
    (kserve_body(quantiles=[0.5, 1]), 400, "invalid_quantile", "options.quantiles[1]"),
    (kserve_body(seed=-1), 400, "invalid_request", "options.seed"),
    (kserve_body(seed=2**64), 400, "invalid_request", "options.seed"),
    ({**kserve_body(), "inputs": []}, 400, "invalid_request", "inputs"),
    ({**kserve_body(), "inputs": kserve_body()["inputs"] * 1025}, 422, "limit_exceeded", "inputs"),
])
def test_requests_that_are_wrong_say_where(server, body, status, code, where):
    answer = server.post(FORECAST, body)
    error = answer.json()["error"]
    assert (answer.status, error["code"]) == (status, code)
    assert where in (error["param"] or "")
    if status == 422:
        assert " more" in error["message"]


def infer(tensors, binary=b"", header=None):
    text = json.dumps({"inputs": tensors}).encode()
    headers = {"Inference-Header-Content-Length": str(len(text)) if header is None else header}
    return text + binary, headers


def tensor(shape, size, datatype="FP32", name="target"):
    return {"name": name, "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": size}}


@pytest.mark.parametrize("tensors, binary, header", [
    ([tensor([1, 1, 4], 16)], b"\0" * 15, None),
    ([tensor([1, 1, 4], 16)], b"\0" * 17, None),
    ([tensor([1, 1, 4], 12)], b"\0" * 12, None),
    ([tensor([1, 1, 4], 2**60)], b"\0" * 16, None),
    ([tensor([2**40, 2**40], 16)], b"\0" * 16, None),
    ([tensor([-1], 4)], b"\0" * 4, None),
    ([tensor([0], 0)], b"", None),
    ([tensor([1, 1, 4], 16, "FP33")], b"\0" * 16, None),
    ([tensor([4], 16), tensor([4], 16)], b"\0" * 32, None),
    ([tensor([4], 16), tensor([1], 8, "BYTES", "id")], b"\0" * 16 + struct.pack("<I", 2**32 - 1) + b"abcd", None),
    ([tensor([4], 16)], b"\0" * 16, "99999999"),
    ([tensor([4], 16)], b"\0" * 16, "-1"),
    ([tensor([4], 16)], struct.pack("<4f", 1, 2, float("inf"), 3), None),
    ([{"name": "target", "datatype": "FP32", "shape": [3], "data": [1, 2]}], b"", None),
    ([{"name": "target", "datatype": "FP32", "shape": [3], "data": [1, 2, [3, 4]]}], b"", None),
])
def test_tensors_of_wrong_sizes(server, tensors, binary, header):
    body, headers = infer(tensors, binary, header)
    answer = server.post("/v2/models/toto-nano-2/infer", body, headers)
    assert answer.status == 400 and "error" in answer.json()
    healthy(server)


def test_http_that_is_none(server):
    chunked = head("POST", FORECAST, "Transfer-Encoding: chunked")
    body = json.dumps(kserve_body()).encode()
    cases = {
        b"hello\r\n\r\n": 400,
        b"GET /health HTTP/3.0\r\nHost: x\r\n\r\n": 400,
        b"GET /health HTTP/1.1\r\n\r\n": 400,
        b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n": 400,
        head("POST", FORECAST, "Content-Length: 5", "Content-Length: 6") + b"hello": 400,
        head("POST", FORECAST, "Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n": 400,
        head("POST", FORECAST, "Content-Length: -1"): 400,
        head("POST", FORECAST, "Transfer-Encoding: gzip") + b"x": 501,
        chunked + b"zz\r\n": 400,
        chunked + b"ffffffffffffffffff\r\nx": 400,
        chunked + b"5\r\nhelloXX\r\n": 400,
        head("GET", "/health", "X: " + "a" * 20_000): 431,
        head("GET", "/" + "a" * 20_000): 431,
        head("GET", "/nothing"): 404,
        head("DELETE", "/health"): 405,
        head("POST", FORECAST, "Expect: the-unexpected", "Content-Length: 1") + b"x": 417,
        head("POST", FORECAST, f"Content-Length: {17 << 20}"): 413,
        head("POST", FORECAST, "Content-Encoding: br", "Content-Length: 1", "Connection: close") + b"x": 415,
        head("POST", FORECAST, "Content-Encoding: gzip", "Content-Length: 1", "Connection: close") + b"x": 400,
    }
    for data, status in cases.items():
        closing = data.replace(b"Host: x\r\n", b"Host: x\r\nConnection: close\r\n", 1)
        assert status_of(raw(server, closing)) == status, data[:80]
    one_by_one = b"".join(b"%x;extension=1\r\n%s\r\n" % (1, body[i:i + 1]) for i in range(len(body)))
    answer = raw(server, head("POST", FORECAST, "Transfer-Encoding: chunked", "Connection: close") + one_by_one
                 + b"0\r\nTrailer: 1\r\n\r\n")
    assert status_of(answer) == 200
    healthy(server)


BIG = 2_500_000  # bytes of a body that is begun and not ended


def test_more_than_fits_is_refused_under_load(start):
    """Bodies beyond --max-held: 429 while another has the room, answers after that, and the process lives."""
    server = start("--max-held", "3MiB", "--quiet-requests")
    big = json.dumps(kserve_body(steps=100_000, horizon=8)).encode()  # 0.8 MB
    statuses = []

    def client():
        for _ in range(6):
            try:
                answer = request("POST", server.url + FORECAST, big)
                status = answer.status
                if status == 429:
                    assert int(answer.headers["Retry-After"]) >= 1
            except OSError:
                status = 429  # refused while it was still being sent
            statuses.append(status)

    def all_at_once():
        statuses.clear()
        threads = [threading.Thread(target=client) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(statuses) == 16 * 6
        return set(statuses)

    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as stalled:
        stalled.sendall(head("POST", FORECAST, f"Content-Length: {BIG}") + b" ")
        server.wait_for_metric("toto_held_body_bytes", lambda n: n == BIG)
        assert all_at_once() == {429}
    server.wait_for_metric("toto_held_body_bytes", lambda n: n == 0)
    assert 200 in all_at_once() <= {200, 429}
    assert server.process.poll() is None and server.memory() < 600 << 20
    assert server.post(FORECAST, kserve_body()).status == 200


def test_too_large_says_by_how_much(server):
    answer = server.post(FORECAST, b" " * ((16 << 20) + 5))
    assert answer.status == 413 and "5 more" in answer.json()["error"]["message"]
    # The same without a length before it.
    data = head("POST", FORECAST, "Transfer-Encoding: chunked") + b"1100000\r\n" + b" " * 0x1100000
    assert status_of(raw(server, data)) == 413


def test_bombs(server):
    before = server.memory()
    for name, body in {"gzip": gzip.compress(b" " * (1 << 30)), "deflate": zlib.compress(b" " * (1 << 28))}.items():
        answer = server.post(FORECAST, body, {"Content-Encoding": name})
        assert (answer.status, answer.json()["error"]["code"]) == (413, "body_too_large")
    zeros = b"[" + b"0," * (8 << 20) + b"0]"
    assert server.post(FORECAST, zeros[:16 << 20]).status == 400
    healthy(server)
    assert server.memory() < before + (400 << 20)


def test_compressed_bodies_are_read(server):
    import subprocess

    body = json.dumps(kserve_body()).encode()
    plain = server.post(FORECAST, body).json()["outputs"][0]["content"]
    packed = {"gzip": gzip.compress(body), "deflate": zlib.compress(body)}
    packed["zstd"] = subprocess.run(["zstd", "-c"], input=body, capture_output=True, check=True).stdout
    for name, data in packed.items():
        answer = server.post(FORECAST, data, {"Content-Encoding": name})
        assert answer.json()["outputs"][0]["content"] == plain
        assert server.post(FORECAST, data[:-9], {"Content-Encoding": name}).status == 400


def test_pipelined_requests_are_answered_in_order(server):
    body = json.dumps(kserve_body()).encode()
    forecast = head("POST", FORECAST, f"Content-Length: {len(body)}", "X-Request-Id: a{}") + body
    data = b"".join(forecast.replace(b"a{}", b"a%d" % i) for i in range(20))
    data += head("GET", "/health", "Connection: close", "X-Request-Id: last")
    answer = raw(server, data)
    assert answer.count(b"HTTP/1.1 200 OK") == 21
    ids = [line.split(b": ")[1] for line in answer.split(b"\r\n") if line.startswith(b"X-Request-Id")]
    assert ids == [b"a%d" % i for i in range(20)] + [b"last"]


def test_half_closed(server):
    body = json.dumps(kserve_body()).encode()
    whole = head("POST", FORECAST, f"Content-Length: {len(body)}") + body
    assert status_of(raw(server, whole[:-1], half_close=True)) == 400
    # The end of the request's side is a client that goes: cancelled, unless the forecast was there first.
    assert status_of(raw(server, whole, half_close=True)) in (200, 499)
    assert raw(server, b"", half_close=True) == b""


def test_slow_writers_are_told(start):
    server = start("--header-timeout", "1.5", "--body-timeout", "1.7")
    assert status_of(raw(server, b"GET /health HTT")) == 408
    assert status_of(raw(server, head("POST", FORECAST, "Content-Length: 9") + b"{")) == 408
    impatient = start("--idle-timeout", "0.6")
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=60) as idle:
        assert idle.recv(1) == b""  # closed without a word

    def trickle():
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            try:
                for byte in head("GET", "/health") * 10:
                    connection.sendall(bytes([byte]))
                    time.sleep(0.05)
            except OSError:
                pass
            return connection.recv(100)

    with pytest.raises(ConnectionError):
        answer = trickle()
        assert status_of(answer) == 408
        raise ConnectionError
    healthy(server)


def test_slow_readers_are_cut_off(start):
    server = start("--write-timeout", "1")
    body = kserve_body(horizon=4000, num_samples=128, return_samples=True)
    data = json.dumps(body).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(head("POST", FORECAST, f"Content-Length: {len(data)}") + data)
        server.wait_for_event("request", seconds=60, sent=False)
    healthy(server)


def test_a_client_that_goes_is_not_computed_for(start):
    server = start(*NANO)
    for n in range(3):
        with Endless(server):
            pass  # it is computed, and left
        server.wait_for_metric("toto_running_series", lambda running: running == 0)
    healthy(server, "toto-nano")  # behind them, had they gone on
    # One that nobody stopped may be done within the waits above, and has status 200 in the log.
    until(lambda: len([e for e in server.events("request") if e.get("code") == "cancelled"]) == 3,
          "three are not cancelled in the log")


def test_a_deadline_ends_what_runs(start):
    server = start(*NANO)
    endless = kserve_body(steps=4096, horizon=10000, model="toto-nano", num_samples=1024)
    answer = server.post(FORECAST, endless, {"X-Request-Timeout-Ms": "400"})
    assert (answer.status, answer.json()["error"]["code"]) == (504, "deadline_exceeded")
    answer = server.post(FORECAST, {**endless, "options": {**endless["options"], "timeout_ms": 400}})
    assert answer.status == 504
    assert server.post(FORECAST, kserve_body(model="toto-nano"), {"X-Request-Timeout-Ms": "soon"}).status == 400


def test_a_full_queue_says_when(start):
    server = start("--max-queue", "4", "--max-batch-requests", "1", *NANO)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(server.post(FORECAST, kserve_body(model="toto-nano"))))
               for _ in range(16)]
    with Endless(server):  # four may wait behind it
        for thread in threads:
            thread.start()
        until(lambda: len(answers) == 12, "those above four are not answered")
        assert {(a.status, a.json()["error"]["code"]) for a in answers} == {(429, "queue_full")}
        assert all(int(a.headers["Retry-After"]) >= 1 for a in answers)
    for thread in threads:
        thread.join()
    assert sorted(a.status for a in answers) == [200] * 4 + [429] * 12
    healthy(server, "toto-nano")


@pytest.mark.parametrize("model, limit", [("toto-nano", 2000), ("toto-nano-2", 100)])
def test_too_costly_is_refused_before_it_begins(start, model, limit):
    flags = NANO if model == "toto-nano" else ()
    server = start("--max-request-cost", str(limit), *flags)
    answer = server.post(FORECAST, kserve_body(steps=4000, horizon=2000, model=model))
    assert (answer.status, answer.json()["error"]["code"]) == (422, "request_too_large")
    assert "times as many" in answer.json()["error"]["message"]
    healthy(server, model)
    server = start("--memory-limit", "24MiB", *flags)
    answer = server.post(FORECAST, kserve_body(steps=4000, horizon=10000, model=model, num_samples=1024, return_samples=True))
    assert (answer.status, answer.json()["error"]["code"]) == (422, "request_too_large")
    assert "MiB more" in answer.json()["error"]["message"]
    healthy(server, model)


def test_bodies_are_held_within_a_limit(start):
    server = start("--max-held", "4MiB")
    connections = []
    try:
        for _ in range(3):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            connection.sendall(head("POST", FORECAST, f"Content-Length: {3 << 20}") + b" " * 1000)
            connections.append(connection)
            server.wait_for_metric("toto_held_body_bytes", lambda n: n == 3 << 20)
        answers = [c.recv(400) for c in connections[1:]]
        assert [status_of(a) for a in answers] == [429, 429]
        assert b"Retry-After" in answers[0] or b"retry-after" in answers[0]
    finally:
        for connection in connections:
            connection.close()
    server.wait_for_metric("toto_held_body_bytes", lambda n: n == 0)
    healthy(server)


def test_connections_are_limited(start):
    server = start("--max-connections", "8")
    # Connections are taken in the order in which they were made, so the ninth finds eight.
    idle = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(8)]
    assert b"503" in raw(server, b"")
    for connection in idle:
        connection.close()

    def free():
        try:
            return server.get("/health").status == 200
        except OSError:
            return False

    until(free, "the connections that were closed still count")
    healthy(server)


def test_ten_thousand_idle_connections(start):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = 10_000
    if hard != resource.RLIM_INFINITY and hard < count + 200:
        pytest.skip(f"the system allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 200, hard))
    server = start("--max-connections", "12000")
    healthy(server)
    before, idle = server.memory(), []
    try:
        for i in range(count):
            connection = socket.socket()
            # Another source address for every few thousand: ports are 16 bits.
            connection.bind((f"127.0.0.{2 + i // 5000}", 0))
            connection.connect(("127.0.0.1", server.port))
            idle.append(connection)
        healthy(server)
        server.wait_for_metric("toto_connections ", lambda n: n == count + 1)  # and this look
        assert server.memory() - before < 200 << 20
    finally:
        for connection in idle:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    healthy(server)


def test_api_keys(start, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("# ours\nalpha\nbeta\n")
    server = start(environment={"TOTO_SERVE_API_KEYS": str(keys)})  # the twin of --api-keys
    assert server.get("/health").status == 200 and server.get("/v2/health/ready").status == 200
    for headers in ({}, {"X-API-Key": "gamma"}, {"X-API-Key": "alph"}, {"X-API-Key": "alphaalpha"}):
        answer = server.post(FORECAST, kserve_body(), headers)
        assert (answer.status, answer.json()["error"]["code"]) == (401, "unauthorized")
    assert server.get("/metrics").status == 401
    for headers in ({"X-API-Key": "alpha"}, {"Authorization": "Bearer beta"}):
        assert server.post(FORECAST, kserve_body(), headers).status == 200


def test_memory_stays_flat(server):
    wide = kserve_body(steps=4000, horizon=64)
    for _ in range(60):
        assert server.post(FORECAST, wide).status == 200
    before = server.memory()
    for i in range(300):
        assert server.post(FORECAST, wide).status == 200
        server.post(FORECAST, b"[" * 10_000)
    assert server.memory() < before + (8 << 20)
