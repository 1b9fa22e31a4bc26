# SPDX-License-Identifier: Apache-2.0
"""What ``forecast_dataset`` reads, how it is cut into parts and where they go: the same for every process that takes part."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from . import __version__, _calendar, _grouping
from ._errors import usage
from ._kinds import ArrowFrame
from ._panel import read
from ._parts import WHOLE, Parts, fingerprint, write_atomically
from ._sources import FORMATS, File, files_of, format_of, rows_of, schema_of_file
from ._tables import module
from ._task import Task
from ._writing import merge, write_table
from .batches import check, is_list
from .model import Model

_SUFFIXES = {"parquet": ".parquet", "json": ".jsonl", "csv": ".csv"}
#: Options of ``load`` that change no bit.
_APART = (
    "device", "threads", "log", "memory_limit", "plan_cache_dir", "plan_cache", "max_plans", "strict_counters", "deterministic_checks",
)  # fmt: skip


@dataclass
class Plan:
    task: Task
    form: str
    target: Path
    kind: str  #: of the files of parts
    part_rows: int
    buckets: int  #: of the long form
    source: Path
    files: list[File] = field(repr=False)

    @property
    def single(self) -> bool:
        """Whether the result is one file, made of the parts when all are there."""
        return format_of(self.target) is not None

    @property
    def folder(self) -> Path:
        """Where parts go."""
        return self.target.with_name(self.target.name + ".parts") if self.single else self.target

    @property
    def columns(self) -> list[str]:
        """That are read, of lists."""
        return [name for name in (self.task.id_col, self.task.target_col, *self.task.keep) if name is not None]

    def path(self, name: str) -> Path:
        """Of a part."""
        return self.folder / (name + _SUFFIXES[self.kind])

    def write(self, name: str, table: Any) -> None:
        """A part, whole or not at all."""
        write_atomically(self.path(name), lambda path: write_table(table, path, self.kind))

    def described(self, models: dict[str, Any]) -> dict[str, Any]:
        """All that decides about the bytes. ``models``: what ``of_models`` says."""
        said = asdict(self.task)
        for name in ("batch_size", "model"):
            del said[name]
        said["load"] = {name: value for name, value in said["load"] if name not in _APART}
        said["options"]["seed"] = models["seed"]
        whole = sum(file.path.stat().st_size for file in self.files) <= WHOLE
        inputs = [[file.path.name, *sorted(file.keys.items()), *fingerprint(file.path, whole)] for file in self.files]
        layout = {"part_rows": self.part_rows} if self.form == "lists" else {"buckets": self.buckets}
        of_both = {name: models[name] for name in ("devices", "weights")}
        return {"toto_cpp": __version__, "form": self.form, "inputs": inputs, **layout, **of_both, **said}

    def parts(self, models: dict[str, Any], shard: tuple[int, int], resume: bool) -> Parts:
        """The folder of the result, begun or gone on with."""
        return Parts(self.folder, _SUFFIXES[self.kind], self.described(models), shard, resume)

    def total(self) -> int | None:
        """Series of lists, where the files say how many there are."""
        rows = [rows_of(file) for file in self.files]
        return None if None in rows else sum(n for n in rows if n is not None)

    def work_folder(self, shard: tuple[int, int]) -> Path:
        """Where the rows of long series are put together."""
        return _grouping.work_folder(self.folder, shard)

    def finish(self, parts: Parts, source: str) -> bool:
        """When the parts of this process are written: whether all are there. One file is made of them where that was asked for."""
        if self.form == "long":
            _grouping.remove(self.work_folder(parts.shard))
        complete = parts.finish()
        if self.single:
            if not parts.all():
                raise usage("no_input", "there is no series in it", source)
            merge(parts.all(), self.target, self.kind)
            shutil.rmtree(self.folder)
        return complete


def plan_of(
    task: Task, source: str | PathLike[str], out: str | PathLike[str], *, form: str | None, format: str | None, out_format: str | None,
    part_rows: int, buckets: int | None, shards: int,
) -> Plan:  # fmt: skip
    """Looks at the files. Arguments are those of ``forecast_dataset``."""
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
    _check_output(target, kind, form, format_of(target) is not None, shards, files)
    if form == "lists":
        check(task, schema, str(files[0].path))
        # What the folders of a partitioned set say stays with its rows.
        extra = [name for name in files[0].keys if name not in (task.id_col, *task.keep)]
        task = replace(task, keep=(*task.keep, *extra))
    else:
        if task.id_col is None:
            raise usage("missing_column", "a long table needs a column of ids", "id_col")
        task = replace(task, freq=_step(task, files))
        buckets = buckets or _grouping.buckets_for(files)
    return Plan(task, form, target, kind or "parquet", part_rows, buckets or 0, Path(source), files)


def of_models(task: Task, models: list[Model]) -> dict[str, Any]:
    """What of the models decides about the bytes. Of devices their kind does, not which and how many they are."""
    model, seed = models[0], task.options.get("seed")
    return {
        "devices": sorted({one.settings["device"][0].split(":")[0] for one in models}),
        "weights": [fingerprint(path) for path in model.info.weight_files],
        "defaults": [model.info.default_paths, model.info.default_tails],
        "seed": model.settings["seed"][0] if seed is None else seed,
    }


def _check_output(target: Path, kind: str | None, form: str, single: bool, shards: int, files: list[File]) -> None:
    if kind is not None and kind not in ("parquet", "json", "csv"):
        raise usage("unsupported_format", f"expected parquet, json or csv, found {kind}", str(target), f"of {', '.join(FORMATS)}")
    if kind == "csv" and form == "lists":
        raise usage("unsupported_format", "CSV has no lists", str(target), "write .parquet or .jsonl")
    if single and shards > 1:
        raise usage("invalid_shard", "shards write into one folder, found one file", str(target), "name a folder")
    if any(target.resolve() == file.path.resolve() or target.resolve() in file.path.resolve().parents for file in files):
        raise usage("output_exists", "the output would overwrite the input", str(target), "choose another name")


def _step(task: Task, files: list[File]) -> Any:
    """Once for all series, whichever shard or part they are in."""
    if task.freq is not None:
        return _calendar.parse(task.freq)
    rows = _grouping.some_series(files, task)
    return read(ArrowFrame(rows), str(task.id_col), task.time_col, [task.target_col], None).step
