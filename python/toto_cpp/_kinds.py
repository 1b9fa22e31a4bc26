# SPDX-License-Identifier: Apache-2.0
"""Data frames of pandas, polars and Arrow, read into NumPy columns and written in the same kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import usage
from ._tables import module


class Frame:
    """A data frame by its columns. ``kind`` is one of the subclasses below."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def columns(self) -> list[str]:
        raise NotImplementedError

    def column(self, name: str) -> Any:
        raise NotImplementedError

    def floats(self, name: str) -> NDArray[Any]:
        """A column of numbers as float64, or float32 where it is that itself. Missing values are NaN."""
        raise NotImplementedError

    def runs(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], Any]:
        """Rows with one id that stand together are a run: the first row of each run, the number of its id, and the ids
        in the order in which rows name them."""
        raise NotImplementedError

    def times(self, name: str) -> tuple[NDArray[Any], Any]:
        """Timestamps on the clock of UTC as datetime64, or whole numbers; and the zone, None without one."""
        raise NotImplementedError

    def local(self, times: NDArray[Any], zone: Any) -> NDArray[Any]:
        """On the wall of the zone."""
        raise NotImplementedError

    def take(self, values: Any, rows: NDArray[np.int64]) -> Any:
        """Elements of a column of this kind."""
        raise NotImplementedError

    def words(self, values: list[str], rows: NDArray[np.int64]) -> Any:
        """A column of text: ``values[rows]``."""
        return np.array(values, object)[rows].tolist()

    def build(self, columns: dict[str, Any]) -> Any:
        """A frame of this kind."""
        raise NotImplementedError

    def stamp(self, times: NDArray[Any], zone: Any, on_the_wall: bool, like: str) -> Any:
        """A column of timestamps as the column ``like`` has them."""
        raise NotImplementedError

    def check(self, names: list[str], where: str) -> None:
        columns = self.columns
        for name in names:
            if name not in columns:
                listed = ", ".join(map(str, columns))
                raise usage("missing_column", f"no column {name!r}; there are {listed}", where, self.instead(name))
            if columns.count(name) > 1:
                raise usage("duplicate_column", f"{columns.count(name)} columns {name!r}", where, "give each a name of its own")

    def instead(self, name: str) -> str:
        """What to do where there is no such column."""
        return ""


def _begins(changed: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """The first row of each run; ``changed`` [count - 1]: the next row has another id."""
    return np.r_[0, np.flatnonzero(changed) + 1] if count else np.zeros(0, np.int64)


def _numbered(codes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers by first appearance, and where each appears first."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return position[inverse], first[order]


class PandasFrame(Frame):
    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self.pd = module("pandas")

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def column(self, name: str) -> Any:
        return self.frame[name]

    def instead(self, name: str) -> str:
        return "it is in the index: df.reset_index()" if name in self.frame.index.names else ""

    def floats(self, name: str) -> NDArray[Any]:
        try:
            column = self.frame[name]
            if getattr(column.dtype, "kind", "") in ("M", "m", "c"):
                raise TypeError(f"elements of type {column.dtype}")
            kind = np.float32 if str(column.dtype).lower().startswith("float32") else np.float64
            found: NDArray[Any] = column.to_numpy(dtype=kind, na_value=np.nan)
            return found
        except (TypeError, ValueError) as error:
            raise usage("not_a_number", f"expected numbers: {error}", f"column {name!r}") from None

    def runs(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], Any]:
        column = self.frame[name]
        codes, labels = self.pd.factorize(column)
        if len(codes) and codes.min() < 0:
            raise usage("missing_id", f"row {int(np.argmin(codes))} has no id", f"column {name!r}")
        starts = _begins(codes[1:] != codes[:-1], len(codes))
        return starts, codes[starts].astype(np.int64), self.pd.Series(labels, dtype=column.dtype).array

    def times(self, name: str) -> tuple[NDArray[Any], Any]:
        column = self.frame[name]
        if isinstance(column.dtype, self.pd.PeriodDtype):
            column = column.dt.to_timestamp()
        elif str(column.dtype).startswith(("date32", "date64")):  # of Arrow
            column = column.astype("datetime64[s]")
        elif column.dtype.kind in "OUT":
            column = self.pd.to_datetime(column)
        zone = getattr(getattr(column, "dt", None), "tz", None)
        if zone is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return column.to_numpy(), zone

    def local(self, times: NDArray[Any], zone: Any) -> NDArray[Any]:
        found: NDArray[Any] = self.pd.DatetimeIndex(times).tz_localize("UTC").tz_convert(zone).tz_localize(None).to_numpy()
        return found

    def stamp(self, times: NDArray[Any], zone: Any, on_the_wall: bool, like: str) -> Any:
        dtype = self.frame[like].dtype
        if isinstance(dtype, self.pd.PeriodDtype):
            return self.pd.DatetimeIndex(times).to_period(dtype.freq)
        if zone is None:
            return times
        index = self.pd.DatetimeIndex(times)
        if on_the_wall:
            return index.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")
        return index.tz_localize("UTC").tz_convert(zone)

    def take(self, values: Any, rows: NDArray[np.int64]) -> Any:
        return values.take(rows)

    def build(self, columns: dict[str, Any]) -> Any:
        return self.pd.DataFrame(columns)


class PolarsFrame(Frame):
    def __init__(self, frame: Any) -> None:
        self.pl = module("polars")
        super().__init__(frame.collect() if isinstance(frame, self.pl.LazyFrame) else frame)

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def column(self, name: str) -> Any:
        return self.frame[name]

    def floats(self, name: str) -> NDArray[Any]:
        try:
            column = self.frame[name]
            kind = self.pl.Float32 if column.dtype == self.pl.Float32 else self.pl.Float64
            found: NDArray[Any] = column.cast(kind).to_numpy()
            return found
        except self.pl.exceptions.PolarsError as error:
            raise usage("not_a_number", f"expected numbers: {str(error).splitlines()[0]}", f"column {name!r}") from None

    def runs(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], Any]:
        column = self.frame[name]
        if column.null_count():
            raise usage("missing_id", f"{column.null_count()} rows have no id", f"column {name!r}")
        starts = _begins((column.slice(1) != column.slice(0, max(0, len(column) - 1))).to_numpy(), len(column))
        labels = column.gather(starts)
        if labels.n_unique() == len(labels):  # the rows of each series stand together
            return starts, np.arange(len(starts)), labels
        numbers, first = _numbered(labels.rank("dense").to_numpy())
        return starts, numbers, labels.gather(first)

    def times(self, name: str) -> tuple[NDArray[Any], Any]:
        column = self.frame[name]
        if column.dtype == self.pl.String:
            column = column.str.to_datetime()
        return column.to_numpy(), getattr(column.dtype, "time_zone", None)

    def local(self, times: NDArray[Any], zone: Any) -> NDArray[Any]:
        series = self.pl.Series(times).dt.replace_time_zone("UTC").dt.convert_time_zone(zone).dt.replace_time_zone(None)
        found: NDArray[Any] = series.to_numpy()
        return found

    def stamp(self, times: NDArray[Any], zone: Any, on_the_wall: bool, like: str) -> Any:
        column = self.pl.Series(times)
        if zone is not None and on_the_wall:
            column = column.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        elif zone is not None:
            column = column.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        dtype = self.frame[like].dtype
        grown = dtype.is_integer() and column.dtype != dtype  # beyond the largest number of the type
        return column if grown or dtype == self.pl.String else column.cast(dtype)

    def take(self, values: Any, rows: NDArray[np.int64]) -> Any:
        return values.gather(rows)

    def words(self, values: list[str], rows: NDArray[np.int64]) -> Any:
        return self.pl.Series(values, dtype=self.pl.String).gather(rows)

    def build(self, columns: dict[str, Any]) -> Any:
        return self.pl.DataFrame(columns)


class ArrowFrame(Frame):
    def __init__(self, frame: Any) -> None:
        self.pa = module("pyarrow")
        self.pc = module("pyarrow.compute")
        table = frame if isinstance(frame, self.pa.Table) else self.pa.table(frame)
        super().__init__(table)

    @property
    def columns(self) -> list[str]:
        return list(self.frame.column_names)

    def column(self, name: str) -> Any:
        return self.frame.column(name).combine_chunks()

    def floats(self, name: str) -> NDArray[Any]:
        try:
            column = self.column(name)
            kind = self.pa.float32() if column.type == self.pa.float32() else self.pa.float64()
            found: NDArray[Any] = column.cast(kind, safe=False).to_numpy(zero_copy_only=False)
            return found
        except self.pa.ArrowException as error:
            raise usage("not_a_number", f"expected numbers: {str(error).splitlines()[0]}", f"column {name!r}") from None

    def runs(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], Any]:
        column = self.column(name)
        if column.null_count:
            raise usage("missing_id", f"{column.null_count} rows have no id", f"column {name!r}")
        encoded = self._plain(column)
        if not self.pa.types.is_dictionary(column.type):
            encoded = encoded.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        starts = _begins(codes[1:] != codes[:-1], len(codes))
        numbers, first = _numbered(codes[starts])
        return starts, numbers, self.take(column, starts[first])

    def _plain(self, column: Any) -> Any:
        """Text of a type that elements can be taken of."""
        if self.pa.types.is_string_view(column.type):
            return column.cast(self.pa.large_string())
        return column

    def times(self, name: str) -> tuple[NDArray[Any], Any]:
        column = self.column(name)
        if self.pa.types.is_string(column.type) or self.pa.types.is_large_string(column.type):
            column = column.cast(self.pa.timestamp("us"))
        return column.to_numpy(zero_copy_only=False), getattr(column.type, "tz", None)

    def local(self, times: NDArray[Any], zone: Any) -> NDArray[Any]:
        stamped = self.pa.array(times).cast(self.pa.timestamp(np.datetime_data(times.dtype)[0], zone))
        found: NDArray[Any] = self.pc.local_timestamp(stamped).to_numpy(zero_copy_only=False)
        return found

    def stamp(self, times: NDArray[Any], zone: Any, on_the_wall: bool, like: str) -> Any:
        column = self.pa.array(times)
        if zone is not None and on_the_wall:
            column = self.pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="latest")
        wanted = self.frame.schema.field(like).type
        is_text = self.pa.types.is_string(wanted) or self.pa.types.is_large_string(wanted)
        grown = self.pa.types.is_integer(wanted) and column.type != wanted  # beyond the largest number of the type
        return column if grown or is_text else column.cast(wanted, safe=False)

    def take(self, values: Any, rows: NDArray[np.int64]) -> Any:
        return self._plain(values).take(self.pa.array(rows)).cast(values.type)

    def words(self, values: list[str], rows: NDArray[np.int64]) -> Any:
        return self.pa.array(values, self.pa.string()).take(self.pa.array(rows))

    def build(self, columns: dict[str, Any]) -> Any:
        return self.pa.table(columns)


def is_distributed(given: Any) -> bool:
    """Whether it is a frame of Spark, Dask or Ray: toto_cpp.fugue forecasts those."""
    return type(given).__module__.split(".")[0] in ("pyspark", "dask", "dask_expr", "ray")


def frame_of(given: Any, where: str = "df") -> Frame:
    """Reads what ``given`` is."""
    home = type(given).__module__.split(".")[0]
    is_column = home in ("pandas", "polars") and type(given).__name__ in ("Series", "Index")
    if home == "pandas" and not is_column:
        return PandasFrame(given)
    if home == "polars" and not is_column:
        return PolarsFrame(given)
    if not is_column and (home == "pyarrow" or hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")):
        return ArrowFrame(given)
    raise usage(
        "invalid_input", f"expected a data frame, found {type(given).__name__}", where,
        "give a frame of pandas, polars or pyarrow, or anything with __arrow_c_stream__",
    )  # fmt: skip
