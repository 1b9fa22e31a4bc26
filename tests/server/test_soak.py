# SPDX-License-Identifier: Apache-2.0
# Long: a server at 80 % of what it can do. TOTO_SOAK_SECONDS says for how long (1800 for a release; 20 in CI).
import json
import os
import re
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor

from conftest import ROOT, kserve_body

sys.path.insert(0, str(ROOT / "bench"))
from load_generator import at_rate, message, saturate  # noqa: E402

SECONDS = float(os.environ.get("TOTO_SOAK_SECONDS", "20"))
FORECAST = "/v1/timeseries/forecast"
CLIENTS = 32
STEPS, HORIZONS = (64, 200, 512), (8, 24)


def events(server):
    """What the engine built, captured and allocated so far: code -> count."""
    found = re.findall(r'toto_engine_events_total\{code="(plan_built|graph_captured|memory_grown)"\} (\S+)',
                       server.get("/metrics").body.decode())
    return {code: float(count) for code, count in found}


def test_a_long_load_builds_nothing_and_keeps_its_memory(start):
    server = start("--quiet-requests", "--max-batch-requests", str(CLIENTS))
    # As many of the longest as a micro-batch may have: its plan holds all others. The first begins before all are there,
    # so more than one is asked for at once.
    largest = kserve_body(steps=max(STEPS), horizon=max(HORIZONS))
    largest["inputs"] *= CLIENTS
    with ThreadPoolExecutor(4) as pool:
        assert {answer.status for answer in pool.map(lambda _: server.post(FORECAST, largest), range(4))} == {200}
    built = events(server)
    assert built["plan_built"] >= 1 and built["memory_grown"] >= 1
    requests = [message(FORECAST, kserve_body(steps=s, horizon=h)) for s in STEPS for h in HORIZONS]
    most = saturate(server.port, requests, CLIENTS, max(5, SECONDS / 60))
    assert set(most["statuses"]) == {200}
    resident = []
    load = at_rate(server.port, requests, 0.8 * most["rate"], SECONDS, CLIENTS,
                   lambda: resident.append(server.memory()))
    quarter = max(1, len(resident) // 4)
    first, last = statistics.median(resident[:quarter]), statistics.median(resident[-quarter:])
    print(json.dumps({"seconds": SECONDS, "saturation_per_second": most["rate"], "at_80": load,
                      "rss_mib": [round(r / 2**20, 2) for r in (resident[0], first, last, max(resident))],
                      "engine_events_before": built, "engine_events_after": events(server)}))
    assert set(load["statuses"]) == {200}
    assert last - first < 8 << 20, f"{(last - first) / 2**20:.1f} MiB more after {load['answered']} requests"
    assert events(server) == built, "plans are still built, or the engine allocates"
    server.terminate()
    assert server.wait() == 0
