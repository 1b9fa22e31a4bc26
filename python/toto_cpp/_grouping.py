# SPDX-License-Identifier: Apache-2.0
"""Long tables that are larger than memory: DuckDB puts the rows of each series together, bucket by bucket."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._parts import Parts, write_text_atomically
from ._sources import COMPRESSED, File
from ._tables import module
from ._task import Task

_BUCKET_BYTES = 8 << 20  # of the files: some hundred thousand rows, 30 MB in memory
_MOST_BUCKETS = 1024


def buckets_for(files: list[File]) -> int:
    """How many parts the rows go into: of the sizes of the files alone, so that every shard finds the same."""
    size = sum(file.path.stat().st_size * (4 if file.path.suffix in COMPRESSED else 1) for file in files)
    return min(_MOST_BUCKETS, max(1, -(-size // _BUCKET_BYTES)))


def _quoted(text: Any) -> str:
    return "'" + str(text).replace("'", "''") + "'"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _scan(files: list[File]) -> str:
    paths = "[" + ", ".join(_quoted(file.path) for file in files) + "]"
    keys = "hive_partitioning = " + ("true" if any(file.keys for file in files) else "false")
    if files[0].format == "parquet":
        return f"read_parquet({paths}, {keys})"
    if files[0].format == "csv":
        return f"read_csv({paths}, {keys})"
    return f"read_json({paths}, format = 'newline_delimited', {keys})"


def _quiet() -> Any:
    con = module("duckdb").connect()
    con.execute("SET enable_progress_bar = false")  # it would write to standard output
    con.execute("SET TimeZone = 'UTC'")
    return con


def connect(work: Path, memory_mb: int, threads: int | None) -> Any:
    con = _quiet()
    con.execute(f"SET memory_limit = '{memory_mb}MB'")
    con.execute(f"SET temp_directory = {_quoted(work / 'spill')}")
    con.execute("SET preserve_insertion_order = false")
    if threads:
        con.execute(f"SET threads = {threads}")
    return con


def some_series(files: list[File], task: Task) -> Any:
    """All rows of the series that the first ten rows of the first file are of: the step between times is taken from
    them."""
    with _quiet() as con:
        names = [_name(str(name)) for name in (task.id_col, task.time_col, task.target_col)]
        first = f"SELECT {names[0]} FROM {_scan(files[:1])} LIMIT 10"
        return con.sql(f"SELECT {', '.join(names)} FROM {_scan(files)} WHERE {names[0]} IN ({first})").to_arrow_table()


def partition(task: Task, files: list[File], work: Path, buckets: int, parts: Parts, memory_mb: int, threads: int | None) -> None:
    """Writes the rows of the buckets of this shard that are still to do below ``work``, each bucket into a folder of its
    own. A series is in one bucket, by the hash of its id. Rows that an earlier run put together are used, unless those of a part
    that is to do again are gone: its file was there, and was deleted."""
    done = work / "_partitioned"
    if done.exists():
        had = set(done.read_text().split())
        todo = [bucket for bucket in range(buckets) if parts.mine(bucket) and not parts.there(parts.name(bucket))]
        if had and all(str(bucket) not in had or _rows(work, bucket).is_dir() for bucket in todo):
            return
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    index, count = parts.shard
    chosen = ", ".join(_name(name) for name in (task.id_col, task.time_col, task.target_col) if name)
    bucket = f"(hash(CAST({_name(str(task.id_col))} AS VARCHAR)) % {buckets})::INTEGER"
    with connect(work, memory_mb, threads) as con:
        # Few files are open at a time; a bucket may then have several.
        con.execute("SET partitioned_write_max_open_files = 64")
        con.execute(
            f"COPY (SELECT {chosen}, {bucket} AS __bucket FROM {_scan(files)} WHERE {bucket} % {count} = {index}) "
            f"TO {_quoted(work / 'rows')} (FORMAT parquet, PARTITION_BY (__bucket), COMPRESSION snappy)"
        )
    shutil.rmtree(work / "spill", ignore_errors=True)
    names = sorted(path.name.split("=", 1)[1] for path in (work / "rows").glob("__bucket=*"))
    write_text_atomically(done, " ".join(names))


def _rows(work: Path, bucket: int) -> Path:
    return work / "rows" / f"__bucket={bucket}"


def tables(work: Path, wanted: list[int]) -> Iterator[tuple[int, Any]]:
    """(bucket, table) of each bucket that has rows."""
    pq = module("pyarrow.parquet")
    pa = module("pyarrow")
    for bucket in wanted:
        folder = _rows(work, bucket)
        paths = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
        if paths:
            yield bucket, pa.concat_tables([pq.ParquetFile(path).read() for path in paths])


def forget(work: Path, bucket: int) -> None:
    """Its rows are gone all at once: half of them would pass for all."""
    folder = _rows(work, bucket)
    if folder.is_dir():
        gone = work / f"gone-{bucket}"
        os.replace(folder, gone)
        shutil.rmtree(gone, ignore_errors=True)


def work_folder(out: Path, shard: tuple[int, int]) -> Path:
    return out / f"_rows-{shard[0]}-of-{shard[1]}"


def remove(work: Path) -> None:
    if os.path.isdir(work):
        shutil.rmtree(work)
