# SPDX-License-Identifier: Apache-2.0
"""Forecasts in SQL: functions of DuckDB.

    import duckdb, toto_cpp.duckdb
    con = duckdb.connect()
    toto_cpp.duckdb.register(con)
    con.sql("SELECT unique_id, forecast(list(y ORDER BY ds), 24, unique_id) FROM series GROUP BY unique_id")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ._errors import usage
from ._lists import lists_of, names_of
from ._tables import module
from ._task import Computed, Task, compute, task_of
from .batches import lists, rows

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


def _medians(task: Task, y: Any, h: Any, id: Any = None) -> Any:
    pa = module("pyarrow")

    def answer(y: Any, id: Any, steps: Any) -> Any:
        own = replace(task, h=_steps(steps))
        return lists(pa, own, _computed(own, y, id), 0.5)

    return _answers(pa, y, id, [h], answer, pa.list_(pa.float32()))


def _quantiles(task: Task, y: Any, h: Any, levels: Any, id: Any = None) -> Any:
    pa = module("pyarrow")

    def answer(y: Any, id: Any, steps: Any, asked: Any) -> Any:
        wanted = [round(float(q), 12) for q in asked]
        own = replace(task, h=_steps(steps), columns=(task.columns[0], *((str(q), q) for q in wanted)))
        found = _computed(own, y, id)
        planes = found.planes[[own.levels.index(q) for q in wanted]]
        return rows(pa, np.ascontiguousarray(planes.swapaxes(0, 1)), found.there())

    return _answers(pa, y, id, [h, levels], answer, pa.list_(pa.list_(pa.float32())))


def _computed(task: Task, y: Any, id: Any) -> Computed:
    pa = module("pyarrow")
    return compute(task, task.models()[0], None if id is None else names_of(pa, id, "id"), lists_of(pa, y))


def _answers(pa: Any, y: Any, id: Any, asked: list[Any], answer: Callable[..., Any], kind: Any) -> Any:
    """``answer(y, id, *what is asked)`` of the rows that ask for the same, in the order of the rows; null of those with a NULL."""
    y, id, *asked = (_whole(column) for column in (y, id, *asked))
    if y.null_count == 0 and (id is None or id.null_count == 0) and all(_is_constant(column) for column in asked):
        return answer(y, id, *(column[0].as_py() for column in asked))  # most often all ask for the same
    found, place = [pa.array([], kind)], np.full(len(y), -1)
    for question, chosen in _groups(y, id, asked).items():
        place[chosen] = sum(map(len, found)) + np.arange(len(chosen))
        some = pa.array(chosen)
        found.append(answer(y.take(some), None if id is None else id.take(some), *question))
    return pa.concat_arrays(found).take(pa.array(place, mask=place < 0))


def _whole(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


def _is_constant(column: Any) -> bool:
    """Whether all rows have the same value, or the same numbers in a list."""
    if column.null_count or not len(column):
        return False
    pc = module("pyarrow.compute")
    first = column[0].as_py()
    if not isinstance(first, list):
        return bool(pc.all(pc.equal(column, first)).as_py())
    if not pc.all(pc.equal(pc.list_value_length(column), len(first))).as_py():
        return False
    values = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), len(first))
    return bool((values == values[0]).all())


def _groups(y: Any, id: Any, asked: list[Any]) -> dict[Any, list[int]]:
    """Rows by what they ask for, without those that have a NULL."""
    found: dict[Any, list[int]] = {}
    there = y.is_valid() if id is None else module("pyarrow.compute").and_(y.is_valid(), id.is_valid())
    for i, (known, wanted) in enumerate(zip(there.to_pylist(), zip(*(column.to_pylist() for column in asked)))):
        if known and None not in wanted:
            found.setdefault(tuple(tuple(one) if isinstance(one, list) else one for one in wanted), []).append(i)
    return found


def _steps(given: Any) -> int:
    if int(given) < 1:
        raise usage("invalid_horizon", f"expected 1 to 100000 steps, found {given}", "h")
    return int(given)
