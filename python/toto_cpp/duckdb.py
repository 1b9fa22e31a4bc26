# SPDX-License-Identifier: Apache-2.0
"""Forecasts in SQL: functions of DuckDB.

    import duckdb, toto_cpp.duckdb
    con = duckdb.connect()
    toto_cpp.duckdb.register(con)
    con.sql("SELECT unique_id, forecast(list(y ORDER BY ds), 24, unique_id) FROM series GROUP BY unique_id")
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ._errors import usage
from ._tables import module
from ._task import Task, compute, task_of
from .batches import names_of, series_of

__all__ = ["register"]

_TABLE = """
CREATE OR REPLACE MACRO {name}_table(source, h) AS TABLE
WITH series AS (SELECT {id}, list({y} ORDER BY {ds}) AS y FROM query_table(source) GROUP BY {id}),
     ahead AS (SELECT {id}, {name}(y, h, CAST({id} AS VARCHAR)) AS f FROM series)
SELECT {id}, unnest(generate_series(1, len(f))) AS step, unnest(f) AS {name} FROM ahead
"""


def register(con: Any, *, name: str = "forecast", **options: Any) -> None:
    """Gives a connection of DuckDB these functions. ``y`` is a list of numbers, oldest first, NULL where missing, and
    ``id`` the name of the series; without one a series is named by its values. DuckDB hands over some thousand rows
    at a time, as Arrow.

    ``forecast(y, h)``, ``forecast(y, h, id)``: ``FLOAT[]``, the median of the next ``h`` steps.
    ``forecast_quantiles(y, h, levels)``, and with ``id``: ``FLOAT[][]``, for each level ``h`` steps.
    ``FROM forecast_table('table', h)``: a row for each series and step of a long table: id, "step", "forecast".

    ``options``: those of ``toto_cpp.load`` and ``Model.forecast``, and the names of the columns of a long table,
    ``id_col``, ``time_col``, ``target_col``. A series that cannot be forecast ends the query; with
    ``on_error="null"`` it is NULL."""
    task = task_of(1, **options)
    if not name.isidentifier():
        raise usage("invalid_option", f"expected a word, found {name!r}", "name")
    kind = {"type": "arrow", "null_handling": "special"}
    con.create_function(name, lambda *given: _medians(task, *given), None, "FLOAT[]", **kind)
    con.create_function(f"{name}_quantiles", lambda *given: _quantiles(task, *given), None, "FLOAT[][]", **kind)
    quoted = {key: '"' + str(getattr(task, f"{column}_col")).replace('"', '""') + '"' for key, column in _COLUMNS.items()}
    con.execute(_TABLE.format(name=name, **quoted))


_COLUMNS = {"id": "id", "ds": "time", "y": "target"}


def _computed(task: Task, y: Any, ids: Any) -> tuple[NDArray[Any], dict[int, str]]:
    """[levels, N, h]"""
    pa = module("pyarrow")
    arrays = series_of(pa, _whole(y))
    names = None if ids is None else names_of(pa, _whole(ids), "id")
    found = compute(task, task.models()[0], names, arrays)
    return found.planes, found.errors


def _whole(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


def _groups(y: Any, id: Any, *columns: Any) -> dict[Any, list[int]]:
    """Rows by what they ask for: most often all ask for the same. Those with a NULL are left out: they give NULL."""
    rows: dict[Any, list[int]] = {}
    there = y.is_valid() if id is None else module("pyarrow.compute").and_(y.is_valid(), id.is_valid())
    for i, (known, asked) in enumerate(zip(there.to_pylist(), zip(*(column.to_pylist() for column in columns)))):
        if known and None not in asked:
            rows.setdefault(tuple(tuple(one) if isinstance(one, list) else one for one in asked), []).append(i)
    return rows


def _taken(column: Any, rows: list[int], pa: Any) -> Any:
    whole = _whole(column)
    return whole if len(rows) == len(whole) else whole.take(pa.array(rows))


def _medians(task: Task, y: Any, h: Any, id: Any = None) -> Any:
    pa = module("pyarrow")
    out: list[Any] = [None] * len(y)
    for (steps,), rows in _groups(y, id, h).items():
        own = replace(task, h=_steps(steps))
        planes, errors = _computed(own, _taken(y, rows, pa), None if id is None else _taken(id, rows, pa))
        for i, row in enumerate(rows):
            out[row] = None if i in errors else planes[own.levels.index(0.5), i]
    return pa.array(out, pa.list_(pa.float32()))


def _quantiles(task: Task, y: Any, h: Any, levels: Any, id: Any = None) -> Any:
    pa = module("pyarrow")
    out: list[Any] = [None] * len(y)
    for (steps, asked), rows in _groups(y, id, h, levels).items():
        wanted = [round(float(q), 12) for q in asked]
        own = replace(task, h=_steps(steps), columns=(task.columns[0], *((str(q), q) for q in wanted)))
        planes, errors = _computed(own, _taken(y, rows, pa), None if id is None else _taken(id, rows, pa))
        places = [own.levels.index(q) for q in wanted]
        for i, row in enumerate(rows):
            out[row] = None if i in errors else list(planes[places, i])
    return pa.array(out, pa.list_(pa.list_(pa.float32())))


def _steps(given: Any) -> int:
    if int(given) < 1:
        raise usage("invalid_horizon", f"expected 1 to 100000 steps, found {given}", "h")
    return int(given)
