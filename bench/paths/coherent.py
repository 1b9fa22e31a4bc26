#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what `--paths coherent` changes: the quantile loss beside `--paths independent`, and the coverage of the 80 % band.

    python3 bench/paths/coherent.py --toto build/release/toto [--prices PRICES.csv] [-- FLAGS] > table.md
    python3 bench/paths/coherent.py --toto build/release/toto --sums -- --model models/toto-nano-2 > table.md

Random walks, white noise, and hourly series with a day and a week are made here; --prices is a wide table of daily prices,
such as sp500_dataset.csv of the package skfolio (`pip download --no-deps skfolio`). 96 steps are forecast from 1,024.
The loss is the mean of the pinball losses at 0.1 ... 0.9 over steps and windows, for each series in units of the mean
change from step to step; printed is coherent divided by independent. --sums: coverage and loss of the sum over the horizon,
which is all that changes where every step's quantiles are known without trajectories. Needs Python's standard library only.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import random
import subprocess
import tempfile

HORIZON, CONTEXT = 96, 1024
BANDS = {"1-32": (0, 32), "33-64": (32, 64), "65-96": (64, 96), "33-96": (32, 96)}
LEVELS = [i / 10 for i in range(1, 10)]


def walks(count):
    rng, out = random.Random(1), []
    for _ in range(count):
        level, row = 1000.0, []
        for _ in range(CONTEXT + HORIZON):
            level += rng.gauss(0, 1)
            row.append(level)
        out.append(row)
    return out


def noise(count):
    rng = random.Random(2)
    return [[rng.gauss(100, 10) for _ in range(CONTEXT + HORIZON)] for _ in range(count)]


def hourly(count):
    rng, out = random.Random(3), []
    for _ in range(count):
        memory, phase, drop, level = rng.uniform(0, 0.8), rng.uniform(0, 6), rng.uniform(0, 0.6), 0.0
        row = []
        for t in range(CONTEXT + HORIZON):
            level = memory * level + math.sqrt(1 - memory * memory) * rng.gauss(0, 1)
            turn = 2 * math.pi * t / 24
            daily = math.sin(turn - phase) + 0.4 * math.sin(2 * turn)
            weekend = 1 if t // 24 % 7 >= 5 else 0
            row.append(600 + 160 * daily * (1 - drop * weekend) - 100 * weekend + 20 * level)
        out.append(row)
    return out


def prices(path, windows=4):
    """The last windows of every column, not overlapping in what is forecast."""
    rows = list(csv.reader(pathlib.Path(path).open()))
    out = []
    for column in range(1, len(rows[0])):
        values = [float(row[column]) for row in rows[1:] if row[column]]
        for window in range(windows):
            end = len(values) - window * HORIZON
            if end >= CONTEXT + HORIZON:
                out.append(values[end - CONTEXT - HORIZON:end])
    return out


def forecasts(toto, series, kind, samples, more, sums=False):
    """Of each series, or of its sum."""
    with tempfile.TemporaryDirectory() as folder:
        if sums:
            more = ["--aggregate-horizon", "sum", "--output-horizon", pathlib.Path(folder) / "sums.json", *more]
        path = pathlib.Path(folder) / "in.csv"
        head = "ds," + ",".join(f"s{i}" for i in range(len(series)))
        path.write_text("\n".join([head] + [f"{t}," + ",".join(f"{row[t]:.6f}" for row in series) for t in range(CONTEXT)]) + "\n")
        done = subprocess.run([toto, "forecast", path, "--horizon", str(HORIZON), "--context", str(CONTEXT), "--samples", str(samples),
                               "--paths", kind, "--json", "--quiet", *more], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        out = json.loads((pathlib.Path(folder) / "sums.json").read_text() if sums else done.stdout)
        return [one["variates"][0]["quantiles"] for one in out["series"]]


def measure(series, found):
    """{band: (loss, coverage)}"""
    out = {}
    for name, (first, last) in BANDS.items():
        loss = covered = 0.0
        for row, quantiles in zip(series, found):
            unit = sum(abs(row[t] - row[t - 1]) for t in range(1, CONTEXT)) / (CONTEXT - 1)
            for t in range(first, last):
                y = row[CONTEXT + t]
                for level in LEVELS:
                    miss = y - quantiles[f"{level:g}"][t]
                    loss += max(level * miss, (level - 1) * miss) / unit
                covered += quantiles["0.1"][t] <= y <= quantiles["0.9"][t]
        cells = len(series) * (last - first)
        out[name] = (loss / cells / len(LEVELS), covered / cells)
    return out


def measure_sums(series, found):
    """Loss of the sums, in units of the change from step to step, and coverage."""
    loss = covered = 0.0
    for row, quantiles in zip(series, found):
        unit = sum(abs(row[t] - row[t - 1]) for t in range(1, CONTEXT)) / (CONTEXT - 1)
        total = sum(row[CONTEXT:])
        for level in LEVELS:
            miss = total - quantiles[f"{level:g}"]
            loss += max(level * miss, (level - 1) * miss) / unit
        covered += quantiles["0.1"] <= total <= quantiles["0.9"]
    return loss / len(series) / len(LEVELS), covered / len(series)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", default="build/release/toto")
    parser.add_argument("--prices")
    parser.add_argument("--count", type=int, default=60, help="series of each kind")
    parser.add_argument("--only", default="", help="kinds, between commas, such as walks")
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--sums", action="store_true", help="of the sum over the horizon")
    parser.add_argument("flags", nargs="*", help="after --: for toto forecast")
    arguments = parser.parse_args()
    # Of the figures in the pages; --model among the flags comes first.
    os.environ.setdefault("TOTO_MODEL_ID", str(pathlib.Path(__file__).resolve().parents[2] / "models/toto-nano"))
    kinds = {"random walks": walks(arguments.count), "white noise": noise(arguments.count), "hourly": hourly(arguments.count)}
    if arguments.prices:
        kinds["daily prices"] = prices(arguments.prices)
    only = [word for word in arguments.only.split(",") if word]
    kinds = {kind: series for kind, series in kinds.items() if not only or any(word in kind for word in only)}
    how = ("independent", "coherent")
    if arguments.sums:
        print("| | loss of the sum, coherent / independent | coverage of 80 %, independent | coherent |\n|---|---|---|---|")
        for kind, series in kinds.items():
            (loss, covered), (coherent_loss, coherent_covered) = [
                measure_sums(series, forecasts(arguments.toto, series, word, arguments.samples, arguments.flags, True)) for word in how]
            print(f"| {kind} ({len(series)}) | {coherent_loss / loss:.3f} | {covered:.3f} | {coherent_covered:.3f} |", flush=True)
        return
    print("| | steps | loss, coherent / independent | coverage of 80 %, independent | coherent |\n|---|---|---|---|---|")
    for kind, series in kinds.items():
        each = [measure(series, forecasts(arguments.toto, series, word, arguments.samples, arguments.flags)) for word in how]
        for band in BANDS:
            (loss, covered), (coherent_loss, coherent_covered) = each[0][band], each[1][band]
            print(f"| {kind} ({len(series)}) | {band} | {coherent_loss / loss:.3f} | {covered:.3f} | {coherent_covered:.3f} |", flush=True)


if __name__ == "__main__":
    main()
