# SPDX-License-Identifier: Apache-2.0
"""Forecasts of windows by statistical methods and small rivals, each in a process that may be given up, and a cache.

A file of the cache holds what one forecaster said of the windows of one set, by their names.
"""

import multiprocessing
import pathlib
import time
import warnings

import numpy as np

from toto_nano import baselines

from .rivals import RIVALS

PERCENT = [20, 40, 50, 60, 80, 95]
LONGEST = {"AutoTheta": 1000, "AutoARIMA": 300}  # observations; the last ones
LONGEST_SEASON = {"AutoTheta": 96, "AutoARIMA": 12}
SECONDS = {"AutoETS": 60, "AutoTheta": 20, "AutoARIMA": 20}  # of one forecast


def by_statsforecast(name, window):
    from statsforecast import models

    y = baselines.filled(window.past)[-LONGEST[name] :]
    m = window.series.season
    season = m if m <= LONGEST_SEASON[name] and len(y) > 2 * m else 1
    model = getattr(models, name)(season_length=season)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = model.forecast(y=y, h=window.series.horizon, level=PERCENT)
    low = [f[f"lo-{p}"] for p in reversed(PERCENT)]
    return np.stack([*low, f["mean"], *[f[f"hi-{p}"] for p in PERCENT]], -1)


def one(name, window):
    if name in baselines.BASELINES:
        return baselines.BASELINES[name](window)
    if name in RIVALS:
        return RIVALS[name](window)
    return by_statsforecast(name, window)


def answer(pipe, name, windows):
    for w in windows:
        try:
            found = np.asarray(one(name, w), float)
            pipe.send(found if np.isfinite(found).all() else None)
        except Exception:  # a method that fails on a series has no forecast
            pipe.send(None)


class Worker:
    """A process that forecasts window after window; one that takes too long is ended."""

    def __init__(self, name, windows):
        self.name, self.left = name, list(windows)
        self.begin()

    def begin(self):
        self.pipe, far = multiprocessing.Pipe()
        work = multiprocessing.get_context("fork").Process
        self.process = work(target=answer, args=(far, self.name, self.left), daemon=True)
        self.process.start()

    def next(self, seconds):
        window = self.left.pop(0)
        if self.pipe.poll(seconds):
            return window, self.pipe.recv()
        self.process.kill()
        self.process.join()
        self.begin()
        return window, None


def by_statistics(name, windows, keep):
    """keep(window, quantiles or None) as they come."""
    worker = Worker(name, windows)
    for _ in windows:
        keep(*worker.next(SECONDS.get(name, 60)))
    worker.process.join()


class Cache:
    """{window name: quantiles} of one forecaster in FOLDER/SET/NAME.npz; empty = none in time."""

    def __init__(self, folder, which, name):
        self.path = pathlib.Path(folder, which, f"{name}.npz") if folder else None
        self.found = {}
        if self.path and self.path.exists():
            with np.load(self.path) as f:
                self.found = dict(f)

    def save(self):
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self.path.with_suffix(".part.npz"), **self.found)
            self.path.with_suffix(".part.npz").replace(self.path)

    def of(self, windows):
        """Quantiles of each window, None where there are none."""
        found = [self.found[w.name] for w in windows]
        return [q if q.size else None for q in found]


def statistical(folder, which, name, windows):
    """The forecasts of a statistical method; what the cache lacks is made."""
    cache = Cache(folder, which, name)
    missing = [w for w in windows if w.name not in cache.found]
    said = time.monotonic()

    def keep(window, quantiles):
        nonlocal said
        cache.found[window.name] = np.empty(0) if quantiles is None else quantiles
        if time.monotonic() - said > 20:
            cache.save()
            said = time.monotonic()

    if missing:
        by_statistics(name, missing, keep)
        cache.save()
    return cache.of(windows)
