# SPDX-License-Identifier: Apache-2.0
"""Several models through the engine, side by side, on the old series, the markets or the wide set.

    training/compare --toto build/release/toto --model models/toto-nano --model runs/nano2 \\
        --set wide --baselines wide-baselines.csv --csv wide.csv --report wide.md

Everything is relative to the seasonal naive forecast; geometric means over series.
"""

import argparse
import pathlib
import time

import pandas as pd

from toto_nano import baselines, engine, evaluate, evaluation_data, markets, scores

from . import wide_data
from .classes import LENGTHS, length_class


def series_of(which):
    return evaluation_data.load(which) if which in ("test", "dev") else wide_data.load(which)


def windows_of(series, wide):
    how = (6, 12) if wide else (scores.MAX_WINDOWS, scores.MIN_CONTEXT)
    return [w for s in series for w in scores.windows(s, *how)]


def by_class(table, lengths):
    """Measures by interval and by length: rows of (class, number of series, figures)."""
    table = table.assign(length=table["series"].map(lengths))
    parts = [("all", table)]
    parts += [(name, part) for name, part in table.groupby("interval", sort=False)]
    for low, high in LENGTHS:
        part = table[(table["length"] >= low) & (table["length"] < high)]
        parts.append((length_class(low), part))
    rows = []
    for name, part in parts:
        if len(part) == 0:
            continue
        found = evaluate.aggregate(part)
        for forecaster, figures in found.iterrows():
            rows.append({"class": name, "series": part["series"].nunique(), "forecaster": forecaster,
                         **figures.to_dict()})  # fmt: skip
    return pd.DataFrame(rows).set_index("class")


def compare_markets(args):
    parts = []
    for model in args.model:
        def forecast(windows, model=model):
            return engine.by_toto(args.toto, model, windows, args.samples)

        parts.append(f"## {model.name}\n\n" + markets.report(forecast))
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--toto", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--set", default="wide", choices=["test", "dev", "markets", "wide", "wide-dev"])
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--views", default="", help="each model with these views too, as --views of toto forecast")
    parser.add_argument("--ets", action="store_true", help="AutoETS beside them: slow")
    parser.add_argument("--baselines", type=pathlib.Path, help="take them from an earlier --csv")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--csv", type=pathlib.Path)
    args = parser.parse_args()
    if args.set == "markets":
        text = compare_markets(args)
    else:
        series = series_of(args.set)
        windows = windows_of(series, args.set.startswith("wide"))
        forecasts = {}
        for model, views in [(m, v) for m in args.model for v in dict.fromkeys(["", args.views])]:
            name = f"{model.name}, {views}" if views else model.name
            started = time.monotonic()
            forecasts[name] = engine.by_toto(args.toto, model, windows, args.samples, views)
            print(f"{name}: {len(windows)} windows in {time.monotonic() - started:.1f} s", flush=True)
        if args.baselines:
            known = pd.read_csv(args.baselines)
            known = known[~known["forecaster"].isin(forecasts)]
            table = pd.concat([evaluate.collect(forecasts, windows), known]) if forecasts else known
        else:
            for name, forecast in baselines.BASELINES.items():
                if name != "AutoETS" or args.ets:
                    forecasts[name] = [forecast(w) for w in windows]
            table = evaluate.collect(forecasts, windows)
        if args.csv:
            table.to_csv(args.csv, index=False, float_format="%.6g")
        text = evaluate.markdown(by_class(table, {s.name: len(s.values) for s in series})) + "\n"
    print(text)
    if args.report:
        args.report.write_text(text)


if __name__ == "__main__":
    main()
