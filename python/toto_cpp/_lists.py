# SPDX-License-Identifier: Apache-2.0
"""Many series without an object of Python for each: their values in one array, their names in one column."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import usage
from ._tables import module


@dataclass(frozen=True)
class Lists:
    """Series i is ``values[begins[i] : begins[i] + lengths[i]]``; NaN means missing."""

    values: NDArray[Any]  #: float32 or float64, in C order
    begins: NDArray[np.int64]  #: [N]
    lengths: NDArray[np.int64]  #: [N]

    @classmethod
    def one_after_another(cls, values: NDArray[Any], lengths: NDArray[np.int64]) -> Lists:
        return cls(values, np.cumsum(lengths) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self.values[begin : begin + length] for begin, length in zip(self.begins.tolist(), self.lengths.tolist()))


class Names:
    """Ids as text. ``data``: what the module takes, a list, or the ends and the bytes of a column of Arrow."""

    def __init__(self, column: Any) -> None:
        """``column``: a list of str, or a ``pyarrow.LargeStringArray``."""
        self.column = column
        self.data: Any = column if isinstance(column, list) else _buffers(column)

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, i: int) -> str:
        return str(self.column[int(i)])

    def are_different(self) -> bool:
        if isinstance(self.column, list):
            return len(set(self.column)) == len(self.column)
        return bool(module("pyarrow.compute").count_distinct(self.column, mode="all").as_py() == len(self.column))

    def of_windows(self, cuts: NDArray[np.int64]) -> Names:
        """"name@cut" for the cuts [N, windows] of each."""
        if isinstance(self.column, list):
            return Names([f"{name}@{cut}" for name, several in zip(self.column, cuts.tolist()) for cut in several])
        pa, pc = module("pyarrow"), module("pyarrow.compute")
        text = pa.large_string()
        repeated = self.column.take(pa.array(np.repeat(np.arange(len(self)), cuts.shape[1])))
        return Names(pc.binary_join_element_wise(repeated, pa.array(cuts.ravel()).cast(text), pa.scalar("@", text)))


def _buffers(column: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    _, ends, data = column.buffers()
    if not len(column):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    found = np.frombuffer(ends, np.int64)[column.offset : column.offset + len(column) + 1]
    return found, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def names_of(pa: Any, column: Any, where: str) -> Names:
    """The ids of a ``pyarrow.Array``, as ``str`` writes them."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        raise usage("missing_id", f"{column.null_count} rows have no id", f"column {where!r}")
    kind, types = column.type, pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_integer(kind):
        return Names(column.cast(pa.large_string()))
    return Names([str(one) for one in column.to_pylist()])


def lists_of(pa: Any, column: Any) -> Lists:
    """The lists of a column as float32, as which results are written too; a null is a list of nothing."""
    pc = module("pyarrow.compute")
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    values = column.flatten()
    try:
        if values.type != pa.float32():
            values = values.cast(pa.float32(), safe=False)
    except pa.ArrowException as error:
        raise usage("not_a_number", f"expected numbers: {str(error).splitlines()[0]}", "the lists") from None
    return Lists.one_after_another(np.ascontiguousarray(values.to_numpy(zero_copy_only=False)), lengths)


def content_names(series: Iterable[NDArray[Any]]) -> list[str]:
    """The names of series that have none: of their values, so that they are the same in every batch."""
    return [hashlib.blake2b(np.ascontiguousarray(one, "<f4").tobytes(), digest_size=16).hexdigest() for one in series]


def rounds_of(names: Names) -> list[NDArray[np.int64]]:
    """Numbers of series, so that no round has a name twice."""
    if names.are_different():
        return [np.arange(len(names))]
    seen: dict[str, int] = {}
    rounds: list[list[int]] = []
    for i in range(len(names)):
        which = seen.get(names[i], 0)
        seen[names[i]] = which + 1
        if which == len(rounds):
            rounds.append([])
        rounds[which].append(i)
    return [np.array(one, np.int64) for one in rounds]


def same_ones(names: Sequence[str]) -> dict[int, list[int]]:
    """Of series named by their values: the first of each, with all that equal it."""
    first: dict[str, int] = {}
    copies: dict[int, list[int]] = {}
    for i, name in enumerate(names):
        copies.setdefault(first.setdefault(name, i), []).append(i)
    return copies
