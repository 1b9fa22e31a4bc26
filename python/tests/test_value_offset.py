# SPDX-License-Identifier: Apache-2.0
"""Values of float64 that float32 has too few digits for: forecast as differences from an exact offset."""

import json
import pickle
import subprocess

import numpy as np
import pytest

import toto_cpp

from conftest import PROGRAM

LEVEL = 1e9


def thousandths(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    return np.round(2 * np.sin(np.arange(rows) / 5) + rng.normal(size=rows) / 5, 3)


def frame(values, ids=("a",)):
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2024-01-01", periods=len(values), freq="h")
    return pd.concat([pd.DataFrame({"unique_id": one, "ds": times, "y": values}) for one in ids], ignore_index=True)


def program(path, *flags):
    done = subprocess.run([str(PROGRAM), "forecast", str(path), "--quiet", "--json", *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["series"]


def test_the_forecast_is_that_of_level_zero(nano):
    # Whole 1,024ths are exact at either level. Inputs that differ by a rounding may draw another component of the mixture.
    low = np.round(1024 * thousandths()) / 1024
    high = LEVEL + low
    np.testing.assert_array_equal(high - LEVEL, low)
    kept, plain = nano.forecast(high, 40, [0.1, 0.5, 0.9], samples=True), nano.forecast(low, 40, [0.1, 0.5, 0.9], samples=True)
    assert plain.mean.dtype == np.float32
    for name in ("mean", "median", "quantiles", "samples"):
        assert getattr(kept, name).dtype == np.float64
        np.testing.assert_allclose(getattr(kept, name) - LEVEL, getattr(plain, name), rtol=1e-6, atol=1e-6)
    assert kept.std.dtype == np.float32
    np.testing.assert_allclose(kept.std, plain.std, rtol=1e-6)
    np.testing.assert_allclose(kept.quantile(0.3) - LEVEL, plain.quantile(0.3), rtol=1e-6, atol=1e-6)
    again = pickle.loads(pickle.dumps(kept))
    np.testing.assert_array_equal(again.samples, kept.samples)


def test_without_offsets(nano):
    high = LEVEL + thousandths()
    rounded = nano.forecast(high, 12, value_offset=False)
    assert rounded.mean.dtype == np.float32
    np.testing.assert_array_equal(rounded.mean, nano.forecast(high.astype(np.float32), 12).mean)
    reference = nano.forecast(high, 12, as_reference=True)
    np.testing.assert_array_equal(reference.mean, nano.forecast(high.astype(np.float32), 12, as_reference=True).mean)
    # What float32 holds well enough keeps its bits.
    np.testing.assert_array_equal(nano.forecast(thousandths(), 12).mean, nano.forecast(thousandths().astype(np.float32), 12).mean)


def test_series_keep_their_numbers_beside_others(nano):
    high, low = LEVEL + thousandths(), thousandths(200, 1)
    both = nano.forecast([high, low, low.astype(np.float32)], 12, ids=["h", "l", "s"])
    assert both.mean.dtype == np.float64
    np.testing.assert_array_equal(both[0].mean, nano.forecast(high, 12, ids="h").mean)
    np.testing.assert_array_equal(both[1].mean, nano.forecast(low, 12, ids="l").mean)
    with toto_cpp.Service(nano) as service:
        np.testing.assert_array_equal(service.submit(high, 12, id="h").result().mean, both[0].mean)


def test_variates_masks_and_bounds(nano):
    high, low = LEVEL + thousandths(), thousandths(300, 1)
    joint = nano.forecast(np.stack([high, low]), 12)
    assert abs(joint.mean[0].mean() - LEVEL) < 5 and abs(joint.mean[1].mean()) < 5
    holes, seen = high.copy(), np.ones(300, bool)
    holes[100:110] = np.nan
    seen[100:110] = False
    garbage = np.where(seen, high, 0.0)  # what is not observed does not decide the offset
    with_nan = nano.forecast(holes, 12, missing="zero")
    assert nano.forecast(garbage, 12, mask=seen).mean.dtype == np.float64
    np.testing.assert_array_equal(nano.forecast(garbage, 12, mask=seen).mean, with_nan.mean)
    bounded = nano.forecast(high, 12, [0.1, 0.9], minimum=LEVEL - 1, integer=True)
    assert bounded.quantiles.min() >= LEVEL - 1 and (bounded.quantiles == np.round(bounded.quantiles)).all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_have_the_numbers_of_the_command_line(nano, kind, tmp_path):
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    from test_frames import KINDS, to_pandas

    df = frame(LEVEL + thousandths(), ("a", "b"))
    df.loc[df.index % 97 == 0, "y"] = np.nan
    df.to_csv(tmp_path / "x.csv", index=False)
    theirs = program(tmp_path / "x.csv", "--horizon=12", "--quantiles=0.1,0.5,0.9")
    assert all(one["value_offset"][0] for one in theirs)
    mine = to_pandas(nano.forecast_df(KINDS[kind](df), 12, level=[80]))
    for column, level in (("Toto", "0.5"), ("Toto-lo-80", "0.1"), ("Toto-hi-80", "0.9")):
        assert mine[column].dtype == np.float64
        np.testing.assert_array_equal(mine[column], np.concatenate([one["variates"][0]["quantiles"][level] for one in theirs]))
    renamed = KINDS[kind](df.rename(columns={"unique_id": "item_id", "ds": "timestamp", "y": "target"}))
    chronos = to_pandas(nano.predict_df(renamed, prediction_length=12, quantile_levels=[0.1, 0.9]))
    np.testing.assert_array_equal(chronos["predictions"], mine["Toto"])
    np.testing.assert_array_equal(chronos["0.9"], mine["Toto-hi-80"])
    cv = to_pandas(nano.cross_validation(KINDS[kind](df), 6, n_windows=2))
    assert np.abs(cv.y - cv.Toto).max() < 5
    found = to_pandas(nano.detect_anomalies(KINDS[kind](df), level=99))
    assert found.anomaly.mean() < 0.1


def test_long_tables_and_backtests(nano, tmp_path):
    pytest.importorskip("duckdb")
    pq = pytest.importorskip("pyarrow.parquet")
    df = frame(LEVEL + thousandths(), ("a", "b"))
    df.to_parquet(tmp_path / "x.parquet")
    toto_cpp.forecast_dataset(tmp_path / "x.parquet", tmp_path / "out", 12, form="long", freq="h", level=[80])
    out = pq.read_table(tmp_path / "out").to_pandas().sort_values(["unique_id", "ds"])
    mine = nano.forecast_df(df, 12, freq="h", level=[80])
    np.testing.assert_array_equal(out.Toto, mine.Toto)
    found = toto_cpp.backtest(df, nano, horizon=4, windows=3, context=128).forecasts_df()
    np.testing.assert_array_equal(found.actual[:12].astype(float), df.y[288:300])
    assert (found.toto.astype(float) - LEVEL).abs().max() < 5
    assert (found["q0.9"].astype(float) > found["q0.1"].astype(float)).all()
