#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what `--tails normal` and `exponential` change beside `clamp`: pinball loss and coverage at 0.01, 0.05, 0.95 and 0.99.

    python3 bench/tails/tails.py --toto build/release/toto [--prices PRICES.csv] > table.md

The model is one of Toto 2.0, by default models/toto-nano-2. Series are the columns of examples/data, in windows that do not
overlap in what is forecast, and those of bench/paths/coherent.py: random walks, white noise, hourly series with a day and a
week, and daily prices where --prices is given. 48 steps are forecast from 512. The loss is the pinball loss, in units of the
mean change of the series from step to step; printed is that of normal and of exponential tails divided by clamp, and in brackets
its standard error over windows. Beside it the share of observations at or below the quantile with each of the three, which would
be the level. Needs Python's standard library only.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "paths"))
import coherent  # noqa: E402

HORIZON, CONTEXT = 48, 512
LEVELS = ["0.01", "0.05", "0.95", "0.99"]
TAILS = ["clamp", "normal", "exponential"]


def examples():
    """The columns of numbers of every example, cut into windows."""
    out = []
    for path in sorted((ROOT / "examples" / "data").glob("*.csv")):
        rows = list(csv.reader(path.open()))
        for column in range(1, len(rows[0])):
            try:
                values = [float(row[column]) for row in rows[1:] if row[column]]
            except ValueError:
                continue
            for end in range(len(values), CONTEXT + HORIZON - 1, -HORIZON):
                window = values[end - CONTEXT - HORIZON:end]
                if len(set(window[:CONTEXT])) > 1:
                    out.append(window)
    return out


def forecasts(toto, model, series, tails):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "in.csv"
        head = "ds," + ",".join(f"s{i}" for i in range(len(series)))
        path.write_text("\n".join([head] + [f"{t}," + ",".join(f"{row[t]:.6f}" for row in series) for t in range(CONTEXT)]) + "\n")
        done = subprocess.run([toto, "forecast", path, "--model", model, "--horizon", str(HORIZON), "--context", str(CONTEXT),
                               "--quantiles", ",".join(LEVELS), "--tails", tails, "--json", "--quiet"], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return [one["variates"][0]["quantiles"] for one in json.loads(done.stdout)["series"]]


def losses(series, found, level):
    """Mean loss of each window, and the share of observations at or below the quantile."""
    q, out, below = float(level), [], 0
    for row, quantiles in zip(series, found):
        unit = sum(abs(row[t] - row[t - 1]) for t in range(1, CONTEXT)) / (CONTEXT - 1)
        loss = 0.0
        for t in range(HORIZON):
            miss = row[CONTEXT + t] - quantiles[level][t]
            loss += max(q * miss, (q - 1) * miss) / unit
            below += miss <= 0
        out.append(loss / HORIZON)
    return out, below / len(series) / HORIZON


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", default="build/release/toto")
    parser.add_argument("--model", default=str(ROOT / "models" / "toto-nano-2"))
    parser.add_argument("--prices")
    parser.add_argument("--count", type=int, default=100, help="series of each kind that is made")
    arguments = parser.parse_args()
    kinds = {"examples/data": examples(), "random walks": coherent.walks(arguments.count),
             "white noise": coherent.noise(arguments.count), "hourly": coherent.hourly(arguments.count)}
    if arguments.prices:
        kinds["daily prices"] = coherent.prices(arguments.prices)
    print("| | level | loss, normal / clamp | exponential / clamp | below it, clamp | normal | exponential |\n|---|---|---|---|---|---|---|")
    for kind, series in kinds.items():
        series = [row[-CONTEXT - HORIZON:] for row in series]
        found = {tails: forecasts(arguments.toto, arguments.model, series, tails) for tails in TAILS}
        for level in LEVELS:
            loss, below = zip(*(losses(series, found[tails], level) for tails in TAILS))
            n, mean = len(series), sum(loss[0]) / len(series)
            cells = [f"{kind} ({n})", level]
            for other in loss[1:]:
                ratio = sum(other) / n / mean
                error = (sum((o - ratio * c) ** 2 for o, c in zip(other, loss[0])) / (n - 1) / n) ** 0.5 / mean
                cells.append(f"{ratio:.3f} ({error:.3f})")
            print("| " + " | ".join(cells + [f"{share:.3f}" for share in below]) + " |", flush=True)


if __name__ == "__main__":
    main()
