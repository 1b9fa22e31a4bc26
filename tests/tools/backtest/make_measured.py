# SPDX-License-Identifier: Apache-2.0
# Writes tests/data/backtest/measured.json: the cells of an evaluation, and every measure of every group of
# them by NumPy and scipy alone. Run by hand when a case is added: python3 tests/backtest/make_measured.py
import json
import os

import numpy as np
from scipy import stats

LEVELS = np.array([round(0.05 * i, 2) for i in range(1, 20)])
SOURCES = ["toto", "last_value", "seasonal_naive", "drift"]
HORIZON = 3
# Name, targets, the day of bar 0, origins. B's windows begin between those of A; C is a short one.
SYMBOLS = [("A", ["close", "high"], 0, range(20, 60, 2)), ("B", ["close"], 7, range(14, 48, 3)),
           ("C", ["open"], 30, range(5, 9, 3))]


def make_cells(rng):
    cells = []
    for s, (_, targets, first_day, origins) in enumerate(SYMBOLS):
        for v in range(len(targets)):
            for w, origin in enumerate(origins):
                base = float(np.float32(50 + 20 * s + rng.normal(0, 5)))
                for step in range(1, HORIZON + 1):
                    bar = origin + step
                    seen = rng.random() > 0.1
                    actual = float(np.float32(base * np.exp(rng.normal(0, 0.03)))) if seen else None
                    if rng.random() < 0.05 and seen:
                        actual = base  # did not move
                    point = base * np.exp(rng.normal(0, 0.02))
                    spread = base * 0.03 * (0.5 + rng.random())
                    quantiles = np.float32(point + spread * stats.norm.ppf(LEVELS)).astype(float)
                    cells.append({
                        "symbol": s, "target": v, "window": w, "step": step, "bar": bar, "day": first_day + bar,
                        "base": base, "scale": float(0 if rng.random() < 0.05 else 0.5 + rng.random()),
                        "actual": actual, "point": point, "quantiles": quantiles.tolist(),
                        "baseline": [base, *(base * np.exp(rng.normal(0, 0.03, 2))).tolist()],
                        "sigma": (base * 0.02 * (0.5 + rng.random(3))).tolist()})
    return cells


def paired(losses, origins, ends):
    """Diebold and Mariano with the correction of Harvey, Leybourne and Newbold, of losses by origin."""
    overlap = max((j - i for i in range(len(origins)) for j in range(i + 1, len(origins)) if ends[i] > origins[j]),
                  default=0)
    needed = max(10, 3 * (overlap + 1))
    n = len(origins)
    if n < needed:
        return n, needed, None, None
    d = losses[0] - losses[1]
    cov = [np.sum((d[k:] - d.mean()) * (d[: n - k] - d.mean())) / n for k in range(overlap + 1)]
    variance = cov[0] + 2 * sum(cov[1:])
    if variance <= 0:  # Bartlett's weights
        variance = cov[0] + 2 * sum((1 - k / (overlap + 1)) * c for k, c in enumerate(cov) if k > 0)
    h = overlap + 1
    t = d.mean() / np.sqrt(variance / n) * np.sqrt((n + 1 - 2 * h + h * (h - 1) / n) / n)
    return n, needed, float(t), float(2 * stats.t.sf(abs(t), n - 1))


def point_of(cell, source):
    return cell["point"] if source == 0 else cell["baseline"][source - 1]


def quantiles_of(cell, source):
    if source == 0:
        return np.array(cell["quantiles"])
    return cell["baseline"][source - 1] + cell["sigma"][source - 1] * stats.norm.ppf(LEVELS)


def against(cells, source):
    by_origin = {}
    for c in cells:
        if c["scale"] > 0:
            by_origin.setdefault(c["day"] - c["step"], []).append(c)
    origins = sorted(by_origin)
    ends = [max(c["day"] for c in by_origin[o]) for o in origins]
    losses = [np.array([np.mean([abs(c["actual"] - point_of(c, s)) / c["scale"] for c in by_origin[o]])
                        for o in origins]) for s in (0, source)]
    return paired(losses, origins, ends)


def row(cells, symbol, target, step, source):
    y = np.array([c["actual"] for c in cells])
    f = np.array([point_of(c, source) for c in cells])
    base = np.array([c["base"] for c in cells])
    scale = np.array([c["scale"] for c in cells])
    q = np.array([quantiles_of(c, source) for c in cells])
    e = np.abs(y - f)
    pinball = np.mean(np.maximum(LEVELS * (y[:, None] - q), (LEVELS - 1) * (y[:, None] - q)), axis=0)
    out = {
        "symbol": symbol, "target": target, "step": step, "forecaster": SOURCES[source], "count": len(cells),
        "mae": e.mean(), "rmse": np.sqrt(np.mean(e**2)), "mape": 100 * np.mean(e / np.abs(y)),
        "smape": 200 * np.mean(e / (np.abs(y) + np.abs(f))),
        "mase": np.mean((e / np.where(scale > 0, scale, 1))[scale > 0]) if (scale > 0).any() else None,
        "return_mae": 100 * np.mean(e / base),
        "wql": np.mean(2 * pinball / np.mean(np.abs(y))), "crps": 2 * np.mean(pinball),
        "pinball": pinball.tolist(), "below": np.mean(y[:, None] <= q, axis=0).tolist(),
        "coverage": [float(np.mean((q[:, a] <= y) & (y <= q[:, b]))) for a, b in ((4, 14), (1, 17), (0, 18))],
        "width": [float(100 * np.mean((q[:, b] - q[:, a]) / base)) for a, b in ((4, 14), (1, 17), (0, 18))],
    }
    moved = y != base
    right = int(np.sum(((y - base) * (f - base) > 0) & moved))
    known = source != 1 and moved.any()  # the last value has no direction
    out["directions"] = int(moved.sum()) if source != 1 else 0
    out["direction"] = right / int(moved.sum()) if known else None
    if known:
        interval = stats.binomtest(right, int(moved.sum())).proportion_ci(0.95, method="wilson")
        out["direction_low"], out["direction_high"] = interval.low, interval.high
    if source == 0:
        out["against"] = [against(cells, s) for s in (1, 2, 3)]
    return {k: float(v) if isinstance(v, np.floating) else v for k, v in out.items()}


def main():
    cells = make_cells(np.random.default_rng(11))
    for c in cells:  # a step of one symbol that was never observed
        if c["symbol"] == 1 and c["step"] == 2:
            c["actual"] = None
    names = [s[0] for s in SYMBOLS]
    groups = [("", "")] + [("", t) for t in ("close", "high", "open")]
    for name, targets, _, _ in SYMBOLS:
        groups += [(name, "")] + [(name, t) for t in targets if len(targets) > 1]
    rows = []
    for symbol, target in groups:
        for step in range(HORIZON + 1):
            part = [c for c in cells if c["actual"] is not None and symbol in ("", names[c["symbol"]])
                    and target in ("", SYMBOLS[c["symbol"]][1][c["target"]]) and step in (0, c["step"])]
            rows += [row(part, symbol, target, step, s) for s in range(4) if part]
    everything = {"horizon": HORIZON, "stride": 2, "rows": rows, "cells": cells,
                  "symbols": [{"name": n, "targets": t, "first_day": d, "bars": max(o) + HORIZON + 1}
                              for n, t, d, o in SYMBOLS]}
    path = os.path.join(os.path.dirname(__file__), "..", "data", "backtest", "measured.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(everything, file)
        file.write("\n")


main()
