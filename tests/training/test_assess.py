# SPDX-License-Identifier: Apache-2.0
"""The page of the evaluation: classes, calibration, short histories, forecasts given up."""

import time

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("scipy")

from scipy.stats import norm

from toto_nano import baselines, evaluate, scores
from toto_nano.evaluation_data import Series
from toto_nano2 import classes, far, forecasts, probes


def make(name, interval, n, seed=1):
    values = 10 + np.random.default_rng(seed).standard_normal(n)
    return Series(name, "noise", interval, "here", "dev", values, "2000-01-01")


def normal(w, spread=1.0):
    return np.repeat(10 + spread * norm.ppf(scores.LEVELS)[None], w.series.horizon, 0)


def test_places_of_a_calibrated_forecast_are_even():
    windows = [w for k in range(40) for w in scores.windows(make(f"s{k}", "daily", 400, k))]
    table = classes.places(windows, [normal(w) for w in windows])
    assert abs(table.loc["1 to 4", "in 80 %"] - 0.8) < 0.03
    assert (abs(table.iloc[:, :10] - 0.1) < 0.03).all().all()
    narrow = classes.places(windows, [normal(w, 0.5) for w in windows])
    assert narrow.loc["1 to 4", "in 80 %"] < 0.55


def test_short_histories_are_cut():
    found = classes.short_histories([make("m", "monthly", 200), make("h", "hourly", 500)])
    assert len(found) == 3 and {w.series.name for w in found} == {"m"}
    assert all(len(w.past) == w.length == len(w.times) for w in found)
    quantiles = {"one": [normal(w) for w in found], "half": [None] + [normal(w) for w in found[1:]]}
    table = classes.against(found, quantiles, "one")
    assert table.loc["8 to 31", "one, error"] == pytest.approx(1)


def test_classes_and_what_is_lacking():
    windows = [w for s in (make("a", "monthly", 60), make("b", "yearly", 300)) for w in scores.windows(s)]
    found = {"seasonal naive": [baselines.seasonal_naive(w) for w in windows],
             "flat": [normal(w) for w in windows]}  # fmt: skip
    rows = classes.by_class(evaluate.collect(found, windows), {"a": 60, "b": 300})
    assert [row["series"] for kind, row in rows if kind == "length"] == [1, 1]
    found["late"] = [None if w.series.name == "b" else normal(w) for w in windows]
    kept, left, lacking = classes.complete(found, windows)
    assert lacking == 1 and {w.series.name for w in left} == {"a"} and len(kept["flat"]) == len(left)


def test_a_forecast_that_takes_too_long_is_given_up(tmp_path, monkeypatch):
    windows = scores.windows(make("a", "daily", 200))[:3]

    def slow(w):
        if w is windows[1]:
            time.sleep(30)
        return normal(w)

    monkeypatch.setitem(baselines.BASELINES, "slow", slow)
    monkeypatch.setitem(forecasts.SECONDS, "slow", 1)
    found = forecasts.statistical(tmp_path, "x", "slow", windows)
    assert found[1] is None and np.array_equal(found[0], normal(windows[0])) and found[2] is not None
    monkeypatch.delitem(baselines.BASELINES, "slow")  # now only the cache knows
    assert forecasts.statistical(tmp_path, "x", "slow", windows)[1] is None


def test_true_deciles_of_rare_demand_are_those_of_draws():
    rng = np.random.default_rng(3)
    for rate in (0.05, 0.15, 0.33):
        drawn = (rng.random(400_000) < rate) * (1 + rng.poisson(3, 400_000))
        found = probes.true_deciles(rate)
        assert found.tolist() == np.quantile(drawn, np.arange(1, 10) / 10, method="inverted_cdf").tolist()
    assert not probes.true_deciles(0.05).any() and probes.true_deciles(0.15)[-1] > 0
    made = list(probes.rare(np.random.default_rng(probes.SEED)))
    assert 0.4 < probes.rare_at_best(made) < 0.6


@pytest.mark.parametrize(("name", "module"), [("FLAIR", "flaircast"), ("fracast", "fracast")])
def test_small_rivals_give_all_levels_in_order(name, module):
    pytest.importorskip(module)
    steps = np.arange(200)
    series = Series("a", "noise", "monthly", "here", "dev", 50 + 10 * np.sin(steps * np.pi / 6) + 0.01 * steps, "2000-01-01")
    for w in scores.windows(series)[:2]:
        found = forecasts.one(name, w)
        assert found.shape == (series.horizon, len(scores.LEVELS))
        assert (np.diff(found, axis=1) >= 0).all()
        assert np.abs(found[:, scores.MEDIAN] - w.future).max() < 5  # a clean season of 10 up and down


def test_tables_have_whole_numbers_and_gaps():
    import pandas as pd

    table = pd.DataFrame({"series": [3, 12], "error": [0.5, np.nan]}, index=["a", "b"])
    assert evaluate.markdown(table).split("\n")[2:] == ["| a | 3 | 0.500 |", "| b | 12 |  |"]


def test_far_horizons_are_judged_by_bands_against_the_last_week():
    y = np.random.default_rng(1).normal(size=168 * 12)
    hourly = Series("one", "any", "hourly", "made", "test", y, "2020-01-01")
    windows = scores.windows(far.far(hourly), 6, 504)
    assert windows and all(len(w.future) == 336 for w in windows)
    repeated = [np.repeat(np.concatenate([w.past[-168:]] * 2)[:, None], len(scores.LEVELS), 1) for w in windows]
    for _, _, error, share in far.judged(windows, repeated):
        assert error == pytest.approx(1) and share == 0
    wide = [r + np.linspace(-9, 9, len(scores.LEVELS)) for r in repeated]
    for q, w in zip(wide, windows):
        q[168:, scores.MEDIAN] = w.future[168:] + 0.5 * (q[168:, scores.MEDIAN] - w.future[168:])
    errors = [error for _, _, error, _ in far.judged(windows, wide)]
    assert errors == pytest.approx([1, 1, 1, 0.5, 0.5]) and all(row[3] == 1 for row in far.judged(windows, wide))
