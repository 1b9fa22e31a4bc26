# SPDX-License-Identifier: Apache-2.0
"""Tables to files, with bytes that depend on the table alone."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

from ._parts import write_atomically
from ._tables import module


def write_table(table: Any, path: Path, format: str, header: bool = True) -> None:
    """A ``pyarrow.Table`` or record batch."""
    pa = module("pyarrow")
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if format == "parquet":
        rows = max(1, table.num_rows)
        module("pyarrow.parquet").write_table(table, path, row_group_size=rows, use_dictionary=_with_dictionary(table.schema))
    elif format == "csv":
        csv = module("pyarrow.csv")
        csv.write_csv(table.combine_chunks(), path, csv.WriteOptions(include_header=header))
    else:
        with open(path, "w", encoding="utf-8") as file:
            for row in table.to_pylist():
                file.write(json.dumps({name: _plain(value) for name, value in row.items()}, default=str) + "\n")


def _with_dictionary(schema: Any) -> Any:
    """Columns without floating-point numbers: hardly two of those are equal, and a dictionary of them is built in vain."""
    types = module("pyarrow").types
    inside = {field.name: field.type.value_type if types.is_list(field.type) else field.type for field in schema}
    return [name for name, kind in inside.items() if not types.is_floating(kind)] or False


def _plain(value: Any) -> Any:
    """JSON has no NaN."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def merge(parts: list[Path], to: Path, format: str) -> None:
    """One file of all parts, in their order, one after another in memory."""

    def parquet(path: Path) -> None:
        pq = module("pyarrow.parquet")
        schema = pq.read_schema(parts[0])
        with pq.ParquetWriter(path, schema, use_dictionary=_with_dictionary(schema)) as writer:
            for part in parts:
                table = pq.ParquetFile(part).read()
                writer.write_table(table, row_group_size=max(1, table.num_rows))

    def text(path: Path) -> None:
        with open(path, "wb") as file:
            for number, part in enumerate(parts):
                with open(part, "rb") as source:
                    if format == "csv" and number > 0:
                        source.readline()
                    shutil.copyfileobj(source, file)

    write_atomically(to, parquet if format == "parquet" else text)
