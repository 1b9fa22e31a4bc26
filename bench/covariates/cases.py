#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what known covariates gain, on series that are made here.

    python3 bench/covariates/cases.py --toto build/release/toto

Three series whose covariate matters: daily sales with a holiday effect of +80; y = 3 temperature; y = 40 promotion. And
ten that know nothing of theirs: a walk, weekly sales, a slow wave, beside a covariate that is random, moves slowly, or
marks holidays. Each is forecast 28 days ahead from the last 40 weekly origins, with `toto backtest --future` and without;
the ratio of the two errors is to be at most 0.5 where there is an effect, and 1.02 where there is none.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import random
import subprocess
import tempfile

DAYS = 900


def weekly(t):
    return (0, 4, 6, 5, 12, 30, 18)[t % 7]


def slow(rng, persistence=0.95):
    level, values = 0.0, []
    for _ in range(DAYS):
        level = persistence * level + rng.gauss(0, 1)
        values.append(level)
    return values


def rare(rng, share=0.05):
    return [1.0 if rng.random() < share else 0.0 for _ in range(DAYS)]


def temperature(rng):
    noise = slow(rng, 0.8)
    return [12 + 9 * math.sin(2 * math.pi * t / 365) + 2.5 * noise[t] for t in range(DAYS)]


def walk(rng, step):
    level, values = 200.0, []
    for _ in range(DAYS):
        level += rng.gauss(0, step)
        values.append(level)
    return values


def cases():
    rng = random.Random(26)
    holiday, warm, promotion = rare(rng, 0.1), temperature(rng), rare(rng, 0.15)
    yield "holidays", True, [150 + weekly(t) + 80 * holiday[t] + rng.gauss(0, 5) for t in range(DAYS)], holiday
    yield "temperature", True, [3 * warm[t] + rng.gauss(0, 0.5) for t in range(DAYS)], warm
    yield "promotion", True, [100 + 40 * promotion[t] + rng.gauss(0, 1.5) for t in range(DAYS)], promotion
    series = {
        "walk": lambda: walk(rng, 3),
        "sales": lambda: [150 + weekly(t) + rng.gauss(0, 8) for t in range(DAYS)],
        "wave": lambda: [50 + 20 * math.sin(t / 40) + rng.gauss(0, 3) for t in range(DAYS)],
    }
    covariates = {"noise": lambda: [rng.gauss(0, 1) for _ in range(DAYS)], "slow": lambda: slow(rng), "rare": lambda: rare(rng)}
    for name, make in series.items():
        for kind, covariate in covariates.items():
            yield f"{name} beside {kind}", False, make(), covariate()
    yield "noise beside a walk", False, [rng.gauss(100, 10) for _ in range(DAYS)], walk(rng, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", default="build/release/toto")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here")
    parser.add_argument("flags", nargs="*", help="after --: for toto backtest")
    arguments = parser.parse_args()
    # Of the figures in the pages; --model among the flags comes first.
    os.environ.setdefault("TOTO_MODEL_ID", str(pathlib.Path(__file__).resolve().parents[2] / "models/toto-nano"))
    results = []
    for name, has_effect, y, x in cases():
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            days = [(datetime.date(2022, 1, 3) + datetime.timedelta(t)).isoformat() for t in range(DAYS)]
            rows = [f"{d},{v:.4f}" for d, v in zip(days, y)]
            (folder / "y.csv").write_text("ds,y\n" + "\n".join(rows) + "\n")
            (folder / "x.csv").write_text("ds,x\n" + "\n".join(f"{d},{v:.4f}" for d, v in zip(days, x)) + "\n")
            done = subprocess.run(
                [arguments.toto, "backtest", folder / "y.csv", "--future", folder / "x.csv", "--horizon", "28", "--stride", "7",
                 "--windows", "40", "--out", folder / "out", "--no-cache", "--json", "--quiet", *arguments.flags],
                capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"{name}: {done.stderr}")
            gain = json.loads(done.stdout)["covariates"][0]
        bound = 0.5 if has_effect else 1.02
        results.append({"case": name, "effect": has_effect, **gain, "bound": bound, "holds": gain["ratio"] <= bound})
        print(f"{name:24} MAE {gain['mae_without']:8.3f} -> {gain['mae']:8.3f}   {gain['ratio']:.3f} "
              f"{'<=' if gain['ratio'] <= bound else '> '} {bound}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0 if all(r["holds"] for r in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
