# SPDX-License-Identifier: Apache-2.0
"""Forecasts in expressions of polars: ``import toto_cpp.polars`` gives expressions the namespace ``toto``.

    frame.group_by("unique_id").agg(pl.col("y").sort_by("ds")).with_columns(pl.col("y").toto.forecast(24, id="unique_id"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._tables import module
from ._task import Task, task_of
from .batches import forecast_batch

if TYPE_CHECKING:
    import polars as pl
else:
    pl = module("polars")

__all__ = ["TotoExpressions"]


@pl.api.register_expr_namespace("toto")
class TotoExpressions:
    """``expr.toto`` of a column of lists, each the values of a series, oldest first, null where missing."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def forecast(self, h: int, id: str | pl.Expr | None = None, **options: Any) -> pl.Expr:
        """A list of the medians of the next ``h`` steps. ``id``: the column of the names of the series; without one a
        series is named by its values. ``options``: those of ``toto_cpp.load`` and ``Model.forecast``; with
        ``on_error="null"`` a series that cannot be forecast is null, else it is an error."""
        task = task_of(h, id_col=None if id is None else "id", target_col="y", **options)
        return self._mapped(task, id, [task.columns[0][0]], pl.List(pl.Float32))

    def quantiles(self, h: int, quantiles: list[float], id: str | pl.Expr | None = None, **options: Any) -> pl.Expr:
        """A struct with the list of each level, under its name: "0.1", "0.9"."""
        task = task_of(h, id_col=None if id is None else "id", target_col="y", quantiles=quantiles, **options)
        names = [name for name, _ in task.columns[1:]]
        kind = pl.Struct({str(q): pl.List(pl.Float32) for q in quantiles})
        return self._mapped(task, id, names, kind, [str(q) for q in quantiles])

    def _mapped(
        self, task: Task, id: str | pl.Expr | None, columns: list[str], kind: Any, fields: list[str] | None = None
    ) -> pl.Expr:
        given = [self._expression]
        if id is not None:
            given.append(pl.col(id) if isinstance(id, str) else id)

        def call(series: Any) -> pl.Series:
            frame = pl.DataFrame([one.alias(name) for one, name in zip(series, ("y", "id"))])
            if frame.schema["y"] not in (pl.List(pl.Float32), pl.List(pl.Float64)):
                frame = frame.with_columns(pl.col("y").cast(pl.List(pl.Float64)))
            found = pl.DataFrame(forecast_batch(task, task.models()[0], frame.to_arrow()))
            if fields is None:
                return found[columns[0]]
            return found.select(pl.col(name).alias(field) for name, field in zip(columns, fields)).to_struct("")

        return pl.map_batches(given, call, return_dtype=kind).alias("forecast")
