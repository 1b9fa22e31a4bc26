# SPDX-License-Identifier: Apache-2.0
"""Backtests: forecasts of the past, made with what was known then, held against what happened and simple baselines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np

from . import _core
from ._kinds import frame_of
from ._panel import Panel, read
from ._tables import module
from ._options import Progress
from .model import Model


def _table(text: str) -> dict[str, list[Any]]:
    """Columns of a CSV; numbers where a whole column is."""
    rows = list(csv.reader(io.StringIO(text)))
    out: dict[str, list[Any]] = {}
    for name, column in zip(rows[0], zip(*rows[1:])):
        try:
            out[name] = [float(v) if v else float("nan") for v in column]
        except ValueError:
            out[name] = list(column)
    return out


class Backtest:
    """The results of ``toto_cpp.backtest``."""

    def __init__(self, results: dict[str, Any]) -> None:
        self._results = results
        #: The whole evaluation as ``toto backtest`` writes it.
        self.summary: dict[str, Any] = json.loads(results["summary"])
        #: Symbols that could not be evaluated, and warnings, a line each.
        self.problems: list[str] = list(results["problems"])

    @property
    def metrics(self) -> dict[str, list[Any]]:
        """Columns: a row for each symbol, target, step and source ("model", "last_value", ...)."""
        return _table(self._results["metrics"])

    @property
    def forecasts(self) -> dict[str, list[Any]]:
        """Columns: a row for each value that was forecast, with what happened and what each source had said."""
        return _table(self._results["forecasts"])

    def metrics_df(self) -> Any:
        """``metrics`` as a pandas.DataFrame."""
        return module("pandas").DataFrame(self.metrics)

    def forecasts_df(self) -> Any:
        """``forecasts`` as a pandas.DataFrame."""
        return module("pandas").DataFrame(self.forecasts)

    def save_report(self, path: str | PathLike[str]) -> None:
        """One HTML page that needs no network."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._results["report"])

    def __repr__(self) -> str:
        return f"<toto_cpp.Backtest of {len(set(self.metrics['symbol']) - {'*'})} symbols>"


def _symbols(panel: Panel, targets: list[str]) -> list[dict[str, Any]]:
    dated = panel.times.dtype.kind == "M"
    ticks = panel.times.astype("datetime64[ms]").astype(np.int64) if dated else panel.times.astype(np.int64)
    count = panel.step.count // 1_000_000 if panel.step.kind == "fixed" else panel.step.count
    out = []
    for i, name in enumerate(panel.names):
        rows = slice(int(panel.starts[i]), int(panel.starts[i + 1]))
        values = np.stack([panel.columns[target][rows] for target in targets])
        seen = ~np.isnan(values)
        last = np.maximum.accumulate(np.where(seen, np.arange(values.shape[1]), 0), axis=1)
        filled = np.nan_to_num(np.take_along_axis(values, last, axis=1), nan=0.0)
        out.append(
            {"name": name, "targets": targets, "values": np.ascontiguousarray(filled), "mask": seen,
             "times": ticks[rows].tolist(), "dated": dated, "unit": panel.step.kind, "count": max(1, count)}
        )  # fmt: skip
    return out


def backtest(
    data: Any,
    model: Model | None = None,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str | Sequence[str] = "y",
    freq: str | int | None = None,
    horizon: int = 5,
    windows: int = 0,
    stride: int = 0,
    context: int = 512,
    season: int = 0,
    num_samples: int = 256,
    aggregate: str = "median",
    transform: str = "none",
    input_scale: float = 0.0,
    rolling: str = "multi-step",
    joint: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Backtest:
    """Evaluates a model as ``toto backtest`` does. ``data``: a long data frame, or paths of CSV files and folders of
    market bars. ``windows``: the last so many, 0: all; ``stride``: steps from one to the next, 0: ``horizon``.
    Options are those of docs/cli.md. Raises DataError no_windows where no series is long enough."""
    own = model or Model()
    options = {
        "horizon": horizon, "stride": stride, "windows": windows, "season": season, "joint": joint, "seed": seed,
        "context": context, "num_samples": num_samples, "aggregate": aggregate, "transform": transform,
        "input_scale": float(input_scale), "rolling": rolling,
    }  # fmt: skip
    if isinstance(data, (str, PathLike)):
        data = [data]
    if isinstance(data, (list, tuple)):
        return Backtest(_core.backtest(own._core, [], [fspath(path) for path in data], options, progress))
    targets = [target_col] if isinstance(target_col, str) else list(target_col)
    panel = read(frame_of(data, "data"), id_col, time_col, targets, freq)
    return Backtest(_core.backtest(own._core, _symbols(panel, targets), [], options, progress))
