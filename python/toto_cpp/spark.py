# SPDX-License-Identifier: Apache-2.0
"""Forecasts in Spark's own workers, over Arrow, for a data frame with one row for each series.

    from pyspark.sql import functions as F
    import toto_cpp.spark
    lists = df.groupBy("unique_id").agg(F.array_sort(F.collect_list(F.struct("ds", "y"))).alias("rows"))
    lists = lists.select("unique_id", F.col("rows.y").alias("y"))
    function, schema = toto_cpp.spark.map_in_arrow(lists.schema, 24, level=[80])
    lists.mapInArrow(function, schema).write.parquet("forecasts")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ._errors import usage
from ._pipeline import Stop
from ._tables import module
from ._task import Task, task_of
from .batches import forecast_batch, schema_of, sized

__all__ = ["map_in_arrow"]


class _Function:
    """Travels to the workers; each loads the model once in a process."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        model, stop = self.task.models()[0], Stop()
        for batch in sized(module("pyarrow"), batches, self.task.batch_size):
            yield forecast_batch(self.task, model, batch, stop)


def map_in_arrow(schema: Any, h: int, **options: Any) -> tuple[Callable[[Iterator[Any]], Iterator[Any]], Any]:
    """The two arguments of ``DataFrame.mapInArrow``: what it calls, and the schema of the result. ``schema``: that of the
    data frame. Rows and options as in ``forecast_batches``. Several Python workers share the cores of a machine:
    ``threads=1`` keeps them out of each other's way."""
    arrow = module("pyspark.sql.pandas.types")
    task = task_of(h, **options)
    given = arrow.to_arrow_schema(schema)
    for name in (task.id_col, task.target_col, *task.keep):
        if name is not None and name not in given.names:
            raise usage("missing_column", f"no column {name!r}; there are {', '.join(given.names)}", "schema")
    return _Function(task), arrow.from_arrow_schema(schema_of(task, given))
