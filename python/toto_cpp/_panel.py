# SPDX-License-Identifier: Apache-2.0
"""A long data frame as series: sorted, split, gaps filled, continued."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _calendar
from ._calendar import Step
from ._errors import make, usage
from ._kinds import Frame


def _data_error(code: str, message: str, where: str, remedy: str = "") -> Exception:
    return make(65, code, message, where, remedy, f"[{code}] {where}: {message}" + (f" ({remedy})" if remedy else ""))


def _text(one: Any) -> str:
    return str(one.as_py() if hasattr(one, "as_py") else one)


@dataclass
class Panel:
    """Series one after another: series i has the rows [starts[i], starts[i + 1])."""

    frame: Frame
    id_column: str
    time_column: str
    ids: Any  #: [N] of the frame's kind
    names: list[str]  #: [N]
    starts: NDArray[np.int64]  #: [N + 1]
    times: NDArray[Any]  #: [rows], on the wall where `step` goes by days, else of UTC
    zone: Any
    step: Step
    columns: dict[str, NDArray[Any]]  #: [rows] each

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    def series(self, names: list[str]) -> list[NDArray[Any]]:
        """[T] of each series for one column, [V, T] for several. Views where it is one."""
        ends = self.starts[1:-1]
        if len(names) == 1:
            return np.split(self.columns[names[0]], ends)
        split = [np.split(self.columns[name], ends) for name in names]
        return [np.stack(parts) for parts in zip(*split)]

    def future(self, horizon: int) -> NDArray[Any]:
        """[N, horizon]"""
        return _calendar.after(self.times[self.starts[1:] - 1], self.step, horizon)

    def stamp(self, times: NDArray[Any]) -> Any:
        on_the_wall = self.zone is not None and self.step.by_days
        return self.frame.stamp(times.ravel(), self.zone, on_the_wall, self.time_column)

    def repeated_ids(self, counts: Any) -> Any:
        if not self.id_column:  # a wide frame
            return np.repeat(np.array(self.names, object), counts).tolist()
        return self.frame.take(self.ids, np.repeat(np.arange(len(self)), counts))


def _sorted(frame: Frame, id_column: str, time_column: str, by_id: bool) -> tuple[Any, ...]:
    codes, ids = frame.codes(id_column)
    times, zone = frame.times(time_column)
    if times.dtype.kind not in "Miu":
        raise usage("invalid_timestamp", f"expected timestamps or whole numbers, found {times.dtype}", f"column {time_column!r}")
    if times.dtype.kind == "M" and np.isnat(times).any():
        raise _data_error("invalid_timestamp", f"row {int(np.isnat(times).argmax())} has no time", f"column {time_column!r}")
    count = len(ids)
    if by_id and count > 1:
        plain = [i.as_py() if hasattr(i, "as_py") else i for i in ids]
        numbers = all(isinstance(i, (int, float, np.integer)) for i in plain)
        order = np.argsort(np.array(plain if numbers else [str(i) for i in plain]), kind="stable")
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        codes, ids = place[codes], frame.take(ids, order)
    rows = None
    same = codes[1:] == codes[:-1]
    if (codes[1:] < codes[:-1]).any() or (same & (times[1:] < times[:-1])).any():
        rows = np.lexsort((times, codes))
        codes, times = codes[rows], times[rows]
        same = codes[1:] == codes[:-1]
    repeated = same & (times[1:] == times[:-1])
    if repeated.any():
        at = int(repeated.argmax())
        raise _data_error(
            "duplicate_timestamp", f"{times[at]} twice", f"series {_text(ids[int(codes[at])])!r}", "keep one row for each time"
        )
    starts = np.flatnonzero(np.r_[True, ~same]) if len(codes) else np.zeros(0, np.int64)
    return ids, np.r_[starts, len(codes)].astype(np.int64), times, zone, rows


def _step_of(frame: Frame, times: NDArray[Any], zone: Any, freq: Any, where: str) -> tuple[Step, NDArray[Any]]:
    """The step of one series, and its times: on the wall of its zone where the step goes by days."""
    step = None if freq is None else _calendar.parse(freq)
    if not len(times):
        return step or Step("index", 1), times
    if zone is None or (step is not None and not step.by_days):
        return step or _calendar.infer(times, where), times
    wall = frame.local(times, zone)
    if step is None:
        by_wall = _calendar.infer(wall, where)
        step = by_wall if by_wall.by_days else _calendar.infer(times, where)
    return step, wall if step.by_days else times


def read_wide(frame: Frame, time_column: str, columns: list[str], freq: Any) -> Panel:
    """Reads a wide frame: each column is a series, named `value` in the panel."""
    frame.check([time_column, *columns], "df")
    times, zone = frame.times(time_column)
    rows = None
    if (times[1:] < times[:-1]).any():
        rows = np.argsort(times, kind="stable")
        times = times[rows]
    if (times[1:] == times[:-1]).any():
        at = int((times[1:] == times[:-1]).argmax())
        raise _data_error("duplicate_timestamp", f"{times[at]} twice", f"column {time_column!r}", "keep one row for each time")
    step, times = _step_of(frame, times, zone, freq, f"column {time_column!r}")
    values = [frame.floats(name) for name in columns]
    whole = np.concatenate([one if rows is None else one[rows] for one in values])
    starts = np.arange(len(columns) + 1, dtype=np.int64) * len(times)
    panel = Panel(
        frame, "", time_column, columns, [str(c) for c in columns], starts, np.tile(times, len(columns)), zone, step,
        {"value": whole},
    )  # fmt: skip
    return _filled(panel)


def read(
    frame: Frame, id_column: str, time_column: str, columns: list[str], freq: Any, by_id: bool = False, fill: bool = True,
    single: bool = True,
) -> Panel:
    """Reads a long frame. A row that is missing in a fixed step becomes a missing value. `single`: as Frame.floats."""
    frame.check([id_column, time_column, *columns], "df")
    ids, starts, times, zone, rows = _sorted(frame, id_column, time_column, by_id)
    longest = int(np.argmax(np.diff(starts))) if len(times) else 0
    step, _ = _step_of(frame, times[starts[longest] : starts[longest + 1]] if len(times) else times, zone, freq, f"column {time_column!r}")
    if zone is not None and step.by_days and len(times):
        times = frame.local(times, zone)
    values = {}
    for name in columns:
        column = frame.floats(name, single)
        values[name] = column if rows is None else column[rows]
    panel = Panel(frame, id_column, time_column, ids, [_text(i) for i in ids], starts, times, zone, step, values)
    return _filled(panel) if fill else panel


def _filled(panel: Panel) -> Panel:
    """Where timestamps are missing, rows of NaN."""
    if panel.step.kind not in ("fixed", "index") or len(panel.times) < 2:
        return panel
    ticks = panel.times.astype("datetime64[ns]") if panel.times.dtype.kind == "M" else panel.times
    gaps = np.diff(ticks.astype(np.int64))
    inside = np.ones(len(gaps), bool)
    inside[panel.starts[1:-1] - 1] = False
    odd = inside & (gaps != panel.step.count)
    if not odd.any():
        return panel
    if (gaps[odd] % panel.step.count).any() or gaps[odd].sum() // panel.step.count > 2 * len(panel.times):
        warnings.warn("timestamps are irregular: rows are taken as consecutive observations", stacklevel=5)
        return panel
    extra = np.where(odd, gaps // panel.step.count - 1, 0)
    place = np.arange(len(panel.times)) + np.r_[0, np.cumsum(extra)]
    total = int(place[-1]) + 1
    columns = {}
    for name, column in panel.columns.items():
        columns[name] = np.full(total, np.nan, column.dtype)
        columns[name][place] = column
    filled = np.zeros(total, bool)
    filled[place] = True
    before = place[np.cumsum(filled) - 1]
    times = np.empty(total, ticks.dtype)
    times[place] = ticks
    delta = (np.arange(total) - before) * panel.step.count
    times = times[before] + (delta.astype("timedelta64[ns]") if ticks.dtype.kind == "M" else delta)
    starts = np.r_[place[panel.starts[:-1]], total]
    return Panel(
        panel.frame, panel.id_column, panel.time_column, panel.ids, panel.names, starts,
        times.astype(panel.times.dtype), panel.zone, panel.step, columns,
    )  # fmt: skip
