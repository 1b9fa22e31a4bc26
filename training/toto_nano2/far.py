# SPDX-License-Identifier: Apache-2.0
"""Far horizons of hourly series: error relative to the last week, repeated, and coverage of 80 %, by steps ahead.

    training/far --toto build/release/toto --model models/toto-nano-2

The hourly series of the test and the wide set, 336 steps ahead. A row is a band of steps. Error: the sum of absolute errors of
the median over that of the last week repeated, geometric mean over series. Coverage: the mean over series.
"""

import argparse
import copy
import pathlib

import numpy as np

from toto_nano import engine, scores

from . import compare

HORIZON, WEEK = 336, 168
BANDS = [(1, 24), (25, 96), (97, 168), (169, 252), (253, 336)]
LOW, HIGH = scores.INTERVALS[80]


def far(one):
    """The series with another horizon."""
    made = copy.copy(one)
    made.__class__ = type("Far", (type(one),), {"horizon": HORIZON})
    return made


def last_week(window):
    """The forecast of who repeats it."""
    last = window.past[-WEEK:]
    return np.tile(last, -(-HORIZON // WEEK))[:HORIZON]


def judged(windows, quantiles):
    """(first step, last step, error, share in 80 %) of each band of steps."""
    rows = []
    for first, last in BANDS:
        part = slice(first - 1, last)
        ours, naive, held, count = {}, {}, {}, {}
        for w, q in zip(windows, quantiles):
            name, y, a, b = w.series.name, w.future[part], q[part], last_week(w)[part]
            seen = np.isfinite(y) & np.isfinite(b)
            ours[name] = ours.get(name, 0) + np.abs(y - a[:, scores.MEDIAN])[seen].sum()
            naive[name] = naive.get(name, 0) + np.abs(y - b)[seen].sum()
            held[name] = held.get(name, 0) + ((y >= a[:, LOW]) & (y <= a[:, HIGH]))[seen].sum()
            count[name] = count.get(name, 0) + seen.sum()
        error = scores.geometric_mean([ours[n] / naive[n] for n in ours])
        rows.append((first, last, error, np.mean([held[n] / count[n] for n in ours])))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--toto", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    args = parser.parse_args()
    hourly = [s for which in ("test", "wide") for s in compare.series_of(which) if s.interval == "hourly"]
    windows = [w for s in hourly for w in scores.windows(far(s), 6, 3 * WEEK)]
    quantiles = engine.by_toto(args.toto, args.model, windows, 256)
    print(f"{len(hourly)} series, {len(windows)} windows of {HORIZON} steps\n")
    print("| steps ahead | error | in 80 % |\n|---|---|---|")
    for first, last, error, share in judged(windows, quantiles):
        print(f"| {first} to {last} | {error:.3f} | {share:.3f} |")


if __name__ == "__main__":
    main()
