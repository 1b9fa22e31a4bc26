# SPDX-License-Identifier: Apache-2.0
"""Files in, files out, in constant memory: any number of series, resumed where it was interrupted, shared out between
machines by shards."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike, fspath
from typing import Any, Literal

from . import _grouping
from ._long import forecast_long
from ._parts import Parts, parse_shard
from ._pipeline import Stop, pipeline, shared
from ._plan import Plan, of_models, plan_of
from ._progress import Meter, Progress, Reporter, Result
from ._sources import File, batches_of, groups_of
from ._tables import module
from ._task import Task, lanes, readers, task_of
from .batches import forecast_batch, sized
from .model import Model

__all__ = ["Progress", "Result", "forecast_dataset"]

def forecast_dataset(
    source: str | PathLike[str],
    out: str | PathLike[str],
    h: int,
    *,
    form: Literal["lists", "long"] | None = None,
    format: str | None = None,
    out_format: str | None = None,
    shard: str | tuple[int, int] | None = None,
    resume: bool = True,
    part_rows: int = 4096,
    buckets: int | None = None,
    memory_mb: int = 512,
    progress: Reporter | None = None,
    **options: Any,
) -> Result:
    """Forecasts all series of a file or a folder of files. Reading, computing and writing overlap; memory does not grow
    with the number of series.

    ``source``: Parquet, Arrow, CSV or JSON lines (also .gz and .zst of the latter two); a folder with such files at any
    depth, where "name=value" in the name of a folder is a column. ``form="lists"``: one row for each series, its values
    in a list (``forecast_batches`` says more). ``form="long"``: one row for each value, with id and time, in any order
    and of any size; DuckDB puts the rows of each series together on disk. None: as the type of ``target_col`` says.

    ``out``: a folder, or one file by its suffix (.parquet, .jsonl; .csv of the long form). Columns are those of
    ``forecast_batches`` and of ``Model.forecast_df``. A folder gets a file for every part: ``part_rows`` series, or one
    of ``buckets`` of ids (of the long form). Parts are there whole or not at all. The same call again computes the parts
    that are missing, and then the bytes are those of a run without interruption; ``resume=False`` begins anew. Where
    ``_SUCCESS`` is, all is there.

    ``shard="2/7"``: of seven processes, anywhere, that write into one folder this one is the third; each computes its
    own parts, and together they leave the files that one process leaves.

    ``n_windows=``, ``step_size=``: a cross-validation (``forecast_batches``, ``Model.cross_validation``).

    ``freq``: the step between times of the long form; None: as in the
    longest of the series of the first ten rows. ``memory_mb``: what DuckDB may
    use. ``progress``: called some times a second with ``Progress``; returning False stops. ``device="cuda:all"``: all
    GPUs share the work. Other options are those of ``forecast_batches``.

    Raises UsageError ``output_exists``, ``other_output``, ``invalid_shard``, ``missing_column``; and what
    ``Model.forecast`` raises, unless ``on_error="null"``.
    """
    split = parse_shard(shard)
    plan = plan_of(
        task_of(h, **options), source, out, form=form, format=format, out_format=out_format, part_rows=part_rows, buckets=buckets,
        shards=split[1],
    )  # fmt: skip
    models = plan.task.models()
    parts = plan.parts(of_models(plan.task, models), split, resume)
    stop, meter = Stop(), Meter(progress)
    if plan.form == "lists":
        meter.total = plan.total() if split[1] == 1 else None
        workers = [_list_worker(plan.task, model, stop, meter) for model in lanes(models)]
        sources = shared(_list_items(plan, parts, meter), readers(len(workers)))
    else:
        sources = [_long_items(plan, parts, meter, memory_mb)]
        workers = [_long_worker(plan.task, model, stop, meter) for model in lanes(models)]

    def write(done: tuple[str, Any]) -> str:
        plan.write(*done)
        return done[0]

    meter.begin()
    computed = pipeline(sources[0], workers, beside=sources[1:], ordered=False, ahead=len(workers), stop=stop)
    # One thread writes about twice what a GPU computes.
    for name in pipeline(computed, [write] * len(models), ordered=False, stop=stop):
        meter.wrote(name)
        if plan.form == "long":
            _grouping.forget(plan.work_folder(split), int(name.rsplit("-", 1)[1]))
    complete = plan.finish(parts, fspath(source))
    meter.end()
    return meter.result(plan.target, complete)


def _list_items(plan: Plan, parts: Parts, meter: Meter) -> Iterator[Iterator[tuple[str, Any]]]:
    """Parts that are to do, apart for each row group: those of which no part is are not read."""
    count = 0
    for file in plan.files:
        for group, rows in enumerate(groups_of(file)):
            first = file.number
            if rows >= 0:
                first, count = count, count + -(-rows // plan.part_rows)
                numbers = range(first, count)
                if not any(parts.mine(n) and not parts.there(parts.name(file.number, group, n - first)) for n in numbers):
                    meter.skip(rows if parts.shard[1] == 1 else 0)
                    continue
            yield _pieces(plan, file, group, first, parts, meter)
        file.metadata = None  # of many files it would add up


def _pieces(plan: Plan, file: File, group: int, first: int, parts: Parts, meter: Meter) -> Iterator[tuple[str, Any]]:
    """Parts of a row group, the first of which has the number ``first``."""
    batches = batches_of(file, plan.columns, plan.part_rows, group)
    for piece, batch in enumerate(sized(module("pyarrow"), batches, plan.part_rows)):
        name = parts.name(file.number, group, piece)
        if not parts.mine(first + piece):
            continue
        if parts.there(name):
            meter.skip(batch.num_rows)
            continue
        yield name, batch


def _list_worker(task: Task, model: Model, stop: Stop, meter: Meter) -> Any:
    return lambda item: (item[0], forecast_batch(task, model, item[1], stop, meter.advance))


def _long_items(plan: Plan, parts: Parts, meter: Meter, memory_mb: int) -> Iterator[tuple[str, Any]]:
    mine = [bucket for bucket in range(plan.buckets) if parts.mine(bucket)]
    todo = [bucket for bucket in mine if not parts.there(parts.name(bucket))]
    meter.parts = (len(mine) - len(todo), len(mine))
    if not todo:
        return
    work = plan.work_folder(parts.shard)
    _grouping.partition(plan.task, plan.files, work, plan.buckets, parts, memory_mb, None)
    for bucket, table in _grouping.tables(work, todo):
        yield parts.name(bucket), table


def _long_worker(task: Task, model: Model, stop: Stop, meter: Meter) -> Any:
    return lambda item: (item[0], forecast_long(task, model, item[1], stop, meter.advance))
