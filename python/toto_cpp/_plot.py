# SPDX-License-Identifier: Apache-2.0
"""Pictures: matplotlib where it is there, else an SVG that notebooks show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core

if TYPE_CHECKING:
    from .forecast import Forecast


class Svg:
    """A picture; ``str(svg)`` is its text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def _repr_svg_(self) -> str:
        return self._text

    def save(self, path: Any) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._text)


def _bands(forecast: Forecast) -> list[tuple[float, Any, Any]]:
    """Level, lower and upper [V, H] of each pair of levels around the median, the widest first."""
    if forecast._result.quantiles is None:
        return []
    levels = forecast.levels
    planes = {q: np.atleast_2d(plane) for q, plane in zip(levels, forecast.quantiles)}
    out = []
    for low in levels:
        high = next((q for q in levels if abs(q - (1 - low)) < 1e-9), None)
        if low < 0.5 and high is not None:
            out.append((round(high - low, 9), planes[low], planes[high]))
    return out


def _figure(forecast: Forecast, history: Any) -> tuple[Any, ...]:
    mean = np.atleast_2d(forecast.mean)
    median = np.atleast_2d(forecast.median) if forecast._result.median is not None else mean
    past = None if history is None else np.atleast_2d(np.asarray(history, np.float64))
    return mean, median, past


def svg_of(forecast: Forecast, history: Any = None) -> str:
    mean, median, past = _figure(forecast, history)
    bands = _bands(forecast)
    panels = []
    for v in range(len(mean)):
        name = forecast.id if len(mean) == 1 else f"{forecast.id}/{v}"
        seen = [] if past is None else past[v].tolist()
        own = [(level, low[v].tolist(), high[v].tolist()) for level, low, high in bands]
        panels.append((name, seen, median[v].tolist(), mean[v].tolist(), own))
    return _core.svg("", panels)


def plot(forecast: Forecast, history: Any = None, ax: Any = None) -> Any:
    """See ``Forecast.plot``."""
    try:
        from matplotlib import pyplot
    except ImportError:
        return Svg(svg_of(forecast, history))
    mean, median, past = _figure(forecast, history)
    if ax is None:
        _, ax = pyplot.subplots(len(mean), 1, squeeze=False, sharex=True)
        ax = ax[:, 0]
    axes = np.atleast_1d(ax)
    for v, one in enumerate(axes[: len(mean)]):
        begin = 0 if past is None else past.shape[1]
        steps = np.arange(begin, begin + forecast.horizon)
        if past is not None:
            shown = max(40, 3 * forecast.horizon)
            one.plot(np.arange(begin)[-shown:], past[v][-shown:], color="0.3", label="history")
        for level, low, high in _bands(forecast):
            one.fill_between(steps, low[v], high[v], alpha=0.15, color="C0", linewidth=0, label=f"{100 * level:g} %")
        one.plot(steps, median[v], color="C0", label="median")
    axes[0].legend(loc="upper left")
    return axes[0] if len(mean) == 1 else axes
