#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What narrower weights cost: distance from float64, and accuracy on the real series of examples/data.

    bench/weight_types.py                                # the two models that ship, both tables
    bench/weight_types.py --toto build/cuda/toto --device cuda    # on a GPU; float64 on the CPU
    bench/weight_types.py --preset toto-2.0-4m --windows 8    # synthetic weights: distances only

Every type forecasts the same windows (`toto backtest --precision TYPE`). A distance is that of a quantile (0.05 to 0.95) of one
step, over (s + |e|): s is the standard deviation of the values that were forecast, e the quantile of float64. MASE and the mean
weighted quantile loss (wql) are the backtest's own. Synthetic weights make meaningless forecasts, so no error is printed for them.
"""

import argparse
import csv
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TYPES = {"cpu": ["float64", "float32", "bfloat16", "int8"], "cuda": ["float64", "float32", "tf32", "bfloat16"]}
SERIES = [("co2.csv", "co2", 13), ("elnino.csv", "sea_surface_temperature", 12),
          ("seattle_weather.csv", "temp_max", 7), ("sunspots.csv", "sunspots", 12)]


def backtest(toto, device, model, series, dtype, windows, folder):
    """(forecasts, errors): rows of forecasts.csv, and the entry of all symbols in summary.json."""
    file, target, horizon = series
    out = folder / f"{file}-{dtype}"
    where = "cpu" if dtype == "float64" else device
    subprocess.run([toto, "backtest", ROOT / "examples/data" / file, "--targets", target, "--horizon", str(horizon), "--windows",
                    str(windows), "--model", model, "--device", where, "--precision", dtype, "--out", out],
                   check=True, capture_output=True)
    with open(out / "forecasts.csv", newline="") as rows:
        forecasts = list(csv.DictReader(rows))
    metrics = json.loads((out / "summary.json").read_text())["metrics"]
    return forecasts, next(m for m in metrics if m["forecaster"] == "toto" and m["symbol"] == "*" and m["step"] == 0)


def distances(found, exact):
    """Of every quantile of every row."""
    scale = statistics.pstdev(float(row["actual"]) for row in exact)
    names = [name for name in exact[0] if name.startswith("q0.")]
    return [abs(float(f[name]) - float(e[name])) / (scale + abs(float(e[name])))
            for f, e in zip(found, exact, strict=True) for name in names]


def judge(toto, device, model, windows, synthetic):
    """One line for each type, one for each series and type where errors mean something."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for series in SERIES:
            for dtype in TYPES[device]:
                found[series, dtype] = backtest(toto, device, model, series, dtype, windows, Path(folder))
    name = Path(model).name
    for dtype in TYPES[device][1:]:
        all_of_it = [d for s in SERIES for d in distances(found[s, dtype][0], found[s, "float64"][0])]
        print(f"{name:14} {dtype:9} distance from float64: mean {statistics.fmean(all_of_it):.2g}, largest {max(all_of_it):.2g}")
    if synthetic:
        return
    for series in SERIES:
        for dtype in TYPES[device]:
            errors = found[series, dtype][1]
            print(f"{name:14} {dtype:9} {series[0]:20} {errors['count']:5} steps  MASE {errors['mase']:.5f}  wql {errors['wql']:.6f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", default=ROOT / "build/release/toto", help="the program")
    parser.add_argument("--device", choices=TYPES, default="cpu", help="where all types but float64 are computed")
    parser.add_argument("--windows", type=int, default=40, help="the last so many of each series")
    parser.add_argument("--preset", help="synthetic weights of a published size in place of the models that ship")
    options = parser.parse_args()
    if options.preset is None:
        for model in ("toto-nano", "toto-nano-2"):
            judge(options.toto, options.device, ROOT / "models" / model, options.windows, False)
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / options.preset
        subprocess.run([options.toto, "model", "synth", "--preset", options.preset, "--seed", "8", "--out", out], check=True)
        judge(options.toto, options.device, out, options.windows, True)


if __name__ == "__main__":
    main()
