# SPDX-License-Identifier: Apache-2.0
"""Daily market prices on a larger scale than the split "test" has: more series, more windows.

One stock over twelve windows says little: the figure for it moves by several percent with the
choice of windows. Here are the five series of "test" and 26 more, each with up to 60 windows; none
of them was trained on. The set was put together after the model had been trained (LOG.md).
"""

import importlib.util
import pathlib

import numpy as np
import pandas as pd

from . import baselines, evaluation_data, scores
from .evaluation_data import Series

WINDOWS = 60
IN_TEST = {"AAPL", "GOOG", "GOOGL", "IBM", "MSFT"}


def path_in(package, *parts):
    """A file of an installed package that need not be importable."""
    return pathlib.Path(importlib.util.find_spec(package).origin).parent.joinpath(*parts)


def load() -> list[Series]:
    def make(name, values, start, source):
        values = values.dropna()
        return Series(name, "market", "business", source, "markets", values.to_numpy(float), start)

    found = [s for s in evaluation_data.load("test") if s.domain == "market"]
    stocks = pd.read_csv(path_in("skfolio", "datasets", "data", "sp500_dataset.csv.gz"), index_col=0)
    for ticker in stocks.columns:
        if ticker not in IN_TEST:
            found.append(make(ticker, stocks[ticker], str(stocks.index[0]), "skfolio"))
    for name, column in (("sp500", "Adj Close"), ("nasdaq", "Adj Close"), ("wti", "DCOILWTICO")):
        table = pd.read_csv(path_in("arch", "data", name, f"{name}.csv.gz"), na_values=".")
        found.append(make(name, table[column], str(table.iloc[0, 0]), "arch"))
    rates = evaluation_data.r_table("Ecdat/Garch.csv")
    for name in ("dm", "bp", "cd", "dy", "sf"):  # US dollars; in cents, or the scaler's floor hides them
        found.append(make(f"usd_{name}", rates[name] * 100, "1980-01-02", "pydataset"))
    return found


def errors(windows, quantiles):
    """Absolute error of the median, mean over the window's steps, in units of MASE."""
    return np.array([scores.score(w, q)["mase"] for w, q in zip(windows, quantiles)])


def report(forecast) -> str:
    """`forecast(windows)` gives quantiles; the report in Markdown."""
    series = load()
    windows = [scores.windows(s, WINDOWS) for s in series]
    flat = [w for ws in windows for w in ws]
    by = {"toto": forecast(flat)}
    for name in ("naive", "seasonal naive"):
        by[name] = [baselines.BASELINES[name](w) for w in flat]
    ends = np.cumsum([len(ws) for ws in windows])[:-1]
    split = {name: np.split(errors(flat, q), ends) for name, q in by.items()}

    def ratio(chosen, part="markets"):
        logs = []
        for i, ws in enumerate(windows):
            if part in ("markets", series[i].split):
                rows = chosen[chosen < len(ws)]
                mean = {name: e[i][rows].mean() for name, e in split.items()}
                logs.append(np.log(mean["toto"] / min(mean["naive"], mean["seasonal naive"])))
        return np.exp(np.mean(logs))

    every = np.arange(WINDOWS)
    rng = np.random.default_rng(1)  # windows of one time together: markets move together
    again = [ratio(rng.integers(0, WINDOWS, WINDOWS)) for _ in range(500)]
    lines = [
        f"Daily prices, {len(series)} series, {len(flat)} windows of 14 steps: MASE "
        f"{ratio(every):.4f} of the better of naive and seasonal naive for each series "
        f"(standard error {np.std(again):.4f}, windows resampled); {ratio(every, 'test'):.4f} for those of "
        "the split `test`.\n",
        "| series | source | windows | MASE / naive | MASE / seasonal naive |",
        "|---|---|---|---|---|",
    ]
    for i, s in enumerate(series):
        mean = {name: e[i].mean() for name, e in split.items()}
        lines.append(
            f"| {s.name} | {s.source} | {len(windows[i])} | {mean['toto'] / mean['naive']:.3f} | "
            f"{mean['toto'] / mean['seasonal naive']:.3f} |"
        )
    return "\n".join(lines) + "\n"
