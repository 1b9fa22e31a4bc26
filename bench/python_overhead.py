#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call from Python costs on top of the engine, and what importing and the first forecast take.

    bench/python_overhead.py [--model DIR]      # with the package installed (docs/python.md); prints one JSON object

The engine's own time is that of its counters in the same calls. Medians of calls; for a batch the best of five.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import toto_cpp

NANO = str(Path(__file__).resolve().parent.parent / "models/toto-nano")
STAGES = ("prepare_seconds", "context_seconds", "decode_seconds", "statistics_seconds")


def median_of(call, count):
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def one_series(model, steps):
    values = np.sin(np.arange(steps) / 8).astype(np.float32)

    def call():
        return model.forecast(values, 8).mean

    median_of(call, 500)
    whole = median_of(call, 1000)
    return {"call_us": 1e6 * whole, "over_engine_us": 1e6 * (whole - model.counters["latency_p50"])}


def many_series(model, count=1000, steps=512):
    series = [np.sin(np.arange(steps) / (8 + i)).astype(np.float32) for i in range(count)]
    best = None
    for _ in range(6):
        before = model.counters
        begun = time.perf_counter()
        model.forecast(series, 24)
        whole = time.perf_counter() - begun
        after = model.counters
        engine = sum(after[s] - before[s] for s in STAGES)
        if best is None or whole < best[0]:
            best = whole, engine
    return {"call_ms": 1e3 * best[0], "over_engine_percent": 100 * (best[0] / best[1] - 1)}


def frame_of(model, count=1000, steps=512):
    import polars

    values = np.random.default_rng(0).normal(size=(count, steps)).astype(np.float32).cumsum(1)
    times = np.datetime64("2026-01-01T00", "us") + np.arange(steps) * np.timedelta64(1, "h")
    frame = polars.DataFrame(
        {"item_id": np.repeat([f"s{i}" for i in range(count)], steps), "timestamp": np.tile(times, count), "target": values.ravel()}
    )
    array = frame_time = float("inf")
    for _ in range(4):  # in turn, so that other programs slow both
        begun = time.perf_counter()
        model.forecast(list(values), 24, [0.1, 0.5, 0.9], scaler_fallback_min_obs=8, quantile_real_cap_k=1e4)
        between = time.perf_counter()
        model.predict_df(frame, prediction_length=24, quantile_levels=[0.1, 0.9])
        array = min(array, between - begun)
        frame_time = min(frame_time, time.perf_counter() - between)
    return {"array_ms": 1e3 * array, "frame_ms": 1e3 * frame_time, "ratio": frame_time / array}


def cold(count=10):
    """A process of its own each time."""
    code = """
import sys, time, numpy
begun = time.perf_counter()
import toto_cpp
imported = time.perf_counter()
toto_cpp.load(sys.argv[1]).forecast(numpy.sin(numpy.arange(512) / 8).astype("float32"), 24).mean
print(imported - begun, time.perf_counter() - begun)
"""
    runs = []
    for _ in range(count):
        begun = time.perf_counter()
        printed = subprocess.run([sys.executable, "-c", code, NANO], capture_output=True, text=True, check=True).stdout
        runs.append((*map(float, re.findall(r"\S+", printed)), time.perf_counter() - begun))
    columns = [statistics.median(column) for column in zip(*runs)]
    return {"import_ms": 1e3 * columns[0], "first_forecast_ms": 1e3 * columns[1], "process_ms": 1e3 * columns[2]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="of the single series: a small one shows the overhead best (default: models/toto-nano)", default=NANO)
    chosen = parser.parse_args().model
    with toto_cpp.load(NANO) as nano, toto_cpp.load(chosen, threads=1) as small:
        result = {
            "version": toto_cpp.__version__,
            "one": one_series(small, 64),
            "thousand": many_series(nano),
            "frame": frame_of(nano),
            "cold": cold(),
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
