# SPDX-License-Identifier: Apache-2.0
"""Scores a model on public series against simple and statistical forecasts.

    training/evaluate --toto build/release/toto --model models/toto-nano --report report.md

Without --toto the training program's own model forecasts (same mathematics, other random draws).
"""

import argparse
import pathlib
import time

import numpy as np
import pandas as pd

from . import baselines, engine, evaluation_data, markets, scores

REFERENCE = "seasonal naive"


def collect(forecasts: dict, windows) -> pd.DataFrame:
    """One row per series and forecaster."""
    rows = []
    for forecaster, quantiles in forecasts.items():
        by_series = {}
        for w, q in zip(windows, quantiles):
            by_series.setdefault(w.series.name, []).append(scores.score(w, q))
        for w in {w.series.name: w for w in windows}.values():
            s = w.series
            rows.append({
                "series": s.name, "domain": s.domain, "interval": s.interval, "source": s.source,
                "windows": len(by_series[s.name]), "forecaster": forecaster,
                **scores.series_scores(by_series[s.name]),
            })  # fmt: skip
    return pd.DataFrame(rows)


def relative(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Series by forecaster, divided by the seasonal naive forecast."""
    wide = table.pivot(index="series", columns="forecaster", values=measure)
    wide = wide.loc[table["series"].unique(), table["forecaster"].unique()]
    return wide.div(wide[REFERENCE], axis=0)


def aggregate(table: pd.DataFrame, series=None) -> pd.DataFrame:
    if series is not None:
        table = table[table["series"].isin(series)]
    summary = pd.DataFrame({
        "MASE, relative": relative(table, "mase").apply(scores.geometric_mean),
        "WQL, relative": relative(table, "wql").apply(scores.geometric_mean),
    })
    for level in scores.INTERVALS:
        summary[f"in {level} %"] = table.groupby("forecaster")[f"cover{level}"].mean()
    return summary


def market_ratio(table: pd.DataFrame, forecaster: str) -> float:
    """MASE on daily prices relative to the better of naive and seasonal naive, per series."""
    wide = table[table["domain"] == "market"].pivot(index="series", columns="forecaster", values="mase")
    return scores.geometric_mean(wide[forecaster] / wide[["naive", REFERENCE]].min(axis=1))


def markdown(table: pd.DataFrame, digits=3) -> str:
    """Whole numbers as they are, nothing where there is no number."""

    def text(value):
        if isinstance(value, float):
            return "" if np.isnan(value) else f"{value:.{digits}f}"
        return str(value)

    head = [table.index.name or ""] + [str(c) for c in table.columns]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in table.itertuples(name=None):  # of each column's own type
        lines.append("| " + " | ".join([str(row[0]), *map(text, row[1:])]) + " |")
    return "\n".join(lines)


def report(table: pd.DataFrame, forecaster: str) -> str:
    facts = table[table["forecaster"] == forecaster].set_index("series")
    mase, wql = relative(table, "mase"), relative(table, "wql")
    detail = facts[["domain", "interval", "windows"]].copy()
    detail["MASE"] = facts["mase"]
    detail["MASE, relative"] = mase[forecaster]
    detail["AutoETS MASE, relative"] = mase.get("AutoETS", np.nan)
    detail["WQL"] = facts["wql"]
    detail["WQL, relative"] = wql[forecaster]
    detail["AutoETS WQL, relative"] = wql.get("AutoETS", np.nan)
    for level in scores.INTERVALS:
        detail[f"in {level} %"] = facts[f"cover{level}"]
    parts = [
        "Relative to the seasonal naive forecast, geometric mean over the series; coverage is the "
        "mean over the series.\n",
        markdown(aggregate(table)),
    ]
    if (table["domain"] == "market").any():
        ratio = market_ratio(table, forecaster)
        parts.append(f"\nDaily prices: MASE {ratio:.3f} of the better of naive and seasonal naive.")
    parts += ["\n", markdown(detail)]
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--toto", type=pathlib.Path, help="the program to judge")
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--paths", default="auto", choices=["auto", "independent", "coherent"], help="as of toto forecast")
    parser.add_argument("--split", default="test", choices=["test", "dev"])
    parser.add_argument("--markets", action="store_true", help="daily prices alone, 31 series")
    parser.add_argument("--no-ets", action="store_true", help="leave out the slow baseline")
    parser.add_argument("--baselines", type=pathlib.Path, help="take them from an earlier --csv")
    parser.add_argument("--report", type=pathlib.Path, help="Markdown to write")
    parser.add_argument("--csv", type=pathlib.Path, help="every figure, to write")
    args = parser.parse_args()

    def forecast(windows):
        if args.toto:
            return engine.by_toto(args.toto, args.model, windows, args.samples, paths=args.paths)
        return engine.by_training_program(args.model, windows, args.samples)

    if args.markets:
        text = markets.report(forecast)
        print(text)
        if args.report:
            args.report.write_text(text)
        return
    windows = [w for s in evaluation_data.load(args.split) for w in scores.windows(s)]
    started = time.monotonic()
    forecasts = {"toto": forecast(windows)}
    print(f"{len(windows)} windows in {time.monotonic() - started:.1f} s")
    if args.baselines:
        known = pd.read_csv(args.baselines)
        table = pd.concat([collect(forecasts, windows), known[known["forecaster"] != "toto"]])
    else:
        for name, forecast in baselines.BASELINES.items():
            if not (args.no_ets and name == "AutoETS"):
                forecasts[name] = [forecast(w) for w in windows]
        table = collect(forecasts, windows)
    text = report(table, "toto")
    print(text)
    if args.report:
        args.report.write_text(text)
    if args.csv:
        table.to_csv(args.csv, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
