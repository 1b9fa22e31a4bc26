# SPDX-License-Identifier: Apache-2.0
"""One page about models: by interval, length and domain, beside statistical forecasts, on short
histories, calibration by step, and the skill probes with their marks.

    training/assess --toto build/release/toto --model models/toto-nano --model models/toto-nano-2 \\
        --set wide --cache runs/forecasts --report training/EVALUATION.md
"""

import argparse
import pathlib

import pandas as pd

from toto_nano import engine, evaluate

from . import classes, compare, forecasts, probes

STATISTICS = ["seasonal naive", "AutoETS", "AutoTheta", "AutoARIMA", "FLAIR", "fracast"]
BESIDE = "AutoETS"


def name_of(model, views):
    return f"{model.name}, {views}" if views else model.name


def of_model(args, which, model, windows, views):
    """Through the engine; kept in the cache by the name of the model's folder."""
    cache = forecasts.Cache(args.cache, which, name_of(model, views))
    if any(w.name not in cache.found for w in windows):
        found = engine.by_toto(args.toto, model, windows, args.samples, views)
        cache.found = {w.name: q for w, q in zip(windows, found)}
        cache.save()
    return cache.of(windows)


def gather(args, which, windows, statistics):
    found = {name: forecasts.statistical(args.cache, which, name, windows) for name in statistics}
    looks = [(m, views) for m in args.model for views in dict.fromkeys(["", args.views])]
    return found | {name_of(m, views): of_model(args, which, m, windows, views) for m, views in looks}


def table_of(rows, kinds):
    table = pd.DataFrame([row for kind, row in rows if kind in kinds]).set_index("")
    return evaluate.markdown(table)


def judged(args, series):
    """The set itself: tables by class and the places of the truth."""
    windows = compare.windows_of(series, args.set.startswith("wide"))
    found = gather(args, args.set, windows, args.statistics)
    slow = [name for name in args.statistics if any(q is None for q in found[name])]
    lines = []
    for name in slow:  # the others are not judged on fewer series for its sake
        count = len({w.series.name for w, q in zip(windows, found[name]) if q is None})
        lines.append(f"{name} gave no forecast in time, or none that is finite, on {count} series:")
        part, kept, _ = classes.complete({n: found[n] for n in (evaluate.REFERENCE, name)}, windows)
        one = evaluate.aggregate(evaluate.collect(part, kept)).loc[name]
        lines.append(f"on the rest {one['MASE, relative']:.3f} / {one['WQL, relative']:.3f}.\n")
        del found[name]
    table = evaluate.collect(found, windows)
    rows = classes.by_class(table, {s.name: len(s.values) for s in series})
    head = f"{table['series'].nunique()} series, {len(windows)} windows; MASE / weighted quantile loss " \
        "relative to the seasonal naive forecast, geometric means over series.\n"
    parts = [head, table_of(rows, ("all", "interval", "length")), "", "By domain:\n",
             table_of(rows, ("domain",)), "", *lines]
    for model in args.model:
        places = classes.places(windows, found[model.name])
        parts += [f"\n## Where the truth falls: {model.name}\n",
                  "Share of the truth between neighbouring deciles; 0.100 everywhere is calibrated.\n",
                  evaluate.markdown(places)]  # fmt: skip
    return "\n".join(parts)


def on_short_histories(args, series):
    windows = classes.short_histories(series)
    found = gather(args, f"{args.set}-short", windows, ["AutoETS"])
    table = classes.against(windows, found, BESIDE)
    return (
        f"\n## Histories of 8 to 31 steps\n\n{len(windows)} windows of the yearly, quarterly and monthly "
        f"series, histories cut; absolute error and pinball loss relative to {BESIDE}'s. "
        f"Mark: at most 1.1.\n\n" + evaluate.markdown(table)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--toto", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, action="append", required=True)
    parser.add_argument("--set", default="wide", choices=["test", "dev", "wide", "wide-dev"])
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--statistics", default=",".join(STATISTICS), help="methods beside them")
    parser.add_argument("--cache", type=pathlib.Path, help="folder of forecasts already made")
    parser.add_argument("--views", default="", help="each model with these views too, as --views of toto forecast")
    parser.add_argument("--no-probes", action="store_true")
    parser.add_argument("--report", type=pathlib.Path)
    args = parser.parse_args()
    args.statistics = args.statistics.split(",")
    series = compare.series_of(args.set)
    parts = [f"# Evaluation on the set {args.set}\n", judged(args, series), on_short_histories(args, series)]
    if not args.no_probes:
        parts += ["\n## Skill probes\n", probes.marks_text(), evaluate.markdown(probes.table_of(args))]
    text = "\n".join(parts) + "\n"
    print(text)
    if args.report:
        args.report.write_text(text)


if __name__ == "__main__":
    main()
