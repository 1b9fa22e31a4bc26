# SPDX-License-Identifier: Apache-2.0
"""The command line of ``forecast_dataset``: ``python -m toto_cpp dataset IN OUT --horizon 24``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from ._errors import TotoError
from ._progress import Progress

_EPILOG = """\
examples:
  python -m toto_cpp dataset series.parquet forecasts --horizon 24 --level 80,95
  python -m toto_cpp dataset long.csv forecasts.csv --horizon 7 --freq D --id symbol --time date --target close
  python -m toto_cpp dataset s3-copy/ forecasts --horizon 24 --shard 2/7       # the third of seven machines

Ctrl-C stops; the same command goes on where it stopped. Docs: docs/scale.md.
"""


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python -m toto_cpp dataset", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Forecasts all series of files in constant memory, and goes on where it was interrupted.",
    )  # fmt: skip
    p.add_argument("source", help="a file, or a folder of files: Parquet, Arrow, CSV, JSON lines")
    p.add_argument("out", help="a folder, or a file: .parquet, .jsonl, .csv")
    p.add_argument("--horizon", "-H", type=int, required=True, help="steps")
    p.add_argument("--model", help="as for `toto forecast` (default: TOTO_MODEL_ID, then toto-nano-2)")
    p.add_argument("--form", choices=("lists", "long"), help="one row for each series, or for each value (default: as found)")
    p.add_argument("--id", dest="id_col", default="unique_id", help="column of ids (default: unique_id)")
    p.add_argument("--time", dest="time_col", default="ds", help="column of times, of the long form (default: ds)")
    p.add_argument("--target", dest="target_col", default="y", help="column of values (default: y)")
    p.add_argument("--keep", help="columns that go along, of lists; separated by commas")
    p.add_argument("--freq", help="step between times, of the long form (default: as found)")
    p.add_argument("--level", help="central intervals, per cent: 80,95")
    p.add_argument("--quantiles", help="levels between 0 and 1: 0.1,0.9")
    p.add_argument("--windows", dest="n_windows", type=int, help="cross-validation: so many windows of the past")
    p.add_argument("--step", dest="step_size", type=int, help="steps between windows (default: the horizon)")
    p.add_argument("--context", type=int, default=4096, help="steps that are looked at (default: %(default)s)")
    p.add_argument("--num-samples", type=int, default=256, help="trajectories where steps are sampled (default: %(default)s)")
    p.add_argument("--seed", type=int, help="of the draws (default: TOTO_SEED, then 0)")
    p.add_argument("--shard", help="I/N: this process does part I of N, counted from 0; all write into one folder")
    p.add_argument("--restart", action="store_true", help="begin anew instead of going on")
    p.add_argument("--on-error", choices=("raise", "null"), default="raise", help="what a series without a forecast is")
    p.add_argument("--batch-size", type=int, default=1024, help="series computed together (default: %(default)s)")
    p.add_argument("--part-rows", type=int, default=4096, help="series of a part, of lists (default: %(default)s)")
    p.add_argument("--memory-mb", type=int, default=512, help="what DuckDB may use, of the long form (default: %(default)s)")
    p.add_argument("--device", help='"cpu", "cuda:0", "cuda:all", ... (default: TOTO_DEVICE)')
    p.add_argument("--precision", help="float32, tf32, bfloat16, int8, float64")
    p.add_argument("--threads", type=int)
    p.add_argument("--quiet", action="store_true", help="no progress")
    p.add_argument("--json", action="store_true", help="print what was done as JSON")
    return p


def line_of(seen: Progress) -> str:
    said = f"{seen.series + seen.skipped:,} series"
    if seen.fraction is not None:
        said = f"{100 * seen.fraction:.1f} %, {said}"
    said += f", {seen.series_per_second:,.0f}/s"
    if seen.seconds_left is not None:
        left = int(seen.seconds_left + 0.5)
        said += f", {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"
    return said


def main(arguments: Sequence[str]) -> int:
    given = parser().parse_args(arguments)
    from .dataset import forecast_dataset

    options: dict[str, Any] = {
        name: getattr(given, name)
        for name in (
            "model", "form", "id_col", "time_col", "target_col", "freq", "context", "num_samples", "seed", "shard", "on_error",
            "batch_size", "part_rows", "memory_mb", "n_windows", "step_size",
        )
    }  # fmt: skip
    options.update({name: getattr(given, name) for name in ("device", "precision", "threads") if getattr(given, name) is not None})
    shown = not given.quiet and sys.stderr.isatty()

    def show(seen: Progress) -> None:
        sys.stderr.write("\r\x1b[K" + line_of(seen))
        sys.stderr.flush()

    try:
        level = None if given.level is None else [float(one) if "." in one else int(one) for one in given.level.split(",")]
        quantiles = None if given.quantiles is None else [float(one) for one in given.quantiles.split(",")]
        done = forecast_dataset(
            given.source, given.out, given.horizon, level=level, quantiles=quantiles,
            keep=given.keep.split(",") if given.keep else (), resume=not given.restart, progress=show if shown else None, **options,
        )  # fmt: skip
    except TotoError as error:
        print(("\n" if shown else "") + f"toto: error: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print(("\n" if shown else "") + "toto: interrupted: the same command goes on from here", file=sys.stderr)
        return 130
    if shown:
        print(file=sys.stderr)
    if given.json:
        fields = ("complete", "series", "skipped", "parts", "seconds", "series_per_second")
        print(json.dumps({"path": str(done.path), **{name: getattr(done, name) for name in fields}}))
    elif not given.quiet:
        there = "complete" if done.complete else "other shards have parts to do"
        print(f"{done.path}: {done.series:,} series in {done.seconds:.1f} s, {done.series_per_second:,.0f}/s; {there}")
    return 0
