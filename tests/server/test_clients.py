# SPDX-License-Identifier: Apache-2.0
# Each protocol through a client that knows nothing of toto: tritonclient, kserve, prometheus-client, curl.
import asyncio
import json
import subprocess

import numpy as np
import pytest
import tritonclient.http
import tritonclient.http.aio
from conftest import kserve_body, wave
from kserve.protocol.rest.timeseries import types
from prometheus_client.parser import text_string_to_metric_families
from tritonclient.utils import InferenceServerException


def target(values, binary, name="target", datatype="FP32"):
    tensor = tritonclient.http.InferInput(name, list(values.shape), datatype)
    tensor.set_data_from_numpy(values, binary_data=binary)
    return tensor


def two_series():
    return np.array([[wave(64)], [wave(64, 1.0)]], dtype=np.float32)


def triton(server):
    return tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.port}")


def test_triton_metadata(server):
    client = triton(server)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("toto-nano-2")
    assert client.is_model_ready("toto-nano-2", "1")
    assert client.get_server_metadata()["name"] == "toto"
    metadata = client.get_model_metadata("toto-nano-2")
    assert [t["name"] for t in metadata["inputs"]][0] == "target"
    assert {"mean", "quantiles"} <= {t["name"] for t in metadata["outputs"]}
    assert not client.is_model_ready("none")


@pytest.mark.parametrize("binary_in", [False, True])
@pytest.mark.parametrize("binary_out", [False, True])
def test_triton_infer(server, binary_in, binary_out):
    client = triton(server)
    outputs = [tritonclient.http.InferRequestedOutput(n, binary_data=binary_out)
               for n in ("mean", "quantiles", "quantile_levels")]
    levels = target(np.array([0.1, 0.5, 0.9]), binary_in, "quantile_levels", "FP64")
    result = client.infer("toto-nano-2", [target(two_series(), binary_in), levels], outputs=outputs,
                          request_id="r1", parameters={"horizon": 12})
    assert result.get_response()["id"] == "r1"
    assert result.as_numpy("mean").shape == (2, 1, 12)
    quantiles = result.as_numpy("quantiles")
    assert quantiles.shape == (2, 3, 1, 12) and quantiles.dtype == np.float32
    assert np.all(np.diff(quantiles, axis=1) >= 0)
    np.testing.assert_array_equal(result.as_numpy("quantile_levels"), [0.1, 0.5, 0.9])
    # The same numbers whichever way they come and go.
    again = client.infer("toto-nano-2", [target(two_series(), True)], parameters={"horizon": 12})
    np.testing.assert_array_equal(again.as_numpy("mean"), result.as_numpy("mean"))


def test_triton_ids_masks_types_and_compression(server):
    client = triton(server)
    values = two_series()
    ids = target(np.array([b"a", "b\u00e9".encode()], dtype=np.object_), True, "id", "BYTES")
    mask = np.ones(values.shape, dtype=bool)
    mask[:, :, 5] = False
    horizon = target(np.array([4], dtype=np.int64), True, "horizon", "INT64")
    with_mask = client.infer("toto-nano-2", [target(values, True), ids, target(mask, True, "mask", "BOOL"), horizon],
                             request_compression_algorithm="gzip", response_compression_algorithm="gzip")
    holes = values.copy()
    holes[:, :, 5] = np.nan
    with_nan = client.infer("toto-nano-2", [target(holes.astype(np.float64), True, datatype="FP64"), ids, horizon],
                            request_compression_algorithm="deflate")
    np.testing.assert_array_equal(with_mask.as_numpy("mean"), with_nan.as_numpy("mean"))
    assert with_mask.as_numpy("mean").shape == (2, 1, 4)


def test_triton_samples_depend_on_the_seed_alone(server):
    client = triton(server)
    wanted = [tritonclient.http.InferRequestedOutput("samples")]
    run = lambda seed: client.infer("toto-nano-2", [target(two_series(), True)], outputs=wanted, parameters={
        "horizon": 40, "num_samples": 6, "seed": seed}).as_numpy("samples")
    assert run(1).shape == (2, 6, 1, 40)
    np.testing.assert_array_equal(run(1), run(1))
    assert np.any(run(1) != run(2))


def test_triton_errors(server):
    client = triton(server)
    with pytest.raises(InferenceServerException, match="unknown_model") as caught:
        client.infer("none", [target(two_series(), True)])
    assert caught.value.status() == "404"
    with pytest.raises(InferenceServerException, match="invalid_tensor"):
        client.infer("toto-nano-2", [target(two_series(), True, "wrong")])
    with pytest.raises(InferenceServerException, match="limit_exceeded") as caught:
        client.infer("toto-nano-2", [target(two_series(), True)], parameters={"horizon": 1_000_000})
    assert caught.value.status() == "422" and "990000 more" in str(caught.value)
    # A microsecond is over before the work begins.
    with pytest.raises(InferenceServerException, match="deadline_exceeded") as caught:
        client.infer("toto-nano-2", [target(two_series(), True)], timeout=1)
    assert caught.value.status() == "504"


def test_triton_async(server):
    expected = triton(server).infer("toto-nano-2", [target(two_series(), True)]).as_numpy("mean")

    async def run():
        client = tritonclient.http.aio.InferenceServerClient(f"127.0.0.1:{server.port}")
        try:
            assert await client.is_server_ready()
            return await asyncio.gather(*[client.infer("toto-nano-2", [target(two_series(), i % 2 == 0)])
                                          for i in range(40)])
        finally:
            await client.close()

    for result in asyncio.run(run()):
        np.testing.assert_array_equal(result.as_numpy("mean"), expected)


def test_kserve_types_on_requests_and_answers(server):
    body = kserve_body()
    body["inputs"].append({"type": "multivariate_time_series", "name": "two", "frequency": "month",
                           "start_timestamp": "2026-01-31", "series": [[a, a * 2] for a in wave(40)]})
    types.ForecastRequest.model_validate(body)
    answer = server.post("/v1/timeseries/forecast", body)
    assert answer.status == 200
    parsed = types.ForecastResponse.model_validate(answer.json())
    one, two = parsed.outputs[0].content
    assert (one.name, len(one.mean_forecast), set(one.quantiles)) == ("load", 8, {"0.1", "0.5", "0.9"})
    assert one.start_timestamp == "2026-01-03T16:00:00Z"
    assert two.start_timestamp == "2029-05-31"  # 40 months on
    assert np.array(two.mean_forecast).shape == (8, 2)
    names = server.get("/v1/timeseries/models").json()
    assert names == ["toto-nano-2"]
    wrong = server.post("/v1/timeseries/forecast", {**body, "model": "none"})
    assert wrong.status == 404
    assert types.ErrorResponse.model_validate(wrong.json()).error.code == "unknown_model"


@pytest.mark.parametrize("frequency", [f.value for f in types.Frequency])
def test_kserve_frequencies_as_kserve_counts(server, frequency):
    from datetime import datetime

    body = kserve_body(steps=33, horizon=1)
    body["inputs"][0].update(frequency=frequency, start_timestamp="2026-01-31T10:00:00")
    start = server.post("/v1/timeseries/forecast", body).json()["outputs"][0]["content"][0]["start_timestamp"]
    expected = datetime(2026, 1, 31, 10) + types.FREQUENCY_MAP[frequency](33)
    assert datetime.fromisoformat(start) == expected


def test_kserve_rest_client(server):
    from kserve import InferenceRESTClient, InferInput, InferRequest
    from kserve.inference_client import RESTConfig

    async def run():
        client = InferenceRESTClient(RESTConfig(protocol="v2", retries=0))
        assert await client.is_server_live(server.url) and await client.is_server_ready(server.url)
        assert await client.is_model_ready(server.url, "toto-nano-2")
        tensor = InferInput("target", [1, 1, 64], "FP32")
        tensor.set_data_from_numpy(np.array([[wave(64)]], dtype=np.float32), binary_data=False)
        asked = InferRequest(model_name="toto-nano-2", infer_inputs=[tensor], parameters={"horizon": 5})
        answer = await client.infer(server.url, asked, model_name="toto-nano-2")
        await client.close()
        return answer

    answer = asyncio.run(run())
    mean = next(o for o in answer.outputs if o.name == "mean")
    assert mean.shape == [1, 1, 5] and len(mean.data) == 5


def test_tsfm_form(server):
    body = {"model": "toto-nano-2",
            "inputs": [{"target": [[v] for v in wave(64)], "start": "2026-01-01", "metadata": {"a": 1},
                        "past_covariates": {"p": wave(64, 1), "k": wave(64, 2)},
                        "future_covariates": {"k": wave(6, 3)}}],
            "parameters": {"prediction_length": 6, "quantile_levels": [0.1, 0.9], "frequency": "D"}}
    answer = server.post("/v1/forecast", body)
    assert answer.status == 200
    out = answer.json()
    assert out["horizon"] == 6 and out["quantile_levels"] == [0.1, 0.9]
    one = out["outputs"][0]
    assert np.array(one["mean"]).shape == (6, 1)
    assert [q["level"] for q in one["quantile_predictions"]] == [0.1, 0.9]
    assert one["timestamps"][0] == "2026-03-06" and one["metadata"] == {"a": 1}
    assert out["usage"]["total_tokens"] == out["usage"]["input_tokens"] + 6
    models = server.get("/v1/models").json()["data"]
    assert models[0]["id"] == "toto-nano-2" and server.get("/v1/models/toto-nano-2").json() == models[0]


def test_the_default_is_toto_nano_2(server, start):
    """toto-nano is served where it is asked for."""
    kserve = kserve_body()
    infer = {"inputs": [{"name": "target", "datatype": "FP32", "shape": [1, 1, 64], "data": wave(64)}]}
    assert server.get("/v1/timeseries/models").json() == ["toto-nano-2"]
    for path, body in (("/v1/timeseries/forecast", kserve_body(model="toto-nano")), ("/v2/models/toto-nano/infer", infer)):
        refused = server.post(path, body)
        assert refused.status == 404 and b"unknown_model" in refused.body and b"toto-nano-2" in refused.body
    both = start("--model", "toto-nano-2", "--model", "toto-nano")
    assert both.get("/v1/timeseries/models").json() == ["toto-nano-2", "toto-nano"]
    found = {name: both.post("/v1/timeseries/forecast", kserve_body(model=name)).json()["outputs"][0]["content"]
             for name in ("toto-nano-2", "toto-nano")}
    assert found["toto-nano-2"] == server.post("/v1/timeseries/forecast", kserve).json()["outputs"][0]["content"]
    assert found["toto-nano-2"] != found["toto-nano"]


def test_covariates_and_variates_count(start):
    server = start("--model", "tiny=tests/data/golden/toto1-tiny-a")

    def mean(**more):
        body = {"model": "tiny", "inputs": [{"target": wave(64), **more}], "parameters": {"prediction_length": 24}}
        answer = server.post("/v1/forecast", body)
        assert answer.status == 200, answer.body
        return answer.json()["outputs"][0]["mean"]

    past, ahead = {"p": wave(64, 1), "k": wave(64, 2)}, wave(24, 3)
    alone, with_past = mean(), mean(past_covariates=past)
    known = mean(past_covariates=past, future_covariates={"k": ahead})
    changed = mean(past_covariates=past, future_covariates={"k": [9 * v for v in ahead]})
    assert len({json.dumps(m) for m in (alone, with_past, known, changed)}) == 4
    assert all(len(step) == 1 for step in known)  # covariates are not answered
    unknown = server.post("/v1/forecast", {"model": "tiny", "inputs": [
        {"target": wave(64), "future_covariates": {"k": ahead}}], "parameters": {"prediction_length": 24}})
    assert (unknown.status, unknown.json()["code"]) == (400, "missing_covariate")


def test_metrics(server):
    server.post("/v1/timeseries/forecast", kserve_body())
    server.wait_for_metric("toto_http_request_seconds_count{route=\"/v1/timeseries/forecast\"}", lambda n: n >= 1)
    families = {f.name: f for f in text_string_to_metric_families(server.get("/metrics").body.decode())}
    completed = [s for s in families["toto_series"].samples if s.labels.get("result") == "completed"]
    assert completed[0].value >= 1
    for name in ("toto_queue_seconds", "toto_compute_seconds", "toto_batch_cost_tokens", "toto_http_request_seconds"):
        assert families[name].type == "histogram"
        buckets = [s for s in families[name].samples if s.name.endswith("_bucket")]
        assert buckets[-1].labels["le"] == "+Inf" and buckets[-1].value > 0
    assert {s.labels["reason"] for s in families["toto_refused"].samples} == {
        "queue_full", "request_too_large", "draining"}


def test_curl(server, tmp_path):
    body = tmp_path / "body.json"
    body.write_text(json.dumps(kserve_body()))
    out = subprocess.run(["curl", "-sS", "--fail", "--compressed", "-H", "Content-Type: application/json", "-d",
                          f"@{body}", server.url + "/v1/timeseries/forecast"], capture_output=True, check=True)
    assert json.loads(out.stdout)["status"] == "completed"
    head = subprocess.run(["curl", "-sS", "-I", server.url + "/health"], capture_output=True, check=True)
    assert head.stdout.startswith(b"HTTP/1.1 200")


def test_ids_and_traces_go_through_to_the_log(server):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    answer = server.post("/v1/timeseries/forecast", kserve_body(), {"X-Request-Id": "my-id", "traceparent": trace})
    assert answer.headers["X-Request-Id"] == "my-id"
    assert "compute;dur=" in answer.headers["Server-Timing"]
    line = server.wait_for_event("request", request_id="my-id")
    assert (line["trace_id"], line["status"], line["model"]) == (trace[3:35], 200, "toto-nano-2")
    assert line["compute_seconds"] > 0
