# SPDX-License-Identifier: Apache-2.0
"""Streams of Arrow record batches with one row for each series: the id in one column, the values in a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import usage
from ._lists import Lists, Names, content_names, lists_of, names_of
from ._pipeline import Stop, pipeline
from ._tables import module
from ._task import Computed, Task, compute, lanes, task_of
from .model import Model

__all__ = ["forecast_batches"]


def forecast_batches(data: Any, h: int, *, ordered: bool = True, **options: Any) -> Any:
    """Forecasts a stream of series: record batches in, record batches out, in constant memory. While one batch is
    computed the next is read.

    ``data``: a ``pyarrow.RecordBatchReader``, or anything with ``__arrow_c_stream__`` (a table, a polars frame, a result
    of DuckDB). Each row is a series: ``target_col`` ("y") is a list of its values, oldest first, null or NaN where
    missing; ``id_col`` ("unique_id") its id. ``id_col=None``: a series is named by its values.

    Returns a ``pyarrow.RecordBatchReader`` with the id, the columns named by ``keep``, and for each column of
    ``Model.forecast_df`` (``level``, ``quantiles``, ``model_name``) a list of ``h`` float32.

    ``ordered=False``: rows come as they are done, where several devices work (``device="cuda:all"``).
    ``on_error="null"``: a series that cannot be forecast has null lists and a text in the column "error"; else it is
    an error. ``n_windows=``, ``step_size=``: a cross-validation, as ``Model.cross_validation``; a row for each window, with
    "cutoff", the steps that it knew, and ``target_col``, what came then. ``batch_size``: series that are computed together; it changes no bit. Other options are those of
    ``toto_cpp.load`` and ``Model.forecast``.
    """
    pa = module("pyarrow")
    task = task_of(h, **options)
    reader = data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
    check(task, reader.schema, "data")
    stop = Stop()
    workers = [worker(task, model, stop) for model in lanes(task.models())]
    results = pipeline(sized(pa, reader, task.batch_size), workers, ordered=ordered, stop=stop)
    return pa.RecordBatchReader.from_batches(schema_of(task, reader.schema), results)


def worker(task: Task, model: Model, stop: Stop, advance: Callable[[int], None] = lambda done: None) -> Callable[[Any], Any]:
    return lambda batch: forecast_batch(task, model, batch, stop, advance)


def sized(pa: Any, batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows in batches of ``rows``."""
    held: list[Any] = []
    count = 0
    for batch in batches:
        while batch.num_rows:
            part = batch.slice(0, rows - count)
            batch = batch.slice(part.num_rows)
            held.append(part)
            count += part.num_rows
            if count == rows:
                yield _joined(pa, held)
                held, count = [], 0
    if held:
        yield _joined(pa, held)


def _joined(pa: Any, batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def check(task: Task, schema: Any, where: str) -> None:
    """Whether a stream of these columns can be forecast."""
    pa = module("pyarrow")
    names = schema.names
    for name in (task.id_col, task.target_col, *task.keep):
        if name is not None and name not in names:
            raise usage("missing_column", f"no column {name!r}; there are {', '.join(names)}", where)
    if not is_list(pa, schema.field(task.target_col).type):
        raise usage(
            "invalid_input", f"expected lists of numbers in column {task.target_col!r}, found {schema.field(task.target_col).type}",
            where, "one row for each series, with its values in a list",
        )  # fmt: skip


def is_list(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def schema_of(task: Task, given: Any) -> Any:
    """The columns of the result."""
    pa = module("pyarrow")
    kept = [given.field(name) for name in ((task.id_col, *task.keep) if task.id_col is not None else task.keep)]
    if task.n_windows:
        kept += [pa.field("cutoff", pa.int64()), pa.field(task.target_col, pa.list_(pa.float32()))]
    fields = [*kept, *(pa.field(name, pa.list_(pa.float32())) for name, _ in task.columns)]
    if task.on_error == "null":
        fields.append(pa.field("error", pa.string()))
    return pa.schema(fields)


def forecast_batch(
    task: Task, model: Model, batch: Any, stop: Callable[[], bool] = lambda: False, advance: Callable[[int], None] = lambda done: None
) -> Any:
    """One ``pyarrow.RecordBatch`` (or table) of series to one of forecasts, in the same order."""
    pa = module("pyarrow")
    if isinstance(batch, pa.Table):
        batch = _joined(pa, batch.to_batches()) if batch.num_rows else pa.RecordBatch.from_pylist([], schema=batch.schema)
    series = lists_of(pa, batch.column(task.target_col))
    names = None if task.id_col is None else names_of(pa, batch.column(task.id_col), task.id_col)
    kept = [batch.column(name) for name in ((task.id_col, *task.keep) if task.id_col is not None else task.keep)]
    more: list[Any] = []
    if task.n_windows:
        names = Names(content_names(series)) if names is None else names
        cuts = task.cuts(series.lengths, names)
        begins = np.repeat(series.begins, task.n_windows)
        actual = series.values[(begins + cuts.ravel())[:, None] + np.arange(task.h)]
        more = [pa.array(cuts.ravel()), rows(pa, actual)]
        repeated = pa.array(np.repeat(np.arange(len(cuts)), task.n_windows))
        kept = [column.take(repeated) for column in kept]
        series, names = Lists(series.values, begins, cuts.ravel()), names.of_windows(cuts)
    found = compute(task, model, names, series, stop, advance)
    columns = [*kept, *more, *(lists(pa, task, found, level) for _, level in task.columns)]
    if task.on_error == "null":
        columns.append(pa.array([found.errors.get(i) for i in range(len(series))], pa.string()))
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(task, batch.schema))


def lists(pa: Any, task: Task, found: Computed, level: float) -> Any:
    """[N] lists of h float32, null where there is no forecast."""
    return rows(pa, found.planes[task.levels.index(level)], found.there())


def rows(pa: Any, array: NDArray[Any], there: NDArray[np.bool_] | None = None) -> Any:
    """[N, ..., h] as N lists, null where they are not ``there``."""
    count, size = array.shape[:2]
    kept = array if there is None else array[there]
    inside = pa.array(kept.ravel()) if array.ndim == 2 else rows(pa, kept.reshape(-1, *array.shape[2:]))
    if there is None:
        return pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * size), inside)
    ends = np.r_[0, np.cumsum(there)].astype(np.int32) * size
    return pa.ListArray.from_arrays(pa.array(ends), inside, mask=pa.array(~there))
