#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What views gain on real series: MASE and weighted quantile loss relative to the seasonal naive forecast.

    python3 bench/accuracy/views.py --toto build/release/toto --model models/toto-nano --set wide-dev
"""

import argparse
import pathlib

import series

VIEWS = ["", "flip", "log", "season", "flip,log", "flip,log,season", "context/2", "flip,log,context/2"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--toto", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--set", choices=["wide-dev", "test"], default="wide-dev")
    args = parser.parse_args()
    windows = series.windows_of(args.set)
    base = series.naive(windows)
    slow = {w.series.name for w in windows if w.series.interval in series.SLOW}
    parts = {"all": list(base), "weekly and slower": [n for n in base if n in slow],
             "daily and faster": [n for n in base if n not in slow]}  # fmt: skip
    print("| views | " + " | ".join(f"{name} ({len(part)})" for name, part in parts.items()) + " |")
    print("|---" * (len(parts) + 1) + "|")
    for views in VIEWS:
        flags = ["--views", views] if views else []
        found = series.by_series(windows, series.forecast(args.toto, args.model, windows, flags))
        cells = ["{:.3f} {:.3f} {:.3f}".format(*series.relative(found, base, part)) for part in parts.values()]
        print(f"| {views or '(none)'} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
