# SPDX-License-Identifier: Apache-2.0
"""Files in, files out, in constant memory: any number of series, resumed where it was interrupted, shared out between
machines by shards."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from . import __version__, _calendar, _grouping
from ._errors import usage
from ._kinds import ArrowFrame
from ._long import forecast_long
from ._panel import read
from ._parts import Parts, fingerprint, parse_shard, write_atomically
from ._pipeline import Stop, pipeline, shared
from ._progress import Meter, Progress, Reporter, Result
from ._sources import FORMATS, File, batches_of, files_of, format_of, groups_of, rows_of, schema_of_file
from ._tables import module
from ._task import Task, lanes, task_of
from ._writing import merge, write_table
from .batches import check, forecast_batch, is_list, sized
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
    task, split = task_of(h, **options), parse_shard(shard)
    files = files_of(fspath(source), format)
    schema = schema_of_file(files[0])
    if task.target_col not in schema.names:
        raise usage("missing_column", f"no column {task.target_col!r}; there are {', '.join(schema.names)}", str(files[0].path))
    listed = is_list(module("pyarrow"), schema.field(task.target_col).type)
    form = form or ("lists" if listed else "long")
    if part_rows < 1 or (buckets is not None and buckets < 1):
        raise usage("invalid_option", "expected part_rows and buckets of at least 1", "forecast_dataset")
    target = Path(out)
    kind = out_format or format_of(target)
    single = format_of(target) is not None
    _check_output(target, kind, form, single, split, files)
    suffix = {"parquet": ".parquet", "json": ".jsonl", "csv": ".csv"}[kind or "parquet"]
    if form == "lists":
        check(task, schema, str(files[0].path))
        # What the folders of a partitioned set say stays with its rows.
        extra = [name for name in files[0].keys if name not in (task.id_col, *task.keep)]
        task = replace(task, keep=(*task.keep, *extra))
        layout: dict[str, Any] = {"part_rows": part_rows}
    else:
        if task.id_col is None:
            raise usage("missing_column", "a long table needs a column of ids", "id_col")
        task = replace(task, freq=_step(task, files))
        layout = {"buckets": buckets or _grouping.buckets_for(files)}
    models = task.models()
    folder = target.with_name(target.name + ".parts") if single else target
    parts = Parts(folder, suffix, _described(task, models, files, form, layout), split, resume)
    stop, meter = Stop(), Meter(progress)
    if form == "lists":
        meter.total = _total(files) if split[1] == 1 else None
        workers = [_list_worker(task, model, stop, meter) for model in lanes(models)]
        # A thread reads about as fast as a GPU computes, and the last row groups are read by few; on a CPU more of them would
        # take the cores from the forecasts.
        readers = 1 if len(workers) == 1 else 2 * len(workers)
        sources = shared(_list_items(task, files, parts, part_rows, meter), readers)
    else:
        sources = [_long_items(task, files, parts, layout["buckets"], meter, memory_mb)]
        workers = [_long_worker(task, model, stop, meter) for model in lanes(models)]

    def write(done: tuple[str, Any]) -> str:
        name, table = done
        write_atomically(parts.path(name), lambda path: write_table(table, path, kind or "parquet"))
        return name

    meter.begin()
    computed = pipeline(sources[0], workers, beside=sources[1:], ordered=False, ahead=len(workers), stop=stop)
    # One thread writes about twice what a GPU computes.
    for name in pipeline(computed, [write] * len(models), ordered=False, stop=stop):
        meter.wrote(name)
        if form == "long":
            _grouping.forget(_grouping.work_folder(folder, split), int(name.rsplit("-", 1)[1]))
    if form == "long":
        _grouping.remove(_grouping.work_folder(folder, split))
    complete = parts.finish()
    if single:
        if not parts.all():
            raise usage("no_input", "there is no series in it", fspath(source))
        merge(parts.all(), target, kind or "parquet")
        shutil.rmtree(folder)
    meter.end()
    return meter.result(target, complete)


def _check_output(target: Path, kind: str | None, form: str, single: bool, split: tuple[int, int], files: list[File]) -> None:
    if kind is not None and kind not in ("parquet", "json", "csv"):
        raise usage("unsupported_format", f"expected parquet, json or csv, found {kind}", str(target), f"of {', '.join(FORMATS)}")
    if kind == "csv" and form == "lists":
        raise usage("unsupported_format", "CSV has no lists", str(target), "write .parquet or .jsonl")
    if single and split[1] > 1:
        raise usage("invalid_shard", "shards write into one folder, found one file", str(target), "name a folder")
    if any(target.resolve() == file.path.resolve() or target.resolve() in file.path.resolve().parents for file in files):
        raise usage("output_exists", "the output would overwrite the input", str(target), "choose another name")


def _step(task: Task, files: list[File]) -> Any:
    """Once for all series, whichever shard or part they are in."""
    if task.freq is not None:
        return _calendar.parse(task.freq)
    rows = _grouping.some_series(files, task)
    return read(ArrowFrame(rows), str(task.id_col), task.time_col, [task.target_col], None).step


def _described(task: Task, models: list[Model], files: list[File], form: str, layout: dict[str, Any]) -> dict[str, Any]:
    """All that decides about the bytes. Of devices their kind does, not which and how many they are."""
    model, said = models[0], asdict(task)
    said["devices"] = sorted({one.settings["device"][0].split(":")[0] for one in models})
    for name in ("batch_size", "model"):
        del said[name]
    apart = ("device", "threads", "log", "memory_limit", "plan_cache_dir", "plan_cache", "max_plans", "strict_counters", "deterministic_checks")
    said["load"] = {name: value for name, value in said["load"] if name not in apart}
    if said["options"].get("seed") is None:
        said["options"]["seed"] = model.settings["seed"][0]
    weights = [fingerprint(path) for path in model.info.weight_files]
    inputs = [[file.path.name, *sorted(file.keys.items()), *fingerprint(file.path)] for file in files]
    return {"toto_cpp": __version__, "form": form, "weights": weights, "inputs": inputs, **layout, **said}


def _total(files: list[File]) -> int | None:
    rows = [rows_of(file) for file in files]
    return None if None in rows else sum(n for n in rows if n is not None)


def _list_items(task: Task, files: list[File], parts: Parts, part_rows: int, meter: Meter) -> Iterator[Iterator[tuple[str, Any]]]:
    """Parts that are to do, apart for each row group: those of which no part is are not read."""
    count = 0
    for file in files:
        for group, rows in enumerate(groups_of(file)):
            first = file.number
            if rows >= 0:
                first, count = count, count + -(-rows // part_rows)
                numbers = range(first, count)
                if not any(parts.mine(n) and not parts.there(parts.name(file.number, group, n - first)) for n in numbers):
                    meter.skip(rows if parts.shard[1] == 1 else 0)
                    continue
            yield _pieces(task, file, group, first, parts, part_rows, meter)
        file.metadata = None  # of many files it would add up


def _pieces(task: Task, file: File, group: int, first: int, parts: Parts, part_rows: int, meter: Meter) -> Iterator[tuple[str, Any]]:
    """Parts of a row group, the first of which has the number ``first``."""
    columns = [name for name in (task.id_col, task.target_col, *task.keep) if name is not None]
    batches = batches_of(file, columns, part_rows, group)
    for piece, batch in enumerate(sized(module("pyarrow"), batches, part_rows)):
        name = parts.name(file.number, group, piece)
        if not parts.mine(first + piece):
            continue
        if parts.there(name):
            meter.skip(batch.num_rows)
            continue
        yield name, batch


def _list_worker(task: Task, model: Model, stop: Stop, meter: Meter) -> Any:
    return lambda item: (item[0], forecast_batch(task, model, item[1], stop, meter.advance))


def _long_items(task: Task, files: list[File], parts: Parts, buckets: int, meter: Meter, memory_mb: int) -> Iterator[tuple[str, Any]]:
    mine = [bucket for bucket in range(buckets) if parts.mine(bucket)]
    todo = [bucket for bucket in mine if not parts.there(parts.name(bucket))]
    meter.parts = (len(mine) - len(todo), len(mine))
    if not todo:
        return
    work = _grouping.work_folder(parts.folder, parts.shard)
    _grouping.partition(task, files, work, buckets, parts, memory_mb, None)
    for bucket, table in _grouping.tables(work, todo):
        yield parts.name(bucket), table


def _long_worker(task: Task, model: Model, stop: Stop, meter: Meter) -> Any:
    return lambda item: (item[0], forecast_long(task, model, item[1], stop, meter.advance))
