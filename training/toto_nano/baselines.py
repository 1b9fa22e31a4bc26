# SPDX-License-Identifier: Apache-2.0
"""The forecasts to beat: naive, seasonal naive, drift, and exponential smoothing.

The three simple ones get normal intervals from their in-sample errors, as is usual.
"""

import warnings

import numpy as np
import pandas as pd
from scipy.stats import norm

from .scores import LEVELS, Window

Z = norm.ppf(LEVELS)


def filled(past):
    return pd.Series(past).ffill().bfill().to_numpy()


def naive(w: Window):
    y, h = filled(w.past), np.arange(1, w.series.horizon + 1)
    spread = np.std(np.diff(y)) * np.sqrt(h)
    return y[-1] + spread[:, None] * Z


def seasonal_naive(w: Window):
    y, m, h = filled(w.past), w.series.season, np.arange(w.series.horizon)
    spread = np.sqrt(np.mean((y[m:] - y[:-m]) ** 2)) * np.sqrt(h // m + 1)
    return y[len(y) - m + h % m][:, None] + spread[:, None] * Z


def drift(w: Window):
    y, h = filled(w.past), np.arange(1, w.series.horizon + 1)
    steps = np.diff(y)
    spread = np.std(steps) * np.sqrt(h * (1 + h / (len(y) - 1)))
    return (y[-1] + steps.mean() * h)[:, None] + spread[:, None] * Z


def smoothing(w: Window):
    """statsforecast: AutoETS, or MSTL with AutoETS on the rest where the season is long."""
    from statsforecast.models import MSTL, AutoETS

    y, m = filled(w.past)[-2000:], w.series.season
    model = AutoETS(season_length=m if m <= 24 else 1)
    if m > 24 and len(y) > 2 * m:
        model = MSTL(season_length=m, trend_forecaster=AutoETS(model="ZZN"))
    levels = [20, 40, 50, 60, 80, 95]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = model.forecast(y=y, h=w.series.horizon, level=levels)
    low = [f[f"lo-{level}"] for level in (95, 80, 60, 50, 40, 20)]
    high = [f[f"hi-{level}"] for level in levels]
    return np.stack([*low, f["mean"], *high], -1)


BASELINES = {
    "naive": naive, "seasonal naive": seasonal_naive, "drift": drift, "AutoETS": smoothing,
}  # fmt: skip
