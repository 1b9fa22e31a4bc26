# SPDX-License-Identifier: Apache-2.0
"""Steps of time: found in timestamps or read from words, and continued."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._errors import usage

Times = NDArray[Any]  # datetime64 of any unit, or whole numbers

_FIXED = {
    "ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000, "t": 60_000_000_000,
    "m": 60_000_000_000, "h": 3_600_000_000_000, "d": 86_400_000_000_000, "w": 604_800_000_000_000,
}  # fmt: skip
_DAY = _FIXED["d"]
_MONTH = np.timedelta64(1, "M")
_SIZE = {"business": 2 * _DAY, "months": 31 * _DAY}
_LONGEST = 2**62  # a step in nanoseconds: 146 years
_MONTHS = {"mo": 1, "ms": 1, "me": 1, "m": 1, "q": 3, "qs": 3, "qe": 3, "y": 12, "ys": 12, "ye": 12, "a": 12, "as": 12}


@dataclass(frozen=True)
class Step:
    """The step from one timestamp to the next."""

    kind: Literal["index", "fixed", "business", "months"]
    count: int  #: of whole numbers, nanoseconds, business days or months
    at_end: bool = False  #: months: the last day of each

    @property
    def by_days(self) -> bool:
        """Whether it follows the clock on the wall where that is put forward or back."""
        return self.kind in ("business", "months") or (self.kind == "fixed" and self.count % _DAY == 0)


def parse(freq: str | int) -> Step:
    """The step of a word of pandas or polars: "h", "15min", "D", "B", "W", "MS", "ME", "QS", "YS", "1mo", 1."""
    step = _parsed(freq)
    size = step.count * _SIZE.get(step.kind, 1) if step else 0
    if step is None or not 0 < size <= _LONGEST:
        raise usage("invalid_freq", f"expected a frequency such as 'h', '15min', 'D', 'B', 'MS' or 1, found {freq!r}", "freq")
    return step


def _parsed(freq: Any) -> Step | None:
    if isinstance(freq, (timedelta, np.timedelta64)):  # the latter is a whole number of numpy too
        return Step("fixed", int(np.timedelta64(freq, "ns").astype(np.int64)))
    if isinstance(freq, (int, np.integer)) and not isinstance(freq, bool):
        return Step("index", int(freq))
    match = re.fullmatch(r"(\d*)([A-Za-z]+)(-[A-Za-z]+)?", str(getattr(freq, "freqstr", freq)))
    if match:
        count, word = int(match[1] or 1), match[2]
        low = word.lower()
        if low in ("b", "bd"):
            return Step("business", count)
        # Of words that differ by case, "M" and "MS" are months, "m" and "ms" minutes and milliseconds.
        if low in _MONTHS and not (word in ("m", "ms")):
            return Step("months", count * _MONTHS[low], low in ("m", "me", "q", "qe", "y", "ye", "a") and word.isupper())
        if low in _FIXED:
            return Step("fixed", count * _FIXED[low])
    return None


def _as_days(times: Times) -> NDArray[np.datetime64]:
    return times.astype("datetime64[D]")


def _month_step(times: Times) -> Step | None:
    days = _as_days(times)
    if (times != days.astype(times.dtype)).any():
        return None
    months = days.astype("datetime64[M]")
    steps = np.diff(months).astype(np.int64)
    if steps[0] < 1 or (steps != steps[0]).any():
        return None
    day = (days - months.astype("datetime64[D]")).astype(np.int64)
    last = ((months + _MONTH).astype("datetime64[D]") - days).astype(np.int64) == 1
    if last.all():
        return Step("months", int(steps[0]), True)
    if (day == day[0]).all() or ((day == day.max()) | last).all():
        return Step("months", int(steps[0]))
    return None


def infer(times: Times, where: str) -> Step:
    """The step of increasing timestamps: fixed, of months, of business days; otherwise the commonest."""
    if len(times) < 2:
        raise usage("invalid_freq", "one timestamp does not say the step to the next one", where, "give freq=")
    if times.dtype.kind in "iu":
        return Step("index", _commonest(np.diff(times.astype(np.int64))))
    gaps = np.diff(times)
    if (gaps == gaps[0]).all():
        return Step("fixed", int(gaps[0].astype("timedelta64[ns]").astype(np.int64)))
    months = _month_step(times)
    if months is not None:
        return months
    days = _as_days(times)
    whole = (times == days.astype(times.dtype)).all()
    if whole and np.is_busday(days).all() and (gaps <= np.timedelta64(5, "D")).all() and (gaps == np.timedelta64(1, "D")).any():
        if not (np.diff(days).astype(np.int64) == 2).any() and (gaps >= np.timedelta64(3, "D")).any():
            return Step("business", 1)
    return Step("fixed", _commonest(gaps.astype("timedelta64[ns]").astype(np.int64)))


def _commonest(gaps: NDArray[Any]) -> int:
    values, counts = np.unique(gaps, return_counts=True)
    return int(values[np.argmax(counts)])


def nanoseconds(dtype: Any) -> int:
    """Of one tick of a datetime64."""
    unit, count = np.datetime_data(dtype)
    if unit == "generic":
        return 1_000_000_000_000_000
    return int(np.ones(1, f"timedelta64[{count}{unit}]").astype("timedelta64[ns]").astype(np.int64)[0])


def after(last: Times, step: Step, horizon: int) -> Times:
    """[N, horizon]: the timestamps after each of ``last`` [N], of the same type."""
    ahead = np.arange(1, horizon + 1, dtype=np.int64) * step.count
    if step.kind == "index":
        if last.dtype.kind == "M":
            raise usage("invalid_freq", f"expected a frequency such as 'D', found {step.count}", "freq")
        # Times of few bits may end at the largest number of their type.
        result: Times = last[:, None].astype(np.int64) + ahead
        fits = not result.size or (result.min() >= np.iinfo(last.dtype).min and result.max() <= np.iinfo(last.dtype).max)
        return result.astype(last.dtype) if fits else result
    if last.dtype.kind != "M":
        raise usage("invalid_freq", "expected a whole number, since the times are whole numbers", "freq")
    if step.kind == "fixed":
        size = nanoseconds(last.dtype)
        if step.count % size == 0:
            unit, of = np.datetime_data(last.dtype)
            coarse: Times = last[:, None] + (ahead // size).astype(f"timedelta64[{of}{unit}]")
            return coarse
        fine: Times = last.astype("datetime64[ns]")[:, None] + ahead.astype("timedelta64[ns]")
        return fine
    days = _as_days(last)
    rest = last - days.astype(last.dtype)
    if step.kind == "business":
        found = np.busday_offset(days[:, None], ahead[None, :], roll="backward")
    else:
        month = days.astype("datetime64[M]")
        of_month = (days - month.astype("datetime64[D]")).astype(np.int64)
        begin = month[:, None] + ahead.astype("timedelta64[M]")
        end = ((begin + _MONTH).astype("datetime64[D]") - begin.astype("datetime64[D]")).astype(np.int64) - 1
        at = end if step.at_end else np.minimum(of_month[:, None], end)
        found = begin.astype("datetime64[D]") + at.astype("timedelta64[D]")
    whole: Times = found.astype(last.dtype) + rest[:, None]
    return whole
