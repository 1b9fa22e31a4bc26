# SPDX-License-Identifier: Apache-2.0
"""Figures of several forecasters by class: interval, length of the series, domain; short histories;
where the truth falls among the quantiles, by step."""

import dataclasses

import numpy as np
import pandas as pd

from toto_nano import evaluate, scores

LENGTHS = [(0, 64), (64, 250), (250, 1000), (1000, 10**9)]  # observations of a series
BANDS = [(1, 4), (5, 12), (13, 32), (33, 10**9)]  # steps ahead
CUTS = [8, 12, 16, 24, 31]  # observations of a short history
SLOW = ("yearly", "quarterly", "monthly")


@dataclasses.dataclass
class Cut(scores.Window):
    """A window that sees its last `length` observations."""

    length: int = 31

    @property
    def begin(self):
        return max(0, self.end - self.length)


def short_histories(series):
    """Three origins of every slow series, the history cut to each length of CUTS in turn."""
    found = []
    for i, s in enumerate(x for x in series if x.interval in SLOW):
        for k, w in enumerate(scores.windows(s, 3, 31)):
            length = CUTS[(i + k) % len(CUTS)]
            if np.isfinite(s.values[w.end - length : w.end]).sum() >= 3 and np.isfinite(w.future).any():
                found.append(Cut(f"{s.name}/{w.end}/{length}", s, w.end, length))
    return found


def length_class(n):
    for low, high in LENGTHS:
        if low <= n < high:
            return f"{low} to {high - 1} observations" if high < 10**9 else f"{low} observations or more"


def members(table, lengths):
    """(kind, class, the series in it)"""
    facts = table.drop_duplicates("series").set_index("series")
    length = pd.Series({s: length_class(lengths[s]) for s in facts.index})
    yield "all", "all", set(facts.index)
    for kind, labels in (("interval", facts["interval"]), ("length", length), ("domain", facts["domain"])):
        order = [length_class(low) for low, _ in LENGTHS] if kind == "length" else labels.unique()
        for label in order:
            if (labels == label).any():
                yield kind, label, set(labels.index[labels == label])


def by_class(table, lengths):
    """Rows of classes, columns of forecasters: MASE / weighted quantile loss, relative to the
    seasonal naive forecast, over the series for which all forecasters have forecasts."""
    rows = []
    for kind, label, series in members(table, lengths):
        found = evaluate.aggregate(table, series)
        row = {"": label, "series": len(series)}
        for name, f in found.iterrows():
            if name != evaluate.REFERENCE:
                row[name] = f"{f['MASE, relative']:.3f} / {f['WQL, relative']:.3f}"
        for name, f in found.iterrows():
            if name != evaluate.REFERENCE:
                row[f"{name}, in 80 %"] = f["in 80 %"]
        rows.append((kind, row))
    return rows


def complete(forecasts, windows):
    """Without the series of which some forecaster lacks a window; how many those are."""
    lacking = {w.series.name for q in forecasts.values() for w, x in zip(windows, q) if x is None}
    keep = [i for i, w in enumerate(windows) if w.series.name not in lacking]
    kept = {name: [q[i] for i in keep] for name, q in forecasts.items()}
    return kept, [windows[i] for i in keep], len(lacking)


def places(windows, quantiles):
    """Share of the truth in each tenth between the nine quantiles, by band of steps."""
    rows = {}
    for low, high in BANDS:
        counts = np.zeros(10)
        for w, q in zip(windows, quantiles):
            y = w.future
            step = np.arange(1, len(y) + 1)
            seen = np.isfinite(y) & (step >= low) & (step <= high)
            above = (y[seen, None] > q[: len(y)][seen][:, scores.DECILES]).sum(1)
            counts += np.bincount(above, minlength=10) / max(1, len(y))
        if counts.sum():
            label = f"{low} to {high}" if high < 10**9 else f"{low} and beyond"
            rows[label] = counts / counts.sum()
    table = pd.DataFrame(rows, index=[f"{k} to {k + 10} %" for k in range(0, 100, 10)]).T
    table.index.name = "steps ahead"
    table["in 80 %"] = table.iloc[:, 1:9].sum(axis=1)
    return table


def error(window, quantiles):
    """Sums of absolute error and of pinball loss over the nine levels."""
    y = window.future
    seen = np.isfinite(y)
    off = y[seen, None] - quantiles[: len(y)][seen]
    pinball = np.maximum(scores.LEVELS * off, (scores.LEVELS - 1) * off)
    return np.abs(off[:, scores.MEDIAN]).sum(), pinball[:, scores.DECILES].sum()


def against(windows, forecasts, reference):
    """Ratio of errors to those of `reference`, geometric mean over series, by length of history."""
    rows = {}
    labels = [("8 to 31", CUTS)] + [(str(c), [c]) for c in CUTS]
    for label, cuts in labels:
        row = {}
        for name, quantiles in forecasts.items():
            sums = {}
            for w, q, r in zip(windows, quantiles, forecasts[reference]):
                if w.length in cuts and q is not None and r is not None:
                    total = sums.setdefault(w.series.name, np.zeros((2, 2)))
                    total += [error(w, q), error(w, r)]
            usable = [t for t in sums.values() if (t > 0).all()]
            if usable:
                ratio = np.exp(np.mean([np.log(t[0] / t[1]) for t in usable], axis=0))
            else:
                ratio = (np.nan, np.nan)
            row[f"{name}, error"], row[f"{name}, loss"] = ratio
            row["series"] = len(usable)
        rows[label] = row
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index.name = "history"
    return table
