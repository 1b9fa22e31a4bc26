# SPDX-License-Identifier: Apache-2.0
# What operations rely on: every flag has a variable, the dashboard asks for what /metrics has, the unit and the
# container file name flags and packages that there are.
import json
import re
import subprocess

from conftest import PROGRAM, ROOT, kserve_body

FORECAST = "/v1/timeseries/forecast"
EXAMPLES = ROOT / "examples/serving"


# A value that is not built in for every flag of the sections that are the server's own.
VALUES = {
    "max-body": "8MiB", "max-series": "99", "max-variates": "98", "max-horizon": "97", "max-samples": "96",
    "max-quantiles": "95", "context": "94", "timeout": "93", "max-request-cost": "9e9", "max-queue": "92",
    "max-batch-cost": "9e4", "max-batch-requests": "91", "host": "127.0.0.1", "port": "0", "io-threads": "1",
    "max-connections": "90", "max-header": "8999", "max-held": "88MiB", "header-timeout": "8", "body-timeout": "7",
    "idle-timeout": "6", "write-timeout": "5", "drain-timeout": "4", "api-keys": "keys", "quiet-requests": "1",
    "store": "store", "max-live-series": "3", "max-live-memory": "2MiB"}


def test_every_flag_of_a_server_has_a_variable(start, tmp_path):
    text = subprocess.run([PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    own = text[text.index("Limits of a request:"):]
    own = own[:own.index("Live series:")] + own[own.index("Live series:"):].split("\n\n")[0]
    assert set(re.findall(r"^  (?:-\w, )?--([a-z-]+)", own, re.M)) == set(VALUES)
    (tmp_path / "keys").write_text("secret\n")
    values = {**VALUES, "api-keys": str(tmp_path / "keys"), "store": str(tmp_path / "store")}
    variables = {"TOTO_SERVE_" + name.upper().replace("-", "_"): value for name, value in values.items()}
    server = start(environment={**variables, "TOTO_SERVE_MAX_BODIES": "1"})
    warned = [line for line in server.lines if "does not read it" in line]
    assert len(warned) == 1 and "TOTO_SERVE_MAX_BODIES" in warned[0] and "did you mean" in warned[0]
    assert (tmp_path / "store").exists()
    key = {"X-API-Key": "secret"}
    assert server.get("/v1/models").status == 401
    assert server.get("/v1/models", key).json()["data"][0]["max_prediction_length"] == 97
    assert server.get("/v1/models", key).json()["data"][0]["context_length"] == 94
    assert server.post(FORECAST, b" " * (8 << 20) + b"1", key).status == 413


def test_variables_are_obeyed_and_flags_go_before_them(start):
    server = start("--max-horizon", "7", environment={"TOTO_SERVE_MAX_HORIZON": "5", "TOTO_SERVE_MAX_SERIES": "1"})
    assert server.post(FORECAST, kserve_body(horizon=7)).status == 200
    assert "at most 7 steps" in server.post(FORECAST, kserve_body(horizon=8)).json()["error"]["message"]
    two = kserve_body()
    two["inputs"] *= 2
    assert server.post(FORECAST, two).status == 422


def test_the_dashboard_asks_for_what_there_is(server):
    assert server.post(FORECAST, kserve_body()).status == 200
    assert server.post(FORECAST, b"{").status == 400
    server.wait_for_metric('toto_errors_total{code="invalid_json"}', lambda n: n >= 1)
    metrics = server.get("/metrics").body.decode()
    there = set(re.findall(r"^([a-z_]+)(?:\{| )", metrics, re.M))
    board = json.loads((EXAMPLES / "grafana.json").read_text())
    asked = set()
    for panel in board["panels"]:
        for target in panel["targets"]:
            asked |= set(re.findall(r"\b((?:toto|process)_[a-z_]+)", target["expr"]))
    assert len(asked) > 12
    assert asked <= there, asked - there


def test_the_unit_and_the_container_file():
    unit = (EXAMPLES / "toto-serve.service").read_text()
    assert "ExecStart=/usr/local/bin/toto serve" in unit and "kill -HUP" in unit
    packages = (ROOT / "scripts/common.sh").read_text()
    container = (EXAMPLES / "Containerfile").read_text()
    for package in ("libboost1.81-dev", "prometheus-cpp-dev", "libsqlite3-dev", "libhwy-dev", "libcli11-dev"):
        assert package in packages and package in container
    for name in re.findall(r"ENV TOTO_SERVE_([A-Z_]+)=", container):
        assert name.lower().replace("_", "-") in VALUES
