# SPDX-License-Identifier: Apache-2.0
"""Forecasts on a cluster with Ray: one process (an actor) for each model in memory, work given out as they are free.

    import ray, toto_cpp.ray
    toto_cpp.ray.forecast_dataset("series", "forecasts", 24, concurrency=8)                                  # files to files
    toto_cpp.ray.forecast(ray.data.read_parquet("series"), 24, concurrency=8).write_parquet("forecasts")     # Ray Data
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ._errors import usage
from ._long import forecast_long
from ._progress import Reporter, Result
from ._tables import module
from ._task import Task, task_of
from .batches import forecast_batch, is_list

__all__ = ["forecast", "forecast_dataset"]


_BATCHES = 4  # in a task, which takes Ray some 10 ms; on a CPU a second or two of work
_BATCHES_OF_A_GPU = 64


class _Lists:
    """An actor: the model is loaded once, when it starts."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.model = task.models()[0]

    def __call__(self, batch: Any) -> Any:
        pa = module("pyarrow")
        return pa.Table.from_batches([forecast_batch(self.task, self.model, batch)])


class _Long(_Lists):
    def __call__(self, group: Any) -> Any:
        return forecast_long(self.task, self.model, group)


def forecast(
    data: Any,
    h: int,
    *,
    form: Literal["lists", "long"] | None = None,
    concurrency: int | tuple[int, int] = 1,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Forecasts a ``ray.data.Dataset`` lazily and gives another one.

    ``form="lists"``: one row for each series, as ``forecast_batches``. ``form="long"``: one row for each value; rows are
    grouped by ``id_col``, which moves them between machines, and ``freq`` must be given. None: as ``target_col`` says.

    ``concurrency``: actors, each with a model of its own; (least, most) lets Ray choose. ``num_cpus`` of each: also how
    many threads it computes with, unless ``threads`` says otherwise. ``num_gpus=1`` gives each a GPU. An actor that is
    lost is started again and its last rows are computed again (``batch_size`` times 4, with GPUs times 64), with
    the same bits; so are lost machines. Batches wait where the next stage is slower. Other options are those of ``forecast_batches``."""
    pool = module("ray.data").ActorPoolStrategy
    least, most = (concurrency, concurrency) if isinstance(concurrency, int) else concurrency
    task = _task_of_actors(h, num_cpus, num_gpus, **options)
    if form is None:
        form = "lists" if is_list(module("pyarrow"), _type_of(data.schema(), task.target_col)) else "long"
    common: dict[str, Any] = {
        "fn_constructor_args": (task,), "compute": pool(min_size=least, max_size=most), "batch_format": "pyarrow", "num_cpus": num_cpus,
        "num_gpus": num_gpus, **(ray_remote_args or {}),
    }  # fmt: skip
    # Ray Data begins actors and their calls again without end, unless ray_remote_args says otherwise.
    common = {name: value for name, value in common.items() if value is not None}
    if form == "lists":
        # What is lost with an actor, and done again, is its task: a block as it was read can be a minute of work on a CPU.
        rows = task.batch_size * (_BATCHES_OF_A_GPU if num_gpus else _BATCHES)
        pieces = data.repartition(target_num_rows_per_block=rows)
        return pieces.map_batches(_Lists, batch_size=rows, zero_copy_batch=True, **common)
    _needs_freq(task)
    return data.groupby(task.id_col).map_groups(_Long, **common)


def forecast_dataset(
    source: str | PathLike[str],
    out: str | PathLike[str],
    h: int,
    *,
    concurrency: int = 1,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    form: Literal["lists", "long"] | None = None,
    format: str | None = None,
    out_format: str | None = None,
    resume: bool = True,
    part_rows: int = 4096,
    buckets: int | None = None,
    memory_mb: int = 512,
    progress: Reporter | None = None,
    **options: Any,
) -> Result:
    """``toto_cpp.forecast_dataset`` by actors of Ray: the same files with the same bytes, and either goes on with what the
    other has begun. Actors read and write files themselves, so ``source`` and ``out`` are the same folders on every machine, and
    no series goes through Ray. In the long form this process puts the rows of each series together first.

    ``concurrency``: actors, each with a model of its own; those that find no room wait, and join when there is some.
    ``num_cpus`` of each: also how many threads it computes with, unless ``threads`` says otherwise. ``num_gpus=1`` gives each a
    GPU. An actor takes the next part when it is done with one, and the next is read while one is computed. Another one takes the
    place of an actor that is lost, and its parts are computed again (``part_rows``: how much that is); where 20 (of more than
    ten actors twice as many as they are) are lost with no part done between, the error is ``actors_lost``: parts that are done
    stay, and the same call goes on. ``ray_remote_args``: other options of actors, but for their restarts. All else is as
    there."""
    from ._ray_dataset import run

    remote = {"num_cpus": 1 if num_cpus is None else num_cpus, "num_gpus": num_gpus, **(ray_remote_args or {})}
    return run(
        module("ray"), _task_of_actors(h, num_cpus, num_gpus, **options), source, out, count=concurrency, remote=remote, resume=resume,
        memory_mb=memory_mb, progress=progress, form=form, format=format, out_format=out_format, part_rows=part_rows, buckets=buckets,
    )  # fmt: skip


def _task_of_actors(h: int, num_cpus: float | None, num_gpus: float | None, **options: Any) -> Task:
    """For processes that have so many cores and GPUs, and another working folder."""
    if num_cpus is not None:
        options.setdefault("threads", max(1, int(num_cpus)))
    if num_gpus:
        options.setdefault("device", "cuda")
    task = task_of(h, **options)
    if task.model is None or not Path(task.model).exists():
        return task
    return replace(task, model=str(Path(task.model).absolute()))


def _needs_freq(task: Task) -> None:
    if task.freq is None:
        raise usage("invalid_freq", "series are forecast apart and their steps cannot be compared", "freq", 'give it: freq="h"')


def _type_of(schema: Any, name: str) -> Any:
    names: Sequence[str] = schema.names
    if name not in names:
        raise usage("missing_column", f"no column {name!r}; there are {', '.join(names)}", "data")
    return schema.types[list(names).index(name)]
