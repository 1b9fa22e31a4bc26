# SPDX-License-Identifier: Apache-2.0
"""Files of series, one in each row: Parquet, Arrow (IPC) and JSON lines, alone, in folders, partitioned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._errors import usage
from ._parts import missing
from ._tables import module

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".csv": "csv", ".tsv": "csv",
    ".jsonl": "json", ".ndjson": "json", ".json": "json",
}  # fmt: skip
COMPRESSED = (".gz", ".zst", ".bz2")


def format_of(path: Path) -> str | None:
    suffixes = [one.lower() for one in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return FORMATS.get(suffixes[-1]) if suffixes else None


@dataclass
class File:
    """``keys``: what the names of its folders say, as in "region=eu/part.parquet"."""

    number: int
    path: Path
    format: str
    keys: dict[str, str] = field(default_factory=dict)
    metadata: Any = field(default=None, repr=False, compare=False)  #: of Parquet, once it has been read


def files_of(given: str | Path, format: str | None = None) -> list[File]:
    """A file, or those of a folder and its folders by name; what begins with "_" or "." is left out."""
    root = Path(given)
    if not root.exists():
        raise missing(str(root))
    paths = [root]
    if root.is_dir():
        paths = sorted(path for path in root.rglob("*") if path.is_file() and not _hidden(path.relative_to(root)))
    found: list[File] = []
    for path in paths:
        kind = format or format_of(path)
        if kind is None and root.is_dir():
            continue
        if kind not in set(FORMATS.values()):
            raise usage("unsupported_format", f"expected {', '.join(FORMATS)}", str(path), "name the format: format=")
        keys = dict(part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part)
        found.append(File(len(found), path, str(kind), keys))
    if not found:
        raise usage("no_input", f"the folder holds no {', '.join(FORMATS)}", str(root))
    if len({file.format for file in found}) > 1:
        raise usage("unsupported_format", "the folder holds files of several formats", str(root), "name one: format=")
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def groups_of(file: File) -> list[int]:
    """Rows of each row group; files without row groups are one, whose rows are not known (-1)."""
    if file.format != "parquet":
        return [-1]
    found = _metadata(file)
    return [found.row_group(group).num_rows for group in range(found.num_row_groups)]


def batches_of(file: File, columns: list[str] | None, rows: int, group: int) -> Iterator[Any]:
    """Record batches of a row group."""
    pa = module("pyarrow")
    inside = None if columns is None else [name for name in columns if name not in file.keys]
    for batch in _read(pa, file, inside, rows, group):
        for name, value in file.keys.items():
            if columns is None or name in columns:
                batch = batch.append_column(name, pa.repeat(pa.scalar(value), batch.num_rows))
        lacking = [name for name in columns or () if name not in batch.schema.names]
        if lacking:
            raise usage("missing_column", f"no column {lacking[0]!r}; there are {', '.join(batch.schema.names)}", str(file.path))
        yield batch if columns is None else batch.select(columns)


def _metadata(file: File) -> Any:
    found = file.metadata
    if found is None:
        found = file.metadata = module("pyarrow.parquet").read_metadata(file.path)
    return found


def _read(pa: Any, file: File, columns: list[str] | None, rows: int, group: int) -> Iterator[Any]:
    if file.format == "parquet":
        opened = module("pyarrow.parquet").ParquetFile(file.path, metadata=_metadata(file), buffer_size=1 << 20, pre_buffer=False)
        try:
            # Its threads would take the cores from the forecasts.
            yield from opened.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False)
        finally:
            opened.close()
        return
    if file.format == "arrow":
        with pa.memory_map(str(file.path)) as source:
            try:
                reader = pa.ipc.open_file(source)
                batches: Any = (reader.get_batch(i) for i in range(reader.num_record_batches))
            except pa.ArrowInvalid:
                source.seek(0)
                batches = pa.ipc.open_stream(source)
            yield from batches
        return
    if file.format == "csv":
        raise usage("invalid_input", "rows of a CSV file are no series", str(file.path), 'say that it is long: form="long"')
    json = module("pyarrow.json")
    options = json.ReadOptions(use_threads=False, block_size=1 << 24)
    with pa.input_stream(str(file.path), compression="detect") as stream:
        yield from json.open_json(stream, read_options=options)


def schema_of_file(file: File) -> Any:
    """Names and types of its columns, with those of its folders."""
    pa = module("pyarrow")
    if file.format == "parquet":
        schema = module("pyarrow.parquet").read_schema(file.path)
    elif file.format == "csv":
        csv = module("pyarrow.csv")
        parse = csv.ParseOptions(delimiter="\t" if ".tsv" in file.path.name else ",")
        with pa.input_stream(str(file.path), compression="detect") as stream:
            schema = csv.open_csv(stream, parse_options=parse).schema
    else:
        first = next(_read(pa, file, None, 1024, 0), None)
        if first is None:
            raise usage("no_input", "the file is empty", str(file.path))
        schema = first.schema
    for name in file.keys:
        schema = schema.append(pa.field(name, pa.string()))
    return schema


def rows_of(file: File) -> int | None:
    """Rows in all, where the file says so."""
    if file.format != "parquet":
        return None
    return int(_metadata(file).num_rows)
