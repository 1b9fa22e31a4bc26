# SPDX-License-Identifier: Apache-2.0
"""Parts of a run given out one by one to whoever is free, and read where they are computed."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from . import _grouping
from ._parts import Parts
from ._plan import Plan
from ._progress import Meter
from ._sources import File, batches_of, groups_of
from ._tables import module
from .batches import sized


@dataclass(frozen=True)
class Piece:
    """A part that is to do. In the long form ``file`` is None and ``index`` a bucket."""

    name: str
    file: File | None
    group: int
    index: int  #: of the parts of the row group
    rows: int  #: -1: not known before it is read

    @property
    def unit(self) -> tuple[int, int]:
        """What a reader has open."""
        return (-1 if self.file is None else self.file.number, self.group)


class _Unit:
    """Parts of a row group that are to do, the next first. Of a file without row groups nobody knows how many there are."""

    def __init__(self, key: tuple[int, int], pieces: Iterator[Piece], left: float) -> None:
        self.key = key
        self.left = left  #: parts, those included that are there
        self._pieces = pieces

    def take(self) -> Piece | None:
        self.left -= 1
        return next(self._pieces, None)


class Pieces:
    """Every part that is to do, once. A taker has the part behind its last one, so that it reads a row group on; then another
    row group; and when all are taken it shares in the one with the most parts left."""

    def __init__(self, plan: Plan, parts: Parts, meter: Meter) -> None:
        self._plan, self._parts, self._meter = plan, parts, meter
        self._units = self._of_lists() if plan.form == "lists" else self._of_buckets()
        self._open: dict[tuple[int, int], _Unit] = {}
        self._of: dict[Hashable, _Unit] = {}
        self._again: list[Piece] = []

    def take(self, taker: Hashable) -> Piece | None:
        """None: there is nothing left to give."""
        if self._again:
            return self._again.pop()
        while (unit := self._unit_of(taker)) is not None:
            piece = unit.take()
            if piece is not None:
                return piece
            self._open.pop(unit.key, None)
        return None

    def back(self, piece: Piece) -> bool:
        """Its taker was lost: another one does it. False where the part was written nevertheless."""
        if piece.rows >= 0 and self._parts.there(piece.name):
            return False
        self._again.append(piece)
        return True

    def end(self, piece: Piece) -> None:
        """The row group ends before this part."""
        self._open.pop(piece.unit, None)

    def _unit_of(self, taker: Hashable) -> _Unit | None:
        unit = self._of.get(taker)
        if unit is None or unit.key not in self._open:
            unit = next(self._units, None)
            if unit is not None:
                self._open[unit.key] = unit
            elif self._open:
                unit = max(self._open.values(), key=lambda one: one.left)
            else:
                return None
            self._of[taker] = unit
        return unit

    def _of_lists(self) -> Iterator[_Unit]:
        size = self._plan.part_rows
        for file in self._plan.files:
            for group, rows in enumerate(groups_of(file)):
                count = float("inf") if rows < 0 else -(-rows // size)
                yield _Unit((file.number, group), self._to_do(replace(file, metadata=None), group, rows, count), count)
            file.metadata = None  # of many files it would add up

    def _to_do(self, file: File, group: int, rows: int, count: float) -> Iterator[Piece]:
        for index in itertools.count():
            if index >= count:
                return
            name, size = self._parts.name(file.number, group, index), -1
            if rows >= 0:
                size = min(self._plan.part_rows, rows - index * self._plan.part_rows)
            if self._parts.there(name):
                self._meter.skip(max(0, size))
            else:
                yield Piece(name, file, group, index, size)

    def _of_buckets(self) -> Iterator[_Unit]:
        named = [(bucket, self._parts.name(bucket)) for bucket in range(self._plan.buckets)]
        todo = [Piece(name, None, 0, bucket, -1) for bucket, name in named if not self._parts.there(name)]
        self._meter.parts = (len(named) - len(todo), len(named))
        yield _Unit((-1, 0), iter(todo), len(todo))


class Reader:
    """Reads pieces; of a row group one after another, in whichever thread."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._unit: tuple[int, int] | None = None
        self._file: File | None = None
        self._batches: Iterator[Any] = iter(())
        self._next = 0

    def read(self, piece: Piece) -> Any:
        """Its rows; None where there are none."""
        if piece.file is None:
            found = next(_grouping.tables(self._plan.work_folder((0, 1)), [piece.index]), None)
            return None if found is None else found[1]
        with self._lock:
            if piece.unit != self._unit or piece.index < self._next:
                if piece.file != self._file:
                    self._file = piece.file
                batches = batches_of(self._file, self._plan.columns, self._plan.part_rows, piece.group)
                self._batches, self._unit, self._next = sized(module("pyarrow"), batches, self._plan.part_rows), piece.unit, 0
            for batch in self._batches:
                self._next += 1
                if self._next > piece.index:
                    return batch
            return None
