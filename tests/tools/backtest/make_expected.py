# SPDX-License-Identifier: Apache-2.0
# Writes tests/data/backtest/expected.json: inputs, and what independent implementations make of them.
# The tests read that file; this program is run by hand when a case is added:
#   python3 -m venv V
#   V/bin/pip install numpy scipy scikit-learn utilsforecast statsforecast dieboldmariano
#   V/bin/python tests/backtest/make_expected.py
import json
import math
import os
import warnings

import numpy as np
import pandas as pd
import utilsforecast.losses as losses
from dieboldmariano import dm_test
from scipy import integrate, optimize, stats
from sklearn import metrics
from statsforecast.models import Naive, RandomWalkWithDrift, SeasonalNaive

warnings.simplefilter("ignore")
LEVELS = [round(0.05 * i, 2) for i in range(1, 20)]


def first(frame, column="f"):
    return float(frame[column].iloc[0])


def measures(rng, n):
    """Forecasts of n cells, and every measure of them."""
    base = 50 + np.abs(rng.normal(0, 30, n))
    actual = base * np.exp(rng.normal(0, 0.03, n))
    actual[3] = base[3]  # did not move
    forecast = base * np.exp(rng.normal(0.002, 0.02, n))
    spread = base * 0.03 * np.abs(rng.normal(1, 0.2, n))
    quantiles = {q: forecast + spread * stats.norm.ppf(q) for q in LEVELS}
    train = np.cumsum(rng.normal(0, 1, 200)) + 100
    frame = pd.DataFrame({"unique_id": "a", "ds": np.arange(n), "y": actual, "f": forecast})
    for q in LEVELS:
        frame[f"q{q}"] = quantiles[q]
    frame["f-lo-80"], frame["f-hi-80"] = quantiles[0.1], quantiles[0.9]
    history = pd.DataFrame({"unique_id": "a", "ds": np.arange(-200, 0), "y": train})
    moved = (actual != base) & (forecast != base)  # a forecast of no move says no direction
    right = int(np.sum((np.sign(forecast - base) == np.sign(actual - base)) & moved))
    interval = stats.binomtest(right, int(moved.sum())).proportion_ci(0.95, method="wilson")
    expected = {
        "mae": metrics.mean_absolute_error(actual, forecast),
        "mae_utilsforecast": first(losses.mae(frame, ["f"])),
        "rmse": metrics.root_mean_squared_error(actual, forecast),
        "mape": 100 * metrics.mean_absolute_percentage_error(actual, forecast),
        "smape": 200 * first(losses.smape(frame, ["f"])),
        "mase": first(losses.mase(frame, ["f"], 5, history)),
        "pinball": [metrics.mean_pinball_loss(actual, quantiles[q], alpha=q) for q in LEVELS],
        "pinball_utilsforecast": [first(losses.quantile_loss(frame, {"f": f"q{q}"}, q)) for q in LEVELS],
        "below": [first(losses.calibration(frame, {"f": f"q{q}"})) for q in LEVELS],
        "coverage_80": first(losses.coverage(frame, ["f"], 80)),
        # The weighted quantile loss, mean over the levels, is what utilsforecast calls scaled CRPS.
        "wql": first(losses.scaled_crps(frame, {"f": [f"q{q}" for q in LEVELS]}, np.array(LEVELS))),
        "crps": 2 * first(losses.mqloss(frame, {"f": [f"q{q}" for q in LEVELS]}, np.array(LEVELS))),
        # The mean absolute error of returns, in percent.
        "return_mae": 100 * metrics.mean_absolute_error(actual / base - 1, forecast / base - 1),
        "direction": right / int(moved.sum()),
        "direction_low": interval.low,
        "direction_high": interval.high,
        "width_80": 100 * float(np.mean((quantiles[0.9] - quantiles[0.1]) / base)),
    }
    return {
        "base": base.tolist(), "actual": actual.tolist(), "forecast": forecast.tolist(),
        "quantiles": [quantiles[q].tolist() for q in LEVELS], "train": train.tolist(),
        "season": 5, "expected": expected,
    }


def paired(rng, n, h, bias):
    """Absolute errors of two forecasts, whose differences are correlated up to h - 1 apart."""
    noise = rng.normal(0, 1, n + h)
    actual = np.convolve(noise, np.ones(h) / h, "valid")[:n]
    one = actual + rng.normal(0, 1, n)
    two = actual + bias * rng.normal(0, 1, n)
    statistic, p = dm_test(actual.tolist(), one.tolist(), two.tolist(), loss=lambda a, b: abs(a - b), h=h,
                           harvey_correction=True, variance_estimator="acf")
    assert abs(p - 2 * stats.t.sf(abs(statistic), n - 1)) < 1e-8  # the package's own is to 1e-10 or so
    p = float(2 * stats.t.sf(abs(statistic), n - 1))
    return {"loss": np.abs(actual - one).tolist(), "other": np.abs(actual - two).tolist(), "overlap": h - 1,
            "statistic": statistic, "p_value": p}


SPECS = ["mean", "median", "p10", "p90", "quantile_0.35", "quantile_35", "quantile_0", "quantile_1", "trimmed_mean_0.1",
         "trimmed_mean_10", "trimmed_mean_0.45", "lower_trimmed_mean_0.2", "lower_trimmed_mean_99",
         "upper_trimmed_mean_15", "upper_trimmed_mean_0.999", "mean_minus_std_0.5", "mean_plus_std_1.25",
         "mean_quantile_mix_0.15_0.3", "mean_quantile_mix_20_1", "quantile_plus_std_0.15_0.12",
         "quantile_plus_std_15_-0.5"]


def share(text):
    value = float(text)
    return value / 100 if value > 1 else value


def aggregate(x, spec):
    """With NumPy and scipy alone."""
    words = spec.split("_")
    if spec in ("mean", "median"):
        return getattr(np, spec)(x)
    if spec in ("p10", "p90"):
        return np.quantile(x, float(spec[1:]) / 100)
    if spec.startswith("quantile_plus_std"):
        return np.quantile(x, share(words[3])) + float(words[4]) * np.std(x)
    if spec.startswith("quantile"):
        return np.quantile(x, share(words[1]))
    if spec.startswith("trimmed"):
        return stats.trim_mean(x, share(words[2]))
    if spec.startswith("lower"):
        ordered = np.sort(x)
        return np.mean(ordered[: max(1, int(len(x) * (1 - share(words[3]))))])
    if spec.startswith("upper"):
        ordered = np.sort(x)
        return np.mean(ordered[min(len(x) - 1, int(len(x) * share(words[3]))):])
    if spec.startswith("mean_minus"):
        return np.mean(x) - float(words[3]) * np.std(x)
    if spec.startswith("mean_plus"):
        return np.mean(x) + float(words[3]) * np.std(x)
    weight = float(words[4])
    return weight * np.mean(x) + (1 - weight) * np.quantile(x, share(words[3]))


class Mixture:
    def __init__(self, df, loc, scale, p):
        self.parts = [(w, stats.t(v, m, s)) for v, m, s, w in zip(df, loc, scale, p)]
        self.mean = sum(w * t.mean() for w, t in self.parts)
        second = sum(w * (t.var() + t.mean() ** 2) for w, t in self.parts)
        self.std = math.sqrt(second - self.mean**2)

    def cdf(self, x):
        return sum(w * t.cdf(x) for w, t in self.parts)

    def pdf(self, x):
        return sum(w * t.pdf(x) for w, t in self.parts)

    def quantile(self, q):
        return optimize.brentq(lambda x: self.cdf(x) - q, -1e4, 1e4, xtol=1e-13, rtol=8.9e-16)

    def between(self, low, high):
        """The mean between two quantiles, by integration piece by piece."""
        a = -np.inf if low == 0 else self.quantile(low)
        b = np.inf if high == 1 else self.quantile(high)
        edges = [a] + [x for x in np.linspace(-8, 8, 33) if a < x < b] + [b]
        total = sum(integrate.quad(lambda x: x * self.pdf(x), i, j, epsabs=1e-14, epsrel=1e-13, limit=400)[0]
                    for i, j in zip(edges, edges[1:]))
        return total / (high - low)


def exact(mixture, spec):
    words = spec.split("_")
    if spec == "mean":
        return mixture.mean
    if spec == "median":
        return mixture.quantile(0.5)
    if spec in ("p10", "p90"):
        return mixture.quantile(float(spec[1:]) / 100)
    if spec.startswith("quantile_plus_std"):
        return mixture.quantile(share(words[3])) + float(words[4]) * mixture.std
    if spec.startswith("quantile"):
        return mixture.quantile(share(words[1]))
    if spec.startswith("trimmed"):
        return mixture.between(share(words[2]), 1 - share(words[2]))
    if spec.startswith("lower"):
        return mixture.between(0, 1 - share(words[3]))
    if spec.startswith("upper"):
        return mixture.between(share(words[3]), 1)
    if spec.startswith("mean_minus"):
        return mixture.mean - float(words[3]) * mixture.std
    if spec.startswith("mean_plus"):
        return mixture.mean + float(words[3]) * mixture.std
    weight = float(words[4])
    return weight * mixture.mean + (1 - weight) * mixture.quantile(share(words[3]))


def baselines(rng, n, season, horizon):
    y = (100 + np.cumsum(rng.normal(0.1, 1, n)) + 3 * np.sin(np.arange(n) * 2 * np.pi / season)).astype(np.float32)
    out = {"y": [float(v) for v in y], "season": season, "horizon": horizon}
    for name, model in (("last_value", Naive()), ("seasonal_naive", SeasonalNaive(season)),
                        ("drift", RandomWalkWithDrift())):
        made = model.forecast(y.astype(np.float64), h=horizon, level=[90])
        out[name] = {"point": made["mean"].tolist(), "q95": made["hi-90"].tolist(), "q5": made["lo-90"].tolist()}
    return out


def main():
    rng = np.random.default_rng(20240607)
    samples = [rng.normal(3, 2, 256), rng.standard_t(3, 101), rng.exponential(2, 8), np.array([1.5])]
    mixture = {"df": [2.5, 4.0, 9.0, 60.0], "loc": [-0.4, 0.1, 0.5, 1.5], "scale": [0.3, 0.5, 0.2, 0.9],
               "probability": [0.2, 0.4, 0.3, 0.1]}
    known = Mixture(mixture["df"], mixture["loc"], mixture["scale"], mixture["probability"])
    smooth = [s for s in SPECS if s not in ("quantile_0", "quantile_1")]
    everything = {
        "levels": LEVELS,
        "normal_quantiles": [float(stats.norm.ppf(q)) for q in LEVELS],
        "measures": [measures(rng, n) for n in (40, 257)],
        "paired": [paired(rng, n, h, bias) for n, h, bias in ((30, 1, 1.3), (80, 4, 1.0), (200, 7, 0.8), (3, 1, 1.0))],
        "student": [{"t": t, "df": df, "p": float(2 * stats.t.sf(abs(t), df))}
                    for t in (0.0, 0.3, -2.5, 12.0) for df in (1, 2, 7, 500)],
        "aggregates": [{"samples": x.tolist(), "expected": {s: float(aggregate(x, s)) for s in SPECS}}
                       for x in samples],
        "exact": {**mixture, "expected": {s: float(exact(known, s)) for s in smooth}},
        "baselines": [baselines(rng, n, m, h) for n, m, h in ((200, 5, 12), (37, 7, 3), (60, 12, 30))],
    }
    path = os.path.join(os.path.dirname(__file__), "..", "data", "backtest", "expected.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(everything, file, indent=0)
        file.write("\n")


main()
