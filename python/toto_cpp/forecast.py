# SPDX-License-Identifier: Apache-2.0
"""What a call of ``Model.forecast`` returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ._errors import usage

if TYPE_CHECKING:
    from ._core import Result

Floats = NDArray[np.floating[Any]]  # float32, or float64 where a series of the call has a value offset


def _interpolated(levels: Sequence[float], quantiles: Floats, level: float) -> Floats:
    """The quantile at ``level``, linear between the levels that were computed."""
    if not levels[0] <= level <= levels[-1]:
        raise usage(
            "invalid_quantile",
            f"expected a level from {levels[0]} to {levels[-1]}, found {level}",
            "level",
            "ask for it: forecast(..., quantiles=[...])",
        )
    above = int(np.searchsorted(levels, level))
    if levels[above] == level:
        exact: Floats = quantiles[above]
        return exact
    part = (level - levels[above - 1]) / (levels[above] - levels[above - 1])
    between: Floats = quantiles[above - 1] + quantiles.dtype.type(part) * (quantiles[above] - quantiles[above - 1])
    return between


def _checked(level: Any) -> Any:
    """Levels of trajectories."""
    if not ((np.asarray(level) >= 0) & (np.asarray(level) <= 1)).all():
        raise usage("invalid_quantile", f"expected a level between 0 and 1, found {level}", "level")
    return level


def _of_samples(samples: Floats, level: float) -> Floats:
    found: Floats = np.quantile(samples, _checked(level), axis=0).astype(samples.dtype)
    return found


class _Kept:
    """A result that was pickled: the same attributes."""

    _ARRAYS = ("mean", "median", "std", "quantiles", "samples")
    _OTHERS = ("count", "rank", "univariate", "horizon", "num_samples", "ids", "offsets", "exact_steps", "levels")

    def __init__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def parameters(self, index: int) -> Any:
        return self.__dict__["kept_parameters"][index]


def _state_of(result: Any) -> dict[str, Any]:
    state = {name: getattr(result, name) for name in _Kept._ARRAYS + _Kept._OTHERS}
    state["kept_parameters"] = [result.parameters(i) for i in range(result.count)]
    return state


def _restore(state: dict[str, Any], index: int | None, shape: tuple[int, ...]) -> Any:
    result: Any = _Kept(state)
    return ForecastBatch(result) if index is None else Forecast(result, index, shape)


class _Arrays:
    """Views of the memory of a result: rows [first, last) of each array, in ``shape``."""

    __slots__ = ("_result", "_first", "_last", "_shape")

    def __init__(self, result: Result, first: int, last: int, shape: tuple[int, ...]) -> None:
        self._result = result
        self._first = first
        self._last = last
        self._shape = shape  # (..., H)

    def _rows(self, array: Any) -> Floats | None:
        if array is None:
            return None
        if self._last - self._first != array.shape[-2]:
            array = array[..., self._first : self._last, :]
        view: Floats = array.reshape(array.shape[:-2] + self._shape)
        return view

    def _needed(self, array: Any, name: str) -> Floats:
        found = self._rows(array)
        if found is None:
            raise usage(
                "not_kept",
                f"this forecast has no {name}",
                name,
                "samples=True keeps trajectories; mean_only=True computes the mean alone",
            )
        return found

    @property
    def mean(self) -> Floats:
        """[..., H]: the mean, in the units of the input. This and the following are float32, or float64 where the values
        of a series of the call had too many digits for float32 (``value_offset``)."""
        return self._needed(self._result.mean, "mean")

    @property
    def median(self) -> Floats:
        """[..., H]: the median. Not in mean mode."""
        return self._needed(self._result.median, "median")

    @property
    def std(self) -> Floats:
        """[..., H]: the standard deviation; NaN where the tails are too heavy for one."""
        return self._needed(self._result.std, "std")

    @property
    def quantiles(self) -> Floats:
        """[L, ..., H]: a plane for each of ``levels``."""
        return self._needed(self._result.quantiles, "quantiles")

    @property
    def samples(self) -> Floats:
        """[S, ..., H]: the trajectories, where ``samples=True`` asked for them."""
        return self._needed(self._result.samples, "samples")

    @property
    def has_samples(self) -> bool:
        return self._result.samples is not None

    @property
    def levels(self) -> list[float]:
        """The levels of ``quantiles``, ascending."""
        return list(self._result.levels)

    @property
    def horizon(self) -> int:
        """H, steps."""
        return int(self._result.horizon)

    @property
    def num_samples(self) -> int:
        """Trajectories behind the steps that are not exact; 0 in mean mode."""
        return int(self._result.num_samples)

    def quantile(self, level: float | Sequence[float]) -> Floats:
        """[..., H], or [L, ..., H] for several levels: from the trajectories where there are any, else
        linear between the levels that were asked for."""
        if np.ndim(level) == 0:
            level = float(level)  # type: ignore[arg-type]
            if self.has_samples and level not in self._result.levels:
                return _of_samples(self.samples, level)
            return _interpolated(self._result.levels, self.quantiles, level)
        return np.stack([self.quantile(float(one)) for one in level])  # type: ignore[union-attr]

    def over_horizon(self, how: Literal["sum", "mean", "max", "min"], level: float | Sequence[float] | None = None) -> Floats:
        """The sum, mean, maximum or minimum of each trajectory over the horizon: its mean over the trajectories [...], or its
        quantiles [L, ...] where levels are given ([...] for one). Needs ``samples=True``; it means something with
        ``paths="coherent"`` alone, since steps that are drawn independently make sums vary too little."""
        if how not in ("sum", "mean", "max", "min"):
            raise usage("invalid_choice", f"expected one of sum, mean, max, min, found {how!r}", "how", "name one of them")
        values = getattr(np, how)(self.samples.astype(np.float64), axis=-1)
        found: Floats = values.mean(axis=0) if level is None else np.quantile(values, _checked(level), axis=0)
        return found

    def crossing(self, *, above: float | None = None, below: float | None = None, each_step: bool = False) -> Floats:
        """The share of trajectories that lie above (or below) a level anywhere in the horizon [...], or at each step
        [..., H]. Needs ``samples=True``; anywhere in the horizon means something with ``paths="coherent"`` alone."""
        paths = self.samples.astype(np.float64)
        if above is not None and below is None:
            crossed = paths > above
        elif below is not None and above is None:
            crossed = paths < below
        else:
            raise usage("missing_argument", "expected a level: above or below", "crossing", "give one of them")
        found: Floats = (crossed if each_step else crossed.any(axis=-1)).mean(axis=0)
        return found


class Forecast(_Arrays):
    """The forecast of one series: arrays are [H], or [V, H] where the input was [V, T]."""

    __slots__ = ("_index",)

    def __init__(self, result: Result, index: int, shape: tuple[int, ...]) -> None:
        offsets = result.offsets
        super().__init__(result, offsets[index], offsets[index + 1], shape)
        self._index = index

    @property
    def id(self) -> str:
        """The name of the series; random numbers are addressed by it."""
        return str(self._result.ids[self._index])

    @property
    def exact_steps(self) -> int:
        """The first so many steps have exact statistics, free of sampling noise."""
        return int(self._result.exact_steps[self._index])

    @property
    def parameters(self) -> dict[str, NDArray[np.float64]] | None:
        """The mixture at every step, where ``parameters=True`` asked for it: ``df``, ``loc``, ``scale``,
        ``probability`` [V, H, K] in scaled units, ``affine_loc`` and ``affine_scale`` [V, H]."""
        found: Any = self._result.parameters(self._index)
        return None if found is None else dict(found)

    def __reduce__(self) -> Any:
        return _restore, (_state_of(self._result), self._index, self._shape)

    def __repr__(self) -> str:
        return f"<toto_cpp.Forecast {self.id!r}: shape {self._shape}, levels {self.levels}>"

    def _repr_html_(self) -> str:
        from ._plot import svg_of

        return svg_of(self)

    def plot(self, history: Any = None, **options: Any) -> Any:
        """Draws the forecast: with matplotlib the axes, without it an SVG that notebooks show."""
        from ._plot import plot

        return plot(self, history, **options)

    def to_dict(self) -> dict[str, Any]:
        """Columns: ``id``, ``variate``, ``step`` from 1, ``mean`` and one for each level, by its text."""
        from ._tables import columns_of

        return columns_of([self])

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of ``to_dict``."""
        from ._tables import to_pandas

        return to_pandas([self])

    def to_polars(self) -> Any:
        """A polars.DataFrame of ``to_dict``."""
        from ._tables import to_polars

        return to_polars([self])

    def to_arrow(self) -> Any:
        """A pyarrow.Table of ``to_dict``."""
        from ._tables import to_arrow

        return to_arrow([self])


class ForecastBatch(_Arrays, Sequence["Forecast"]):
    """The forecasts of a batch: a sequence of ``Forecast``. Where all series have as many variates, its arrays
    hold all of them: [N, V, H], or [N, H] if every input was [T]."""

    __slots__ = ("_univariate", "_uniform")

    def __init__(self, result: Result) -> None:
        offsets = result.offsets
        widths = {b - a for a, b in zip(offsets, offsets[1:])}
        self._uniform = len(widths) <= 1
        self._univariate = bool(result.univariate)
        shape = (result.count, *widths, result.horizon) if self._uniform else (offsets[-1], result.horizon)
        if self._univariate and result.count:
            shape = (result.count, result.horizon)
        super().__init__(result, 0, offsets[-1], shape)

    def _rows(self, array: Any) -> Floats | None:
        if not self._uniform:
            raise usage(
                "ragged_batch",
                "the series of this batch have different numbers of variates, so no one array holds them",
                "ForecastBatch",
                "take them one by one: [f.mean for f in forecasts]",
            )
        return super()._rows(array)

    def __len__(self) -> int:
        return int(self._result.count)

    @overload
    def __getitem__(self, index: int) -> Forecast: ...
    @overload
    def __getitem__(self, index: slice) -> list[Forecast]: ...
    def __getitem__(self, index: int | slice) -> Forecast | list[Forecast]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"forecast {index} of {len(self)}")
        offsets = self._result.offsets
        variates = offsets[index + 1] - offsets[index]
        shape = (self.horizon,) if self._univariate else (variates, self.horizon)
        return Forecast(self._result, index, shape)

    def __iter__(self) -> Iterator[Forecast]:
        return (self[i] for i in range(len(self)))

    @property
    def ids(self) -> list[str]:
        """[N] names of the series."""
        return list(self._result.ids)

    def __reduce__(self) -> Any:
        return _restore, (_state_of(self._result), None, self._shape)

    def __repr__(self) -> str:
        return f"<toto_cpp.ForecastBatch of {len(self)} series, horizon {self.horizon}>"

    def to_dict(self) -> dict[str, Any]:
        """As ``Forecast.to_dict``, for all series."""
        from ._tables import columns_of

        return columns_of(list(self))

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of ``to_dict``."""
        from ._tables import to_pandas

        return to_pandas(list(self))

    def to_polars(self) -> Any:
        """A polars.DataFrame of ``to_dict``."""
        from ._tables import to_polars

        return to_polars(list(self))

    def to_arrow(self) -> Any:
        """A pyarrow.Table of ``to_dict``."""
        from ._tables import to_arrow

        return to_arrow(list(self))


def wrap(result: Result) -> Forecast | ForecastBatch:
    if result.rank == 1:
        return Forecast(result, 0, (result.horizon,))
    if result.rank == 2:
        return Forecast(result, 0, (result.offsets[1], result.horizon))
    return ForecastBatch(result)
