# SPDX-License-Identifier: Apache-2.0
"""Forecasts of arrays as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import usage

if TYPE_CHECKING:
    from .forecast import Forecast


def module(name: str) -> Any:
    """An optional library. Raises UsageError missing_package."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise usage("missing_package", f"this needs {name}", name, f"pip install {name}") from None


def columns_of(forecasts: Sequence[Forecast]) -> dict[str, Any]:
    ids: list[str] = []
    columns: dict[str, list[Any]] = {"variate": [], "step": [], "mean": []}
    levels = forecasts[0].levels if forecasts else []
    for level in levels:
        columns[str(level)] = []
    for f in forecasts:
        mean = np.atleast_2d(f.mean)
        v, h = mean.shape
        ids += [f.id] * (v * h)
        columns["variate"].append(np.repeat(np.arange(v), h))
        columns["step"].append(np.tile(np.arange(1, h + 1), v))
        columns["mean"].append(mean.ravel())
        if f._result.quantiles is not None:
            for level, plane in zip(levels, f.quantiles):
                columns[str(level)].append(plane.ravel())
    out: dict[str, Any] = {"id": ids}
    out.update((name, np.concatenate(parts)) for name, parts in columns.items() if parts)
    return out


def to_pandas(forecasts: Sequence[Forecast]) -> Any:
    return module("pandas").DataFrame(columns_of(forecasts))


def to_polars(forecasts: Sequence[Forecast]) -> Any:
    return module("polars").DataFrame(columns_of(forecasts))


def to_arrow(forecasts: Sequence[Forecast]) -> Any:
    return module("pyarrow").table(columns_of(forecasts))
