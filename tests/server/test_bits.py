# SPDX-License-Identifier: Apache-2.0
# A request alone and the same among 500 others at saturation: the same JSON, byte for byte.
import concurrent.futures
import contextlib
import json
import random
import re

import pytest
from conftest import NANO, Endless, kserve_body, request, wave

ANY_TIME = re.compile(rb'"created_at":\d+')


def others(count, model):
    """Requests of mixed kinds: lengths, horizons, levels, variates, samples, protocols."""
    chance = random.Random(7)
    for i in range(count):
        steps = chance.choice([3, 31, 64, 100, 257, 512])
        horizon = chance.choice([1, 8, 32, 48, 70])
        kind = chance.randrange(4)
        if kind == 0:
            yield "/v1/timeseries/forecast", kserve_body(f"n{i}", steps, horizon, model, seed=chance.randrange(9))
        elif kind == 1:
            rows = [[a, b] for a, b in zip(wave(steps), wave(steps, 2))]
            yield "/v1/forecast", {"model": model, "inputs": [{"target": rows}],
                                   "parameters": {"prediction_length": horizon, "num_samples": 20}}
        elif kind == 2:
            yield f"/v2/models/{model}/infer", {
                "inputs": [{"name": "target", "datatype": "FP32", "shape": [2, 1, steps],
                            "data": wave(steps) + wave(steps, 1)}], "parameters": {"horizon": horizon}}
        else:
            yield "/v1/forecast", {"model": model, "inputs": [{"target": wave(steps)}],
                                   "parameters": {"prediction_length": horizon, "mean_only": True}}


def watched(model):
    """What is looked at: sampled steps, exact ones, several variates, kept samples."""
    yield "/v1/timeseries/forecast", kserve_body("sampled", 100, 70, model, seed=3, num_samples=50)
    yield "/v1/timeseries/forecast", kserve_body("exact", 257, 8, model)
    yield "/v1/timeseries/forecast", kserve_body("kept", 64, 40, model, num_samples=5, return_samples=True)
    rows = [[a, b, None] if i % 7 else [a, None, b] for i, (a, b) in enumerate(zip(wave(90), wave(90, 2)))]
    yield "/v1/forecast", {"model": model, "inputs": [{"target": rows}],
                           "parameters": {"prediction_length": 40, "quantile_levels": [0.05, 0.5]}}
    yield f"/v2/models/{model}/infer", {
        "inputs": [{"name": "target", "datatype": "FP32", "shape": [2, 2, 50],
                    "data": wave(200)}], "parameters": {"horizon": 36, "num_samples": 30}}


@pytest.mark.parametrize("model", ["toto-nano", "toto-nano-2"])
def test_alone_and_among_500_at_saturation(start, model):
    slow = model == "toto-nano"  # the other keeps no device busy until all have come
    server = start(*(NANO if slow else ()))
    counters = (f'toto_series_total{{model="{model}",result="completed"}}', "toto_device_batches_total")
    asked = list(watched(model))

    def send(path, body, name):
        answer = request("POST", server.url + path, json.dumps(body).encode(), {"X-Request-Id": name})
        assert answer.status == 200, answer.body
        return ANY_TIME.sub(b"", answer.body)

    alone = [send(path, body, f"w{i}") for i, (path, body) in enumerate(asked)]
    crowd = list(others(500, model))
    series = sum(len(body["inputs"]) if "model" in body else body["inputs"][0]["shape"][0]
                 for _, body in crowd + 3 * asked)
    before = [server.metric(name) for name in counters]
    with concurrent.futures.ThreadPoolExecutor(600) as pool:
        with Endless(server) if slow else contextlib.nullcontext():  # until all of them wait
            rest = [pool.submit(send, path, body, f"o{i}") for i, (path, body) in enumerate(crowd[:250])]
            among = [(i, pool.submit(send, path, body, f"w{i}")) for _ in range(3)
                     for i, (path, body) in enumerate(asked)]
            rest += [pool.submit(send, path, body, f"o{i}") for i, (path, body) in enumerate(crowd[250:])]
            if slow:
                server.wait_for_metric("toto_queue_series", lambda n: n == series, seconds=120)
        for i, future in among:
            assert future.result() == alone[i]
        for future in rest:
            future.result()
    done, batches = (server.metric(name) - b for name, b in zip(counters, before))
    assert done == series
    assert not slow or batches < series / 4, "too little was computed together"
