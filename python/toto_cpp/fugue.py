# SPDX-License-Identifier: Apache-2.0
"""The same call for data frames of Spark, Dask and Ray as for those of pandas, through Fugue.

    toto_cpp.fugue.forecast(spark_df, h=24, freq="D", level=[80])     # also model.forecast_df(spark_df, h=24, freq="D")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ._errors import usage
from ._long import forecast_long
from ._tables import module
from ._task import Task, task_of

__all__ = ["forecast"]


def forecast(
    df: Any,
    h: int,
    freq: str | int | None,
    *,
    engine: Any = None,
    engine_conf: Any = None,
    num_partitions: int | None = None,
    as_fugue: bool = False,
    **options: Any,
) -> Any:
    """Forecasts every series of a long frame where its rows are, and gives a frame of the same engine with the columns
    and the numbers of ``Model.forecast_df``. Rows come in no order.

    ``df``: a frame of Spark, Dask, Ray or anything that Fugue takes; ``engine`` and ``engine_conf`` are Fugue's and
    follow from the frame. ``num_partitions``: parts that are computed apart. ``freq`` must be given, since parts see
    their own rows alone. Other options are those of ``Model.forecast_df`` and ``toto_cpp.load``; each worker loads the
    model once. ``threads=1`` where an engine runs several workers on a machine."""
    api = module("fugue.api")
    if freq is None:
        raise usage("invalid_freq", "series are forecast apart and their steps cannot be compared", "freq", 'give it: freq="h"')
    task = task_of(h, freq=freq, **options)
    given = api.get_schema(df)
    for name in (task.id_col, task.time_col, task.target_col):
        if name not in given.names:
            raise usage("missing_column", f"no column {name!r}; there are {', '.join(given.names)}", "df")
    pa = module("pyarrow")
    number = pa.float32() if pa.types.is_float32(given[task.target_col].type) else pa.float64()
    fields = [given[task.id_col], given[task.time_col]]
    if task.n_windows:
        fields += [pa.field("cutoff", given[task.time_col].type), pa.field(task.target_col, number)]
    fields += [pa.field(name, number) for name, _ in task.columns]
    if task.on_error == "null":
        fields.append(pa.field("error", pa.string()))
    schema = type(given)(pa.schema(fields))
    partition: dict[str, Any] = {"by": task.id_col, "algo": "coarse"}
    if num_partitions is not None:
        partition["num"] = num_partitions
    return api.transform(
        api.select_columns(df, [task.id_col, task.time_col, task.target_col]), _transformer(task), schema=schema,
        partition=partition, engine=engine, engine_conf=engine_conf, as_fugue=as_fugue,
    )  # fmt: skip


def _transformer(task: Task) -> Callable[[Any], Any]:
    pa = module("pyarrow")

    def run(table: Any) -> Any:
        if table.num_rows == 0:
            return forecast_long(replace(task, on_error="raise"), task.models()[0], table)
        return forecast_long(task, task.models()[0], table)

    run.__annotations__ = {"table": pa.Table, "return": pa.Table}  # what Fugue goes by
    return run
