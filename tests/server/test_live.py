# SPDX-License-Identifier: Apache-2.0
# Live series: what is appended is forecast as if it had been sent whole, and outlives the process.
import concurrent.futures
import contextlib
import json
import os
import random
import sqlite3
import threading
import time

import pytest
from conftest import request, until, wave

KILLS = int(os.environ.get("TOTO_KILLS", "20"))
TINY = "tiny=tests/data/golden/toto1-tiny-a"


def put(server, name, **body):
    return request("PUT", f"{server.url}/v1/series/{name}", json.dumps(body).encode())


def append(server, name, values, **body):
    return server.post(f"/v1/series/{name}/points", {"values": values, **body})


def test_a_series_that_grew_is_forecast_as_one_sent_whole(server):
    values = wave(300)
    assert put(server, "cpu%2Fload", frequency="15min", start="2026-01-01T00:00:00Z").status == 201
    assert server.get("/v1/series/cpu%2Fload/forecast").status == 400  # nothing is there yet
    for at in range(0, 300, 50):
        answer = append(server, "cpu%2Fload", values[at:at + 50], at=at)
        assert (answer.status, answer.json()["count"]) == (200, at + 50)
    grown = server.get("/v1/series/cpu%2Fload/forecast?horizon=40&quantiles=0.05,0.5&seed=3&num_samples=20").json()
    whole = server.post("/v1/forecast", {
        "model": "toto-nano-2", "inputs": [{"item_id": "cpu/load", "target": values, "start": "2026-01-01T00:00:00Z"}],
        "parameters": {"prediction_length": 40, "quantile_levels": [0.05, 0.5], "seed": 3, "num_samples": 20,
                       "frequency": "15min"}}).json()
    assert grown["outputs"] == whole["outputs"]
    assert grown["outputs"][0]["timestamps"][0] == "2026-01-04T03:00:00Z"
    seen = server.get("/v1/series/cpu%2Fload?last=3").json()
    assert seen == {"id": "cpu/load", "count": 300, "kept": 300, "variates": 1, "frequency": "15min",
                    "start": "2026-01-01T00:00:00Z", "values": pytest.approx(values[-3:])}
    assert {"id": "cpu/load", "count": 300} in server.get("/v1/series").json()["series"]


def test_variates_and_missing_values(server):
    rows = [[a, None if i % 9 == 4 else b] for i, (a, b) in enumerate(zip(wave(90), wave(90, 1)))]
    assert put(server, "two", values=rows[:30]).status == 201
    assert append(server, "two", rows[30:]).json()["variates"] == 2
    grown = server.get("/v1/series/two/forecast?horizon=5&mean_only=true").json()
    whole = server.post("/v1/forecast", {"model": "toto-nano-2", "inputs": [{"item_id": "two", "target": rows}],
                                         "parameters": {"prediction_length": 5, "mean_only": True}}).json()
    assert grown["outputs"] == whole["outputs"]
    assert put(server, "two", values=[1, 2]).status == 200  # in its place
    assert server.get("/v1/series/two").json()["count"] == 2


def test_only_the_context_is_kept(start):
    server = start("--context", "100", "--model", TINY)
    put(server, "a", values=wave(250))
    append(server, "a", wave(7, 5))
    seen = server.get("/v1/series/a?last=1000").json()
    assert (seen["count"], seen["kept"], len(seen["values"])) == (257, 100, 100)
    assert seen["values"][-7:] == pytest.approx(wave(7, 5))


def test_what_is_wrong(start):
    server = start("--max-live-series", "2", "--max-live-memory", "80000", "--model", TINY)
    code = lambda answer: (answer.status, answer.json()["error"]["code"])
    assert code(server.get("/v1/series/none")) == (404, "unknown_series")
    assert code(append(server, "none", [1])) == (404, "unknown_series")
    assert code(server.get("/v1/series/none/anomalies")) == (404, "unknown_series")
    assert code(put(server, "a" * 201)) == (400, "invalid_request")
    assert code(put(server, "%ff")) == (400, "invalid_request")
    assert code(put(server, "%0a")) == (400, "invalid_request")
    assert code(put(server, "a", start="2026-01-01")) == (400, "invalid_request")
    assert code(put(server, "a", frequency="never")) == (400, "invalid_request")
    assert code(put(server, "a", variates=3, values=[1])) == (400, "invalid_request")
    assert code(put(server, "wide", variates=20)) == (422, "limit_exceeded")
    assert put(server, "a", values=[1, 2, 3]).status == put(server, "b").status == 201
    assert code(put(server, "c")) == (422, "limit_exceeded")
    assert code(append(server, "a", [4], at=2)) == (409, "conflict")
    assert code(append(server, "a", [[4, 5]])) == (400, "invalid_request")
    assert code(append(server, "a", [])) == (400, "invalid_request")
    assert code(append(server, "a", [1e39])) == (400, "not_finite")
    assert server.get("/v1/series/a").json()["count"] == 3
    for query in ("horizon=0", "quantiles=2", "seed=x", "context=0", "a"):
        assert server.get(f"/v1/series/a/forecast?{query}").status == 400, query
    assert code(server.get("/v1/series/a/forecast?horizon=10001")) == (422, "limit_exceeded")
    assert code(server.get("/v1/series/a/forecast?model=none")) == (404, "unknown_model")
    for threshold in ("0", "1", "x", "nan"):
        assert server.get(f"/v1/series/a/anomalies?threshold={threshold}").status == 400
    assert request("DELETE", f"{server.url}/v1/series/a").status == 204
    assert code(server.get("/v1/series/a")) == (404, "unknown_series")
    assert put(server, "c").status == 201


def test_appends_with_at_never_overlap(server):
    put(server, "race")

    def add(i):
        while True:
            count = server.get("/v1/series/race").json()["count"]
            answer = append(server, "race", [float(count)], at=count)
            if answer.status == 200:
                return
            assert answer.status == 409

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(80)))
    assert server.get("/v1/series/race?last=80").json()["values"] == list(range(80))


def test_anomalies(server):
    values = wave(600)
    values[500] += 40
    put(server, "odd", values=values, frequency="H", start="2026-01-01T00:00:00Z")
    found = server.get("/v1/series/odd/anomalies?threshold=0.01").json()
    assert found["variates"][0]["scored"] > 300
    steps = {a["step"]: a for a in found["variates"][0]["anomalies"]}
    assert 500 in steps and steps[500]["time"] == "2026-01-21T20:00:00Z"
    assert steps[500]["value"] > steps[500]["high"] and steps[500]["p"] <= 0.01
    assert len(steps) < 20


def test_a_store_is_restored(start, tmp_path):
    store = str(tmp_path / "series.db")
    server = start("--store", store, "--model", TINY, "--context", "300")
    rows = [[a, None if i % 9 == 4 else b] for i, (a, b) in enumerate(zip(wave(90), wave(90, 1)))]
    put(server, "two", values=rows, frequency="D", start="2026-01-01")
    put(server, "one")
    put(server, "gone", values=[1])
    for at in range(0, 2000, 40):
        append(server, "one", [float(t) for t in range(at, at + 40)])
    append(server, "one", [float(t) for t in range(2000, 3000)])  # more than is kept
    append(server, "one", [3000.0])
    request("DELETE", f"{server.url}/v1/series/gone")
    before = [server.get(f"/v1/series/{name}?last=5000").body for name in ("one", "two")]
    with pytest.raises(RuntimeError, match="store_failed"):
        start("--store", store, "--model", TINY)  # it has one owner
    server.terminate()
    assert server.wait() == 0
    with contextlib.closing(sqlite3.connect(store)) as database:
        kept = database.execute("SELECT sum(length(rows)) / 4 FROM points WHERE id = 'one'").fetchone()[0]
        assert 300 <= kept <= 300 + 512
    server = start("--store", store, "--model", TINY, "--context", "300")
    assert [server.get(f"/v1/series/{name}?last=5000").body for name in ("one", "two")] == before
    assert server.get("/v1/series/gone").status == 404
    assert server.get("/v1/series/one").json()["kept"] == 300


def test_files_that_are_no_store(start, tmp_path):
    (tmp_path / "text").write_text("not a database, " * 100)
    with contextlib.closing(sqlite3.connect(tmp_path / "other")) as database:
        database.execute("CREATE TABLE a(b)")
    for name, code in (("text", "store_format"), ("other", "store_format"), ("no/such/folder", "store_failed")):
        with pytest.raises(RuntimeError, match=code):
            start("--store", str(tmp_path / name), "--model", TINY)
    path = str(tmp_path / "damaged")
    server = start("--store", path, "--model", TINY)
    put(server, "a", values=wave(10))
    append(server, "a", wave(10))
    server.terminate()
    server.wait()
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE points SET step = 11 WHERE step = 10")
    with pytest.raises(RuntimeError, match="store_damaged"):
        start("--store", path, "--model", TINY)


def test_a_kill_loses_no_accepted_point(start, tmp_path):
    """Appenders know what was accepted; the process is killed at random moments (TOTO_KILLS of them)."""
    store = str(tmp_path / "series.db")
    names = [f"s{i}" for i in range(4)]
    accepted = dict.fromkeys(names, 0)
    value = lambda name, step: float((step * 7 + int(name[1:]) * 1000) % 65536)
    chance = random.Random(1)
    total = 0
    for kill in range(KILLS + 1):
        server = start("--store", store, "--model", TINY, "--context", "500", "--quiet-requests")
        for name in names:
            if kill == 0:
                assert put(server, name).status == 201
            seen = server.get(f"/v1/series/{name}?last=500").json()
            # At most the one that was on its way may be there besides what was accepted.
            assert accepted[name] <= seen["count"] <= accepted[name] + 3, (kill, name)
            first = seen["count"] - seen["kept"]
            assert seen["values"] == [value(name, first + t) for t in range(seen["kept"])], (kill, name)
            accepted[name] = seen["count"]
        if kill == KILLS:
            break

        def run(name):
            steps = 1 + int(name[1:]) % 3
            while True:
                at = accepted[name]
                try:
                    answer = append(server, name, [value(name, at + t) for t in range(steps)], at=at)
                except OSError:
                    return
                except Exception:
                    return  # cut off within the answer
                assert answer.status == 200
                accepted[name] = at + steps

        threads = [threading.Thread(target=run, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        begun = sum(accepted.values())
        until(lambda: sum(accepted.values()) >= begun + 6, "appends are not answered")
        time.sleep(chance.uniform(0, 0.15))
        server.process.kill()
        for thread in threads:
            thread.join()
        total += 1
        server.close()
    assert total == KILLS and sum(accepted.values()) > 5 * KILLS
    server.close()
