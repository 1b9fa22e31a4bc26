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


def _plain(ids: Any) -> list[Any]:
    """Python's own objects of a column of ids."""
    if hasattr(ids, "to_pylist"):
        listed: list[Any] = ids.to_pylist()
        return listed
    return list(ids)


def _ticks(times: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers, in the unit of the times."""
    return times.view(np.int64) if times.dtype.kind == "M" else times.astype(np.int64, copy=False)


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
        bounds = self.starts.tolist()
        cuts = [slice(a, b) for a, b in zip(bounds, bounds[1:])]
        if len(names) == 1:
            column = self.columns[names[0]]
            return [column[cut] for cut in cuts]
        return [np.stack([self.columns[name][cut] for name in names]) for cut in cuts]

    def future(self, horizon: int) -> NDArray[Any]:
        """[N, horizon]"""
        return _calendar.after(self.times[self.starts[1:] - 1], self.step, horizon)

    def stamp(self, times: NDArray[Any]) -> Any:
        on_the_wall = self.zone is not None and self.step.by_days
        return self.frame.stamp(times.ravel(), self.zone, on_the_wall, self.time_column)

    def repeated_ids(self, counts: Any) -> Any:
        rows = np.repeat(np.arange(len(self)), counts)
        return self.frame.take(self.ids, rows) if self.id_column else self.frame.words(self.names, rows)


def _sorted(frame: Frame, id_column: str, time_column: str, by_id: bool) -> tuple[Any, ...]:
    starts, numbers, ids = frame.runs(id_column)
    times, zone = frame.times(time_column)
    if times.dtype.kind not in "Miu":
        raise usage("invalid_timestamp", f"expected timestamps or whole numbers, found {times.dtype}", f"column {time_column!r}")
    if times.dtype.kind == "M" and np.isnat(times).any():
        raise _data_error("invalid_timestamp", f"row {int(np.isnat(times).argmax())} has no time", f"column {time_column!r}")
    count = len(ids)
    if by_id and count > 1:
        plain = _plain(ids)
        are_numbers = all(isinstance(i, (int, float, np.integer)) for i in plain)
        order = np.argsort(np.array(plain if are_numbers else [str(i) for i in plain]), kind="stable")
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        numbers, ids = place[numbers], frame.take(ids, order)
    rows = None
    gaps = _inner_gaps(times, starts)
    if (numbers[1:] <= numbers[:-1]).any() or gaps.min(initial=1) < 0:
        codes = np.repeat(numbers, np.diff(np.r_[starts, len(times)]))
        rows = np.lexsort((times, codes))
        times = times[rows]
        starts = np.searchsorted(codes[rows], np.arange(count))
        gaps = _inner_gaps(times, starts)
    if gaps.min(initial=1) == 0:
        at = int((gaps == 0).argmax())
        name = _plain(ids)[int(np.searchsorted(starts, at, side="right")) - 1]
        raise _data_error("duplicate_timestamp", f"{times[at]} twice", f"series {str(name)!r}", "keep one row for each time")
    return ids, np.r_[starts, len(times)].astype(np.int64), times, zone, rows


def _inner_gaps(times: NDArray[Any], starts: NDArray[np.int64], between: int = 1) -> NDArray[np.int64]:
    """From each row to the next, in the unit of the times; `between` one series and the next."""
    gaps = np.diff(_ticks(times))
    gaps[starts[1:] - 1] = between
    return gaps


def _step_of(frame: Frame, times: NDArray[Any], zone: Any, freq: Any, where: str) -> tuple[Step, NDArray[Any]]:
    """The step of one series, and its times: on the wall of its zone where the step goes by days."""
    step = freq if freq is None or isinstance(freq, Step) else _calendar.parse(freq)
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
    frame: Frame, id_column: str, time_column: str, columns: list[str], freq: Any, by_id: bool = False, fill: bool = True
) -> Panel:
    """Reads a long frame. A row that is missing in a fixed step becomes a missing value."""
    frame.check([id_column, time_column, *columns], "df")
    ids, starts, times, zone, rows = _sorted(frame, id_column, time_column, by_id)
    longest = int(np.argmax(np.diff(starts))) if len(times) else 0
    step, _ = _step_of(frame, times[starts[longest] : starts[longest + 1]] if len(times) else times, zone, freq, f"column {time_column!r}")
    if zone is not None and step.by_days and len(times):
        times = frame.local(times, zone)
    values = {}
    for name in columns:
        column = frame.floats(name)
        values[name] = column if rows is None else column[rows]
    panel = Panel(frame, id_column, time_column, ids, [str(i) for i in _plain(ids)], starts, times, zone, step, values)
    return _filled(panel) if fill else panel


def _filled(panel: Panel) -> Panel:
    """Where timestamps are missing, rows of NaN."""
    if panel.step.kind not in ("fixed", "index") or len(panel.times) < 2:
        return panel
    ticks = panel.times
    if ticks.dtype.kind == "M":
        unit = _calendar.nanoseconds(ticks.dtype)
        if panel.step.count % unit == 0:
            count = panel.step.count // unit
            if (_inner_gaps(ticks, panel.starts[:-1], count) == count).all():
                return panel
        ticks = ticks.astype("datetime64[ns]")
    gaps = _inner_gaps(ticks, panel.starts[:-1], panel.step.count)
    odd = gaps != panel.step.count
    if not odd.any():
        return panel
    # Each series by itself: what is made of it does not depend on those beside it.
    owner = np.searchsorted(panel.starts, np.flatnonzero(odd), side="right") - 1
    crooked = np.zeros(len(panel), bool)
    crooked[owner[gaps[odd] % panel.step.count != 0]] = True
    added = np.bincount(owner, gaps[odd] // panel.step.count - 1, len(panel))
    crooked |= added > 2 * panel.lengths
    if crooked.any():
        warnings.warn(
            f"timestamps of {crooked.sum()} series are irregular, among them {panel.names[int(crooked.argmax())]!r}: their rows are "
            "taken as consecutive observations", stacklevel=5,
        )  # fmt: skip
        odd[np.flatnonzero(odd)[crooked[owner]]] = False
        if not odd.any():
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
