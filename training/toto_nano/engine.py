# SPDX-License-Identifier: Apache-2.0
"""Forecasts of windows by the `toto` program, and by the training program's own model."""

import csv
import pathlib
import subprocess
import tempfile

import numpy as np
import pandas as pd
import torch

from . import checkpoint, inference
from .scores import LEVELS, Window


def by_toto(binary: pathlib.Path, model: pathlib.Path, windows: list[Window], samples: int, views: str = "", paths: str = "auto"):
    """Quantiles [horizon, LEVELS] of each window. `views`, `paths`: as of `toto forecast`, so that tails and, where nothing is
    said, paths are what the folder of the model names in generation_config.json."""
    more = ["--quantiles", ",".join(f"{q:g}" for q in LEVELS), "--paths", paths, *(["--views", views] if views else [])]
    columns = [f"q{q:g}" for q in LEVELS]
    return [rows[columns].to_numpy() for rows in tables_by_toto(binary, model, windows, samples, more)]


def means_by_toto(binary: pathlib.Path, model: pathlib.Path, windows: list[Window], samples: int, tails: str):
    """Means [horizon] of each window. `tails`: as --tails of `toto forecast`."""
    found = tables_by_toto(binary, model, windows, samples, ["--tails", tails])
    return [rows["mean"].to_numpy() for rows in found]


def tables_by_toto(binary, model, windows, samples, more):
    """The rows of each window. One run of `toto forecast` per horizon; CSV in, CSV out."""
    found = {}
    for horizon in sorted({w.series.horizon for w in windows}):
        part = [w for w in windows if w.series.horizon == horizon]
        with tempfile.TemporaryDirectory() as folder:
            source, result = pathlib.Path(folder, "in.csv"), pathlib.Path(folder, "out.csv")
            write_windows(part, source)
            subprocess.run(
                [binary, "forecast", source, "--model", model, "--horizon", str(horizon),
                 "--samples", str(samples), "--output", result, *more],
                check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            table = pd.read_csv(result)
        found.update(iter(table.groupby("unique_id", sort=False)))
    return [found[w.name] for w in windows]


def write_windows(windows, path):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["unique_id", "ds", "y"])
        for w in windows:
            for time, y in zip(w.times, w.past):
                out.writerow([w.name, time.isoformat(), "" if np.isnan(y) else repr(float(y))])


def model_input(w: Window):
    """Series (1,1,T), mask and ids as `toto forecast` makes them: last value carried forward."""
    past = pd.Series(w.past).ffill().to_numpy(np.float32)
    series = torch.from_numpy(past)[None, None]
    valid = torch.from_numpy(np.isfinite(w.past))[None, None]
    return series, valid, torch.zeros(series.shape, dtype=torch.int32)


def by_training_program(folder: pathlib.Path, windows: list[Window], samples: int):
    model = checkpoint.load(folder)
    levels = torch.tensor(LEVELS, dtype=torch.float32)
    found = []
    for w in windows:
        drawn = inference.forecast_samples(model, *model_input(w), w.series.horizon, samples)
        found.append(torch.quantile(drawn[:, 0, 0], levels, dim=0).T.numpy())
    return found
