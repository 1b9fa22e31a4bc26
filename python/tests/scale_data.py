# SPDX-License-Identifier: Apache-2.0
"""What the tests of streams, files and engines share: the same series as lists and as long rows."""

import hashlib
import sys
from functools import partial
from pathlib import Path

import numpy as np

from conftest import GOLDEN
from toto_cpp import forecast_dataset

MODEL = str(GOLDEN / "toto1-tiny-a")
#: The horizon goes beyond the first patch, so that draws are part of what must be equal.
OPTIONS = dict(model=MODEL, level=[80], num_samples=16, seed=3)
H = 20
COUNT = 60  #: series of the files of conftest.py
run = partial(forecast_dataset, h=H, **OPTIONS)


def command(source, out, *more):
    """The same on the command line."""
    options = ["--horizon", str(H), "--model", MODEL, "--level", "80", "--num-samples", "16", "--seed", "3", "--batch-size", "16"]
    return [sys.executable, "-m", "toto_cpp", "dataset", str(source), str(out), *options, *more]


def columns(count, seed=0):
    """Ids and values of lengths from 40 to 120, some missing."""
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=int(n)).cumsum() for n in rng.integers(40, 120, count)]
    for one in values[::5]:
        one[3:6] = np.nan
    return [f"s{i:05d}" for i in range(count)], values


def as_lists(count, seed=0):
    import pyarrow as pa

    ids, values = columns(count, seed)
    return pa.table({"unique_id": ids, "y": [[None if np.isnan(v) else v for v in one] for one in values], "group": np.arange(count) % 3})


def as_long(count, seed=0, shuffled=True):
    import pyarrow as pa

    ids, values = columns(count, seed)
    lengths = [len(one) for one in values]
    times = [np.datetime64("2024-01-01T00", "us") + np.arange(n) * np.timedelta64(1, "h") for n in lengths]
    table = pa.table({"unique_id": np.repeat(ids, lengths), "ds": np.concatenate(times), "y": np.concatenate(values)})
    return table.take(np.random.default_rng(1).permutation(len(table))) if shuffled else table


def expected(count, model, seed=0):
    """What `Model.forecast_df` says, as pandas, by id and time."""
    options = {name: value for name, value in OPTIONS.items() if name != "model"}
    table = model.forecast_df(as_long(count, seed, shuffled=False), H, freq="h", **options)
    return table.to_pandas().sort_values(["unique_id", "ds"]).reset_index(drop=True)


def planes(frame, columns=("Toto", "Toto-lo-80", "Toto-hi-80")):
    """[columns, N, H] float32 of a long frame of pandas."""
    return np.stack([frame[name].to_numpy().astype(np.float32).reshape(-1, H) for name in columns])


def list_planes(table, columns=("Toto", "Toto-lo-80", "Toto-hi-80")):
    """[columns, N, H] of an Arrow table of lists, by id."""
    table = table.sort_by("unique_id")
    return np.stack([np.array(table.column(name).to_pylist(), np.float32) for name in columns])


def digest(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(Path(folder).iterdir())}
