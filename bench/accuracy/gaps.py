#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What missing values cost: errors relative to those of the same windows with nothing missing.

    python3 bench/accuracy/gaps.py --toto build/release/toto --model models/toto-nano

Three kinds: 30 % of the steps, each by itself; up to three gaps of a season (at least 6 steps), one of them near the end; the last
season. The series are the 37 of the model card, every second window with 96 steps and four seasons or more.
"""

import argparse
import pathlib

import numpy as np

import series


def hide(window, rng):
    past, length = window.past, max(window.series.season, 6)
    steps = len(past)
    single = np.where(rng.random(steps) < 0.3, np.nan, past)
    single[-1] = past[-1]
    gaps, end = past.copy(), steps - 1 - rng.integers(1, length)
    for _ in range(3):
        if end <= length:
            break
        gaps[end - length + 1 : end + 1] = np.nan
        end -= length + rng.integers(length, 3 * length)
    last = past.copy()
    last[-min(length, steps // 4) :] = np.nan
    return {"30 % of the steps": single, "gaps of a season": gaps, "the last season": last}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--toto", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    args = parser.parse_args()
    enough = [w for w in series.windows_of("test")
              if len(w.past) >= max(96, 4 * w.series.season) and np.isfinite(w.past).mean() > 0.98]  # fmt: skip
    windows = enough[::2]
    rng = np.random.default_rng(1)
    hidden = {w.name: hide(w, rng) for w in windows}
    whole = series.by_series(windows, series.forecast(args.toto, args.model, windows))
    print("| missing | `--missing` | MASE | quantile loss | in 80 % |\n|---|---|---|---|---|")
    for kind in hidden[windows[0].name]:
        pasts = {name: kinds[kind] for name, kinds in hidden.items()}
        for how in ("ffill", "linear", "zero", "seasonal", "model"):
            quantiles = series.forecast(args.toto, args.model, windows, ["--missing", how], pasts)
            figures = series.relative(series.by_series(windows, quantiles), whole)
            print("| {} | {} | {:.3f} | {:.3f} | {:.3f} |".format(kind, how, *figures), flush=True)


if __name__ == "__main__":
    main()
