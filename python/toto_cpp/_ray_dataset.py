# SPDX-License-Identifier: Apache-2.0
"""Actors of Ray that read, compute and write parts of files themselves: Ray carries the numbers of parts, and no series."""

from __future__ import annotations

import math
import queue
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from . import _grouping
from ._errors import InternalError, TotoError, usage
from ._long import forecast_long
from ._pieces import Piece, Pieces, Reader
from ._plan import Plan, of_models, plan_of
from ._progress import Meter, Reporter, Result
from ._task import Task, lanes, readers
from .batches import forecast_batch
from .model import Model

_LOST = 20  # actors, one after another, with no part done between; of many actors twice as many as they are
_WHOLE = (0, 1)  # no shards: Ray shares the work out


class DatasetActor:
    """Its methods run in several threads: while one computes, another reads the next part and a third writes the last one."""

    def __init__(self) -> None:
        self.plan: Plan
        self.free: queue.Queue[Model] = queue.Queue()
        self.readers: list[Reader] = []

    def begin(self, plan: Plan) -> tuple[dict[str, Any], int]:
        """Loads the model: what is said of it, and how many threads compute with it."""
        self.plan = plan
        models = plan.task.models()
        every = lanes(models)
        for model in every:
            self.free.put(model)
        self.readers = [Reader(plan) for _ in range(readers(len(every)))]
        return of_models(plan.task, models), len(every)

    def forecast(self, piece: Piece, reader: int) -> int | None:
        """Series of the part, when it is written; None where there is no such part."""
        plan, done = self.plan, [0]
        rows = self.readers[reader].read(piece)
        if rows is None:
            return None
        model = self.free.get()
        try:
            compute: Callable[..., Any] = forecast_batch if plan.form == "lists" else forecast_long
            table = compute(plan.task, model, rows, advance=done.append)
        finally:
            self.free.put(model)
        plan.write(piece.name, table)
        return sum(done)


class _Actors:
    """Actors, what each was given to do, and what becomes of it where one is lost."""

    def __init__(self, ray: Any, make: Callable[[], Any], plan: Plan, count: int) -> None:
        self.ray, self.make = ray, make
        self.plan = replace(plan, files=[])
        self.calls: dict[Any, tuple[Any, Piece | None, int]] = {}  #: actor, what it does (None: it begins), which of its readers
        self.free: list[tuple[Any, int]] = []
        self.all: list[Any] = []
        self.said: dict[str, Any] | None = None
        self.lost = 0
        self.most = max(_LOST, 2 * count)  # a machine that is lost takes many at a time
        self.begun_once = False
        for _ in range(count):
            self.start()

    def start(self) -> None:
        actor = self.make()
        self.all.append(actor)
        self.calls[actor.begin.remote(self.plan)] = (actor, None, 0)

    def begun(self) -> dict[str, Any]:
        """What the first actor that has begun says of its model."""
        while self.said is None:
            for _ in self.finished(None):
                pass
        return self.said

    def results(self, pieces: Pieces) -> Iterator[tuple[Piece, int | None]]:
        """(piece, series) of all, as they are done."""
        while True:
            waiting: list[tuple[Any, int]] = []
            for actor, reader in self.free:
                piece = pieces.take((actor, reader))
                if piece is None:
                    waiting.append((actor, reader))
                else:
                    self.calls[actor.forecast.remote(piece, reader)] = (actor, piece, reader)
            self.free = waiting
            if waiting and not any(piece for _, piece, _ in self.calls.values()):
                return
            yield from self.finished(pieces)

    def finished(self, pieces: Pieces | None) -> Iterator[tuple[Piece, int | None]]:
        """Waits for one, and takes all that are done then."""
        exceptions = self.ray.exceptions
        calls = list(self.calls)
        done, rest = self.ray.wait(calls, num_returns=1, fetch_local=False)
        if rest:
            done += self.ray.wait(rest, num_returns=len(rest), timeout=0, fetch_local=False)[0]
        for call in done:
            actor, piece, reader = self.calls.pop(call)
            try:
                found = self.ray.get(call)
            except exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, TotoError) else error from None
            except exceptions.RayError as error:
                self.gone(actor, error)
                if piece is not None and pieces is not None and not pieces.back(piece):
                    yield piece, piece.rows
                continue
            if piece is None:
                self.joins(actor, *found)
                continue
            self.lost = 0
            if actor in self.all:
                self.free.append((actor, reader))
            yield piece, found

    def joins(self, actor: Any, said: dict[str, Any], computing: int) -> None:
        """It may take parts: of each lane one is read, one computed, one written."""
        self.begun_once = True
        if self.said is None:
            self.said = said
        if said != self.said:
            raise usage(
                "other_output", "actors have different weights, seeds or kinds of devices", "forecast_dataset",
                "give model=, seed= and device=",
            )  # fmt: skip
        self.free += [(actor, slot % readers(computing)) for slot in range(3 * computing)]

    def gone(self, actor: Any, error: Exception) -> None:
        """Another one takes its place."""
        if actor not in self.all:
            return
        self.lost += 1
        if self.lost > self.most:
            raise self.given_up(error) from error
        self.all.remove(actor)
        self.free = [one for one in self.free if one[0] is not actor]
        self.ray.kill(actor)
        self.start()

    def given_up(self, error: Exception) -> InternalError:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        what = "finished a part" if self.begun_once else "loaded the model"
        message = f"{self.lost} actors of Ray in a row died before one of them {what}; of the last one Ray says: {said}"
        remedy = (
            "parts that are written stay: the same call goes on with the others. Most often memory or time runs out on a machine: "
            "choose a smaller concurrency=, part_rows= or batch_size=, or wait until it is less busy; Ray's logs say why actors died"
        )
        where = str(self.plan.target)
        line = f"[actors_lost] {where}: {message} ({remedy})"
        return InternalError(line, code="actors_lost", status=70, message=message, where=where, remedy=remedy)

    def end(self) -> None:
        for actor in self.all:
            self.ray.kill(actor)


def run(
    ray: Any, task: Task, source: str | PathLike[str], out: str | PathLike[str], *, count: int, remote: dict[str, Any], resume: bool,
    memory_mb: int, progress: Reporter | None, **layout: Any,
) -> Result:  # fmt: skip
    """``toto_cpp.ray.forecast_dataset`` with so many actors, each with these options of Ray."""
    if count < 1:
        raise usage("invalid_option", f"expected at least 1 actor, found {count}", "concurrency")
    # Actors are processes in other folders.
    source, out = Path(source).absolute(), Path(out).absolute()
    plan = plan_of(task, source, out, shards=1, **layout)
    meter = Meter(progress)
    # Threads: of each lane of a GPU one reads, one computes, one writes. What is lost is begun again here, not by Ray.
    remote = {"max_concurrency": 6 * max(1, math.ceil(remote.get("num_gpus") or 0)), **remote, "max_restarts": 0, "max_task_retries": 0}
    actors = _Actors(ray, ray.remote(DatasetActor).options(**remote).remote, plan, count)
    try:
        if plan.form == "lists":
            meter.total = plan.total()
        parts = plan.parts(actors.begun(), _WHOLE, resume)
        pieces = Pieces(plan, parts, meter)
        meter.begin()
        if plan.form == "long":
            _grouping.partition(plan.task, plan.files, plan.work_folder(_WHOLE), plan.buckets, parts, memory_mb, None)
        for piece, series in actors.results(pieces):
            if series is None:
                pieces.end(piece)
                continue
            meter.wrote(piece.name)
            meter.advance(series)
            if plan.form == "long":
                _grouping.forget(plan.work_folder(_WHOLE), piece.index)
    finally:
        actors.end()
    complete = plan.finish(parts, fspath(source))
    meter.end()
    return meter.result(plan.target, complete)
