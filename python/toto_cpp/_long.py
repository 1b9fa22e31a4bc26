# SPDX-License-Identifier: Apache-2.0
"""Long tables of whole series: one row for each value in, one for each step of the forecast out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


from ._kinds import ArrowFrame, frame_of
from ._lists import Lists, Names
from ._panel import read
from ._tables import module
from ._task import Task, compute
from .model import Model


def forecast_long(
    task: Task, model: Model, data: Any, stop: Callable[[], bool] = lambda: False, advance: Callable[[int], None] = lambda done: None
) -> Any:
    """A frame with all rows of some series to their forecasts, of the same kind, with the columns, types and numbers of
    ``Model.forecast_df``; with ``task.n_windows`` those of ``Model.cross_validation``. Where ``task.on_error`` is "null" there is a column "error"."""
    frame = frame_of(data)
    panel = read(frame, str(task.id_col), task.time_col, [task.target_col], task.freq, by_id=True)
    values, names = np.ascontiguousarray(panel.columns[task.target_col]), Names(panel.names)
    series = Lists(values, panel.starts[:-1], panel.lengths)
    columns: dict[str, Any]
    if task.n_windows:
        cuts = task.cuts(panel.lengths, names)
        first = (panel.starts[:-1, None] + cuts).ravel()
        rows = (first[:, None] + np.arange(task.h)).ravel()
        columns = {
            str(task.id_col): panel.repeated_ids(task.n_windows * task.h), task.time_col: panel.stamp(panel.times[rows]),
            "cutoff": panel.stamp(np.repeat(panel.times[first - 1], task.h)), task.target_col: panel.columns[task.target_col][rows],
        }  # fmt: skip
        series = Lists(values, np.repeat(series.begins, task.n_windows), cuts.ravel())
        names = names.of_windows(cuts)
    else:
        columns = {str(task.id_col): panel.repeated_ids(task.h), task.time_col: panel.stamp(panel.future(task.h))}
    found = compute(task, model, names, series, stop, advance)
    for name, level in task.columns:
        columns[name] = found.planes[task.levels.index(level)].ravel()
    if task.on_error == "null":
        said = [found.errors.get(i) for i in range(len(names))]
        columns["error"] = [one for one in said for _ in range(task.h)]
    built = frame.build(columns)
    if task.on_error == "raise" or not isinstance(frame, ArrowFrame):
        return built
    # The same type in every part: an "error" of nothing but None is text too.
    return built.set_column(built.num_columns - 1, "error", built.column("error").cast(module("pyarrow").string()))
