# SPDX-License-Identifier: Apache-2.0
"""The real series of training/ (the wide-dev split and the 37 of the model card), and relative measures.

Needs the packages of training/requirements.txt that hold series, and no torch.
"""

import pathlib
import subprocess
import sys
import tempfile
import types

import numpy as np
import pandas as pd

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "training"))
for name in ("toto_nano.checkpoint", "toto_nano.inference"):
    sys.modules.setdefault(name, types.ModuleType(name))  # they need torch, and nothing here needs them

from toto_nano import baselines, evaluation_data, scores  # noqa: E402
from toto_nano2 import wide_data  # noqa: E402

SLOW = {"yearly", "quarterly", "monthly", "weekly"}


def load(which):
    """The wide test set is not for choosing, and is not to be had here."""
    return wide_data.load(which) if which == "wide-dev" else evaluation_data.load("test")


def windows_of(which):
    how = (6, 12) if which == "wide-dev" else ()
    return [w for s in load(which) for w in scores.windows(s, *how)]


def write(path, rows):
    """rows: (id, times, values); NaN is an empty field."""
    parts = [
        pd.DataFrame({"unique_id": name, "ds": [t.isoformat() for t in times], "y": values})
        for name, times, values in rows
    ]
    pd.concat(parts).to_csv(path, index=False, float_format="%.9g")


def forecast(toto, model, windows, flags=(), pasts=None):
    """Quantiles [h, levels] of each window, by one `toto forecast` for each horizon."""
    found = {}
    for horizon in sorted({w.series.horizon for w in windows}):
        some = [w for w in windows if w.series.horizon == horizon]
        with tempfile.TemporaryDirectory() as folder:
            source, result = pathlib.Path(folder, "in.csv"), pathlib.Path(folder, "out.csv")
            write(source, [(w.name, w.times, w.past if pasts is None else pasts[w.name]) for w in some])
            subprocess.run(
                [toto, "forecast", source, "-q", "--model", model, "--horizon", str(horizon), "--output", result,
                 "--quantiles", ",".join(f"{q:g}" for q in scores.LEVELS), *flags],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            table = pd.read_csv(result)
        columns = [f"q{q:g}" for q in scores.LEVELS]
        for name, rows in table.groupby("unique_id", sort=False):
            found[str(name)] = rows[columns].to_numpy()
    return found


def by_series(windows, quantiles):
    """Measures of each series over its windows."""
    rows = {}
    for w in windows:
        rows.setdefault(w.series.name, []).append(scores.score(w, quantiles[w.name]))
    return {name: scores.series_scores(part) for name, part in rows.items()}


def relative(found, base, names=None):
    """Geometric means of MASE and weighted quantile loss over those of `base`, and the 80 % coverage."""
    names = list(found) if names is None else names
    ratio = [scores.geometric_mean([found[n][m] / base[n][m] for n in names]) for m in ("mase", "wql")]
    return (*ratio, float(np.mean([found[n]["cover80"] for n in names])))


def naive(windows):
    return by_series(windows, {w.name: baselines.seasonal_naive(w) for w in windows})
