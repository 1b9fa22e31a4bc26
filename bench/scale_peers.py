#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ours, StatsForecast and zsfm on the same series, cores and in the same run.

    toto model synth --preset toto-2.0-4m --seed 1 --out build/4m
    bench/scale_peers.py --toto2 build/4m --results bench/results/xeon.md            # 10,000 series; half an hour on two cores
    bench/scale_peers.py --toto2 build/4m --series 200 --sample 20                    # a trial

Needs Python 3.12 with toto-cpp[scale], statsforecast and zsfm. 10,000 random walks of 512 steps, 24 ahead, 80 % intervals.

Everybody takes --rounds turns, each over the next part of the series, in a process of its own; what it forecasts first, to
warm up, does not count. Ours goes from Parquet to Parquet (toto_cpp.forecast_dataset), with toto-nano and with Toto 2.0's 4m
(made-up weights). StatsForecast takes a pandas frame, n_jobs = cores; zsfm lists of numbers, in batches of 64, and gives
medians. AutoETS with a season of 24 steps is too slow for all: it forecasts --sample series, and its time for all is scaled
from them. Without a season it forecasts all. Speed only: random walks do not tell good forecasts from bad ones.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scale_dataset import NANO, source_file
from scale_report import commit, machine, put_section, table, today, words

HEADING = "{:,} series beside StatsForecast and zsfm"


def rows_of(args, begin, end):
    """Names and values [N, T] of these rows of the file."""
    import numpy as np
    import pyarrow.parquet as pq

    given = pq.read_table(args.source).slice(begin, end - begin)
    return given.column("unique_id").to_pylist(), np.stack(given.column("y").combine_chunks().to_numpy(zero_copy_only=False))


def ours(args, begin, end, model):
    import pyarrow.parquet as pq
    import toto_cpp

    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pq.read_table(args.source).slice(begin, end - begin), f"{folder}/in.parquet")
        options = {"level": [80], "threads": args.threads, "model": model}
        pq.write_table(pq.read_table(f"{folder}/in.parquet").slice(0, 8), f"{folder}/warm.parquet")
        toto_cpp.forecast_dataset(f"{folder}/warm.parquet", f"{folder}/warm", args.horizon, **options)
        begun = time.perf_counter()
        done = toto_cpp.forecast_dataset(f"{folder}/in.parquet", f"{folder}/out", args.horizon, **options)
        assert done.complete and done.series == end - begin
        return time.perf_counter() - begun


def statsforecast(args, begin, end, name, **options):
    import numpy as np
    import pandas as pd
    from statsforecast import StatsForecast, models

    names, values = rows_of(args, begin, end)
    steps = np.tile(np.arange(args.context), len(names))
    frame = pd.DataFrame({"unique_id": np.repeat(names, args.context), "ds": steps, "y": values.ravel()})
    model = getattr(models, name)(**options)
    StatsForecast(models=[model], freq=1).forecast(df=frame[: 2 * args.context], h=args.horizon, level=[80])
    begun = time.perf_counter()
    found = StatsForecast(models=[model], freq=1, n_jobs=args.threads).forecast(df=frame, h=args.horizon, level=[80])
    assert len(found) == (end - begin) * args.horizon
    return time.perf_counter() - begun


def zsfm(args, begin, end):
    sys.path.insert(0, str(Path(__file__).parent / "peers"))
    from zsfm_model import zsfm_model

    horizon = -(-args.horizon // 32) * 32  # zsfm 0.3.1 fails on less than whole patches
    series = rows_of(args, begin, end)[1].tolist()
    with tempfile.TemporaryDirectory() as made:
        model = zsfm_model(args.toto2, made)
        model.forecast_batch(series[:64], horizon)
        begun = time.perf_counter()
        for at in range(0, len(series), 64):
            model.forecast_batch(series[at : at + 64], horizon)
        return time.perf_counter() - begun


WHO = {
    "ours, toto-nano": lambda args, a, b: ours(args, a, b, NANO),
    "ours, toto-2.0-4m": lambda args, a, b: ours(args, a, b, args.toto2),
    "zsfm, toto-2.0-4m": zsfm,
    "StatsForecast, SeasonalNaive(24)": lambda args, a, b: statsforecast(args, a, b, "SeasonalNaive", season_length=24),
    "StatsForecast, RandomWalkWithDrift": lambda args, a, b: statsforecast(args, a, b, "RandomWalkWithDrift"),
    "StatsForecast, Theta(24)": lambda args, a, b: statsforecast(args, a, b, "Theta", season_length=24),
    "StatsForecast, AutoETS without a season": lambda args, a, b: statsforecast(args, a, b, "AutoETS"),
    "StatsForecast, AutoETS(24)": lambda args, a, b: statsforecast(args, a, b, "AutoETS", season_length=24),
}
SAMPLED = ("StatsForecast, AutoETS(24)",)


def turn(args, who, begin, end):
    """Seconds of a process of its own for these rows."""
    given = [sys.executable, __file__, "--one", who, "--rows", f"{begin}:{end}", "--source", args.source, "--threads", args.threads]
    given += ["--context", args.context, "--horizon", args.horizon, *(["--toto2", args.toto2] if args.toto2 else [])]
    environment = {**os.environ, "RAYON_NUM_THREADS": str(args.threads), "TQDM_DISABLE": "1", "NIXTLA_ID_AS_COL": "1"}
    done = subprocess.run([str(one) for one in given], stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{who} failed")
    return float(done.stdout.split()[-1])


def measured(args):
    found = {}
    edges = [args.series * i // args.rounds for i in range(args.rounds + 1)]
    for i, (begin, end) in enumerate(zip(edges, edges[1:])):
        for who in WHO:
            if not args.toto2 and "4m" in who:
                continue
            last = min(end, begin + max(2, args.sample // args.rounds)) if who in SAMPLED else end
            one = found.setdefault(who, {"series": 0, "seconds": 0.0, "rounds": []})
            seconds = turn(args, who, begin, last)
            one["series"] += last - begin
            one["seconds"] += seconds
            one["rounds"].append((last - begin) / seconds)
            print(f"round {i + 1}: {who}: {last - begin} series, {seconds:.2f} s", file=sys.stderr, flush=True)
    for one in found.values():
        one["series_per_second"] = one["series"] / one["seconds"]
        one["seconds_for_all"] = one["seconds"] * args.series / one["series"]
    return found


def report(args, result):
    first = result["found"]["ours, toto-nano"]["series_per_second"]
    rows = []
    for who, one in result["found"].items():
        scaled = "" if one["series"] == args.series else f", scaled from {one['series']} series"
        slower = first / one["series_per_second"]
        spread = f"{min(one['rounds']):,.4g} to {max(one['rounds']):,.4g}"
        rows.append((who, f"{one['series_per_second']:,.4g}", spread, f"{one['seconds_for_all']:,.1f} s{scaled}", f"{slower:,.3g}"))
    head = ("", "series/s", f"of the {args.rounds} rounds", f"{args.series:,} series", "times the time of toto-nano")
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    lines = [
        f"{today()}, commit {result['commit']}, {result['machine']}; {versions}. Random walks of {args.context} steps, {args.horizon} ahead, "
        "in turns.", "", f"    {words()}", "",
    ]  # fmt: skip
    return lines + table(head, rows)


def versions():
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("toto-cpp", "statsforecast", "zsfm", "numba", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            pass
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--sample", type=int, default=200, help="series that AutoETS with a season forecasts")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--toto2", help="a folder that `toto model synth --preset toto-2.0-4m` made: also zsfm and ours with it")
    parser.add_argument("--results", type=Path, help="a page that gets the section")
    parser.add_argument("--folder", type=Path, help="where the input goes and is kept (default: a temporary one)")
    parser.add_argument("--one", choices=WHO, help=argparse.SUPPRESS)
    parser.add_argument("--rows", help=argparse.SUPPRESS)
    parser.add_argument("--source", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        begin, end = map(int, args.rows.split(":"))
        print(WHO[args.one](args, begin, end))
        return
    with tempfile.TemporaryDirectory() as temporary:
        if args.folder:
            args.folder.mkdir(parents=True, exist_ok=True)
        args.source = source_file(args, temporary)
        result = {"commit": commit(), "machine": machine(), "versions": versions(), "found": measured(args)}
    if args.results:
        put_section(args.results, HEADING.format(args.series), report(args, result))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
