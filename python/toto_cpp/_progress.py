# SPDX-License-Identifier: Apache-2.0
"""How far the work is, and how long it will take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ._errors import CancelledError

_EVERY = 0.2  # seconds between reports


@dataclass(frozen=True)
class Progress:
    """``fraction`` of the work that is done and ``seconds_left``, None where neither can be known yet."""

    series: int  #: computed by this run
    skipped: int  #: that an earlier run had computed
    seconds: float
    fraction: float | None
    seconds_left: float | None

    @property
    def series_per_second(self) -> float:
        return self.series / self.seconds if self.seconds > 0 else 0.0


Reporter = Callable[[Progress], "bool | None"]


@dataclass(frozen=True)
class Result:
    """What ``forecast_dataset`` did."""

    path: Path
    complete: bool  #: every part is there, of every shard
    series: int  #: computed by this run
    skipped: int  #: of parts that were there, where their rows are known
    parts: int  #: written by this run
    seconds: float

    @property
    def series_per_second(self) -> float:
        return self.series / self.seconds if self.seconds > 0 else 0.0


class Meter:
    """Counts, from several threads."""

    def __init__(self, report: Reporter | None) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._last = 0.0  # of a report: the first is made at once
        self.total: int | None = None  #: series
        self.parts: tuple[int, int] | None = None  #: there already, in all
        self._series = self._skipped = self._written = 0
        self._seconds = 0.0

    def begin(self) -> None:
        self._begun = time.monotonic()

    def skip(self, series: int) -> None:
        with self._lock:
            self._skipped += series

    def advance(self, series: int) -> None:
        with self._lock:
            self._series += series
            now = time.monotonic()
            if self._report is None or now - self._last < _EVERY:
                return
            self._last = now
            seen = self._now()
        self._tell(seen)

    def wrote(self, name: str) -> None:
        with self._lock:
            self._written += 1

    def end(self) -> None:
        with self._lock:
            self._seconds = time.monotonic() - self._begun
            seen = self._now()
        if self._report is not None:
            self._report(seen)

    def _tell(self, seen: Progress) -> None:
        if self._report is not None and self._report(seen) is False:
            raise CancelledError("[interrupted] stopped before it was done", code="interrupted", status=130)

    def _now(self) -> Progress:
        seconds = time.monotonic() - self._begun
        fraction = left = None
        if self.total is not None and self.total > self._skipped:
            fraction = (self._series + self._skipped) / self.total
            if self._series:
                left = seconds * (self.total - self._skipped - self._series) / self._series
        elif self.parts is not None and self.parts[1]:
            before, every = self.parts
            fraction = (before + self._written) / every
            if self._written:
                left = seconds * (every - before - self._written) / self._written
        return Progress(self._series, self._skipped, seconds, fraction, left)

    def result(self, path: Path, complete: bool) -> Result:
        return Result(path, complete, self._series, self._skipped, self._written, self._seconds)
