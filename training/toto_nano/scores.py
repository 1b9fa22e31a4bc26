# SPDX-License-Identifier: Apache-2.0
"""Windows, error measures and their aggregation."""

import dataclasses

import numpy as np

LEVELS = np.array([0.025, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.975])
DECILES = np.isin(LEVELS, np.arange(1, 10) / 10)
MEDIAN = 6
INTERVALS = {50: (3, 9), 80: (1, 11), 95: (0, 12)}  # percent: positions in LEVELS
MAX_CONTEXT = 4096
MIN_CONTEXT = 32  # one patch: `toto` forecasts from no less
MAX_WINDOWS = 12


@dataclasses.dataclass
class Window:
    """A forecast origin: the past as the forecaster sees it and the truth that follows."""

    name: str
    series: object
    end: int  # index of the first step to forecast

    @property
    def begin(self):
        return max(0, self.end - MAX_CONTEXT)

    @property
    def past(self):
        return self.series.values[self.begin : self.end]

    @property
    def times(self):
        return self.series.times()[self.begin : self.end]

    @property
    def future(self):
        return self.series.values[self.end : self.end + self.series.horizon]


def windows(series, most=MAX_WINDOWS, least=MIN_CONTEXT) -> list[Window]:
    """Up to `most` origins, evenly spaced over the second half, futures not overlapping; each
    after `least` observations or more."""
    n, h = len(series.values), series.horizon
    first = max(n // 2, 2 * series.season + 2, least)
    count = int(np.clip((n - first) // h, 1, most))
    stride = max(h, (n - h - first) // max(1, count - 1))
    ends = [n - h - k * stride for k in range(count)][::-1]
    return [Window(f"{series.name}/{e}", series, e) for e in ends if e >= first]


def seasonal_error(past, season):
    """In-sample mean absolute error of the seasonal naive forecast: the unit of MASE."""
    return np.nanmean(np.abs(past[season:] - past[:-season]))


def score(window: Window, quantiles: np.ndarray) -> dict:
    """Sums over the horizon; quantiles (h, len(LEVELS))."""
    y, season = window.future, window.series.season
    seen = np.isfinite(y)
    y, q = y[seen], quantiles[seen]
    off = y[:, None] - q
    pinball = np.maximum(LEVELS * off, (LEVELS - 1) * off)
    result = {
        "n": len(y),
        "mase": np.abs(off[:, MEDIAN]).sum() / seasonal_error(window.past, season),
        "pinball": 2 * pinball[:, DECILES].mean(1).sum(),
        "absolute": np.abs(y).sum(),
    }
    for level, (low, high) in INTERVALS.items():
        result[f"in{level}"] = ((y >= q[:, low]) & (y <= q[:, high])).sum()
    return result


def series_scores(rows: list[dict]) -> dict:
    """MASE, weighted quantile loss and coverage of one series over all its windows."""
    total = {k: sum(r[k] for r in rows) for k in rows[0]}
    return {
        "mase": total["mase"] / total["n"],
        "wql": total["pinball"] / total["absolute"],
        **{f"cover{level}": total[f"in{level}"] / total["n"] for level in INTERVALS},
    }


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(np.asarray(values)))))
