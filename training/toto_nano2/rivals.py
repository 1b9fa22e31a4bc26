# SPDX-License-Identifier: Apache-2.0
"""Forecasts by small rivals from PyPI, with their defaults.

FLAIR (flaircast): a rank-one decomposition and ridge regression, no weights; its quantiles are those of its sample
paths. fracast: a convolution of 85,001 weights that ship with its package; nine deciles of 48 steps, its own medians fed
back beyond.
"""

import functools

import numpy as np

from toto_nano import baselines
from toto_nano.scores import LEVELS

FREQUENCIES = {
    "yearly": "Y", "quarterly": "Q", "monthly": "M", "weekly": "W", "daily": "D", "hourly": "H", "half-hourly": "30T",
    "15 minutes": "15T", "10 minutes": "10T", "5 minutes": "5T", "business": "B",
}  # fmt: skip
PATHS = 256


def by_flair(window):
    import flaircast

    paths = flaircast.forecast(
        baselines.filled(window.past), window.series.horizon, FREQUENCIES[window.series.interval], n_samples=PATHS, seed=0
    )
    return np.quantile(paths, LEVELS, axis=0).T


@functools.cache
def fracast_model():
    import torch
    from fracast import FracastModel

    torch.set_num_threads(1)  # a worker is a fork
    return FracastModel.from_pretrained(weights="fp32")


def by_fracast(window):
    """Deciles sorted where they cross. Levels beyond the outer ones are theirs: coverage of 95 % means nothing here."""
    model = fracast_model()
    found = np.sort(model.forecast(window.past, horizon=window.series.horizon), -1)
    return np.stack([np.interp(LEVELS, model.quantiles, row) for row in found])


RIVALS = {"FLAIR": by_flair, "fracast": by_fracast}
