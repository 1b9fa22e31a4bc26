# SPDX-License-Identifier: Apache-2.0
"""Data frames in and out, of the same kind, with the columns of Chronos-2 and Nixtla."""

import numpy as np
import pytest

import toto_cpp

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


class Capsule:
    """Any library with the Arrow capsule interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


KINDS = {
    "pandas": lambda df: df,
    "polars": pl.from_pandas,
    "lazy": lambda df: pl.from_pandas(df).lazy(),
    "arrow": pa.Table.from_pandas,
    "capsule": lambda df: Capsule(pl.from_pandas(df)),
}


def to_pandas(frame):
    return frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()


def long(series=3, rows=200, freq="h", start="2024-01-01", tz=None):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "item_id": np.repeat([f"s{i}" for i in range(series)], rows),
            "timestamp": np.tile(pd.date_range(start, periods=rows, freq=freq, tz=tz), series),
            "target": rng.normal(size=series * rows).cumsum(),
        }
    )


def nixtla(df):
    return df.rename(columns={"item_id": "unique_id", "timestamp": "ds", "target": "y"})


@pytest.mark.parametrize("kind", KINDS)
def test_predict_df_is_the_array_call(nano, kind):
    df = long()
    out = nano.predict_df(KINDS[kind](df), prediction_length=12, quantile_levels=[0.1, 0.9])
    assert type(out) is {"pandas": pd.DataFrame, "polars": pl.DataFrame, "lazy": pl.DataFrame}.get(kind, pa.Table)
    out = to_pandas(out)
    # The columns of Chronos-2's predict_df.
    assert list(out.columns) == ["item_id", "timestamp", "target_name", "predictions", "0.1", "0.9"]
    assert out.predictions.dtype == out["0.1"].dtype == np.float32
    array = nano.forecast([g.target.to_numpy() for _, g in df.groupby("item_id")], 12, [0.1, 0.5, 0.9], ids=["s0", "s1", "s2"])
    np.testing.assert_array_equal(out["0.9"], array.quantiles[2].ravel())
    np.testing.assert_array_equal(out.predictions, array.quantiles[1].ravel())
    assert list(out.item_id) == ["s0"] * 12 + ["s1"] * 12 + ["s2"] * 12
    assert (pd.DatetimeIndex(out.timestamp[:12]) == pd.date_range("2024-01-09 08:00", periods=12, freq="h")).all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_order_of_rows_does_not_matter(nano, kind):
    df = long()
    shuffled = df.sample(frac=1, random_state=0)
    whole = to_pandas(nano.predict_df(KINDS[kind](df), prediction_length=5)).sort_values(["item_id", "timestamp"])
    mixed = to_pandas(nano.predict_df(KINDS[kind](shuffled.reset_index(drop=True)), prediction_length=5))
    assert list(mixed.item_id.unique()) == list(shuffled.item_id.unique())
    np.testing.assert_array_equal(mixed.sort_values(["item_id", "timestamp"]).predictions, whole.predictions)


@pytest.mark.parametrize("freq", ["D", "B", "MS", "ME", "W", "QS", "QE", "YS", "15min", "s"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_time_goes_on(toto1, freq, kind):
    df = long(1, 80, freq, "2020-01-31")
    wanted = pd.date_range("2020-01-31", periods=83, freq=freq)[-3:]
    for given in (None, freq):
        out = to_pandas(toto1.predict_df(KINDS[kind](df), prediction_length=3, freq=given))
        assert (pd.DatetimeIndex(out.timestamp) == wanted).all()


@pytest.mark.parametrize("freq", ["D", "h"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_time_zones(toto1, freq, kind):
    df = long(1, 80, freq, "2024-01-12", "Europe/Berlin")  # daily: past the change to summer time
    out = to_pandas(toto1.predict_df(KINDS[kind](df), prediction_length=3))
    assert str(out.timestamp.dtype.tz) == "Europe/Berlin"
    wanted = pd.date_range("2024-01-12", periods=83, freq=freq, tz="Europe/Berlin")[-3:]
    assert list(out.timestamp) == list(wanted)


def test_ids_and_values_of_all_types(toto1):
    df = long(2, 64)
    plain = toto1.predict_df(df, prediction_length=2).predictions.to_numpy()
    category = df.assign(item_id=df.item_id.astype("category"))
    out = toto1.predict_df(category, prediction_length=2)
    assert isinstance(out.item_id.dtype, pd.CategoricalDtype)
    np.testing.assert_array_equal(out.predictions, plain)
    numbers = df.assign(item_id=(df.item_id == "s1").astype("int64"))
    assert toto1.predict_df(numbers, prediction_length=2).item_id.dtype == np.int64
    nullable = df.assign(target=df.target.astype("Float64"))
    nullable.loc[5, "target"] = pd.NA
    missing = df.copy()
    missing.loc[5, "target"] = np.nan
    np.testing.assert_array_equal(
        toto1.predict_df(nullable, prediction_length=2).predictions, toto1.predict_df(missing, prediction_length=2).predictions
    )
    dictionaries = (pa.dictionary(pa.int16(), pa.string()), pa.dictionary(pa.int32(), pa.large_string()))
    for kind in (pa.string(), pa.large_string(), pa.string_view(), *dictionaries):
        ids = pa.chunked_array([pa.array(df.item_id[:50]).cast(kind), pa.array(df.item_id[50:]).cast(kind)])
        table = pa.table({"item_id": ids, "timestamp": pa.array(df.timestamp), "target": pa.array(df.target)})
        out = toto1.predict_df(table, prediction_length=2)
        assert out.schema.field("item_id").type == kind and out["item_id"].to_pylist() == ["s0", "s0", "s1", "s1"]
        np.testing.assert_array_equal(out["predictions"].to_numpy(), plain)
        nixtlas = table.rename_columns(["unique_id", "ds", "y"])
        assert toto1.forecast_df(nixtlas, 2).schema.field("unique_id").type == kind
        assert toto1.cross_validation(nixtlas, 2, n_windows=2).schema.field("unique_id").type == kind
    for kind in (pl.Categorical(), pl.Enum(["s1", "s0"])):
        enum = pl.from_pandas(df).with_columns(pl.col("item_id").cast(kind))
        out = toto1.predict_df(enum, prediction_length=2)
        assert out["item_id"].dtype == kind
        np.testing.assert_array_equal(out["predictions"].to_numpy(), plain)
    index = df.assign(timestamp=np.tile(np.arange(64), 2))
    assert list(toto1.predict_df(index, prediction_length=2).timestamp) == [64, 65, 64, 65]


def test_gaps_are_missing_values(toto1):
    df = long(2, 100)
    holes = df.copy()
    holes.loc[[50, 51, 170], "target"] = np.nan
    gaps = df.drop(index=[50, 51, 170])
    for kind in ("pandas", "polars"):
        a = to_pandas(toto1.predict_df(KINDS[kind](holes), prediction_length=3))
        b = to_pandas(toto1.predict_df(KINDS[kind](gaps), prediction_length=3))
        np.testing.assert_array_equal(a.predictions, b.predictions)
        assert (a.timestamp == b.timestamp).all()


def test_targets_and_covariates(toto1):
    df = long(2, 96).assign(second=1.0, promo=np.tile(np.sin(np.arange(96)), 2))
    two = toto1.predict_df(df, target=["target", "second"], prediction_length=4)
    assert list(two.target_name[:8]) == ["target"] * 4 + ["second"] * 4 and len(two) == 16
    future = toto1.predict_df(df, prediction_length=4)[["item_id", "timestamp"]].assign(promo=1.0)
    known = toto1.predict_df(df, future, prediction_length=4)
    assert (known.predictions != toto1.predict_df(df, prediction_length=4).predictions).any()
    array = toto1.forecast(
        df.target[:96].to_numpy(), 4, [0.5], ids="s0", covariates=np.r_[df.promo[:96], np.ones(4)][None].astype(np.float32)
    )
    np.testing.assert_array_equal(known.predictions[:4], array.median)
    with pytest.raises(toto_cpp.UsageError, match="missing_covariate"):
        toto1.predict_df(df, future[:-1], prediction_length=4)


def test_joint_forecasts(toto1):
    df = long(3, 64)
    joint = toto1.predict_df(df, prediction_length=4, cross_learning=True)
    assert len(joint) == 12 and (joint.predictions != toto1.predict_df(df, prediction_length=4).predictions).any()


def test_columns_of_forecast_df(nano):
    df = nixtla(long())
    out = nano.forecast_df(df, 6, level=[80, 95])
    assert list(out.columns) == ["unique_id", "ds", "Toto", "Toto-lo-80", "Toto-lo-95", "Toto-hi-80", "Toto-hi-95"]
    assert ((out["Toto-lo-95"] <= out["Toto-lo-80"]) & (out["Toto-hi-80"] <= out["Toto-hi-95"])).all()
    out = nano.forecast_df(df, 6, quantiles=[0.1, 0.975], model_name="T")
    assert list(out.columns) == ["unique_id", "ds", "T", "T-q-10", "T-q-97.5"]
    with pytest.raises(toto_cpp.UsageError, match="conflicting_options"):
        nano.forecast_df(df, 6, level=[80], quantiles=[0.1])


def test_the_columns_are_those_of_statsforecast(nano):
    statsforecast = pytest.importorskip("statsforecast")
    from statsforecast.models import SeasonalNaive

    df = nixtla(long())
    theirs = statsforecast.StatsForecast(models=[SeasonalNaive(24, alias="Toto")], freq="h")
    for options in (dict(), dict(level=[80, 95])):
        mine, other = nano.forecast_df(df, 6, **options), theirs.forecast(df=df, h=6, **options)
        assert list(mine.columns) == list(other.columns) and list(mine.dtypes) == list(other.dtypes)
        assert (mine.ds.to_numpy() == other.ds.to_numpy()).all() and (mine.unique_id.to_numpy() == other.unique_id.to_numpy()).all()
    mine = nano.cross_validation(df, 6, n_windows=3, step_size=2)
    other = theirs.cross_validation(df=df, h=6, n_windows=3, step_size=2)
    assert list(mine.columns) == list(other.columns)
    for name in ("unique_id", "ds", "cutoff"):
        assert (mine[name].to_numpy() == other[name].to_numpy()).all()
    np.testing.assert_array_equal(mine.y, other.y)
    assert list(mine.dtypes) == list(other.dtypes)


def test_utilsforecast_evaluates_them(nano):
    pytest.importorskip("utilsforecast")
    from utilsforecast.evaluation import evaluate
    from utilsforecast.losses import coverage, mae

    for kind in ("pandas", "polars"):
        df = KINDS[kind](nixtla(long()))
        cv = nano.cross_validation(df, 6, n_windows=2, level=[80])
        cv = cv.drop(columns="cutoff") if kind == "pandas" else cv.drop("cutoff")
        scores = evaluate(cv, metrics=[mae, coverage], level=[80])
        assert len(scores) == 6


def test_cross_validation_sees_the_past_alone(nano):
    df = nixtla(long(1, 150))
    whole = nano.cross_validation(df, 5, n_windows=2)
    changed = df.copy()
    changed.loc[145:, "y"] += 100
    np.testing.assert_array_equal(nano.cross_validation(changed, 5, n_windows=2).Toto, whole.Toto)
    first = nano.forecast(df.y[:140].to_numpy(), 5, [0.5], ids="s0@140")
    np.testing.assert_array_equal(whole.Toto[:5], first.median)
    assert list(whole.cutoff.unique()) == [df.ds[139], df.ds[144]]
    with pytest.raises(toto_cpp.UsageError, match="too_short"):
        nano.cross_validation(df, 80, n_windows=2)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_anomalies(nano, kind):
    t = np.arange(600)
    y = np.sin(t / 6) + np.random.default_rng(0).normal(size=600) / 50
    y[500] += 5
    df = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024-01-01", periods=600, freq="h"), "y": y})
    out = to_pandas(nano.detect_anomalies(KINDS[kind](df), level=99))
    assert list(out.columns) == ["unique_id", "ds", "y", "Toto", "Toto-lo-99", "Toto-hi-99", "anomaly"]
    assert out.ds.iloc[-1] == df.ds.iloc[-1] and out.anomaly.dtype == bool
    assert out.set_index("ds").anomaly[df.ds[500]]
    assert out.anomaly.mean() < 0.1


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_mistakes_in_frames(toto1, kind):
    df = long(2, 64)
    make = KINDS[kind]
    with pytest.raises(toto_cpp.UsageError, match="missing_column.*'value'.*item_id, timestamp, target"):
        toto1.predict_df(make(df), target="value", prediction_length=2)
    with pytest.raises(toto_cpp.DataError, match="duplicate_timestamp.*series 's1'"):
        toto1.predict_df(make(pd.concat([df, df[-1:]], ignore_index=True)), prediction_length=2)
    with pytest.raises(toto_cpp.UsageError, match="not_a_number"):
        toto1.predict_df(make(df.assign(target="x")), prediction_length=2)
    with pytest.raises(toto_cpp.UsageError, match="missing_id"):
        toto1.predict_df(make(df.assign(item_id=df.item_id.where(df.index != 3))), prediction_length=2)
    with pytest.raises(toto_cpp.UsageError, match="invalid_freq"):
        toto1.predict_df(make(df), prediction_length=2, freq="fortnight")
    with pytest.raises(toto_cpp.UsageError, match="data frame"):
        toto1.predict_df({"a": 1}, prediction_length=2)


def test_parquet_files(toto1, tmp_path):
    import pyarrow.parquet as pq

    df = long(2, 64)
    pq.write_table(pa.Table.from_pandas(df), tmp_path / "in.parquet")
    out = toto1.predict_df(pq.read_table(tmp_path / "in.parquet"), prediction_length=2)
    pq.write_table(out, tmp_path / "out.parquet")
    np.testing.assert_array_equal(
        pd.read_parquet(tmp_path / "out.parquet").predictions, toto1.predict_df(df, prediction_length=2).predictions
    )


def test_forecasts_as_tables(nano):
    f = nano.forecast(np.sin(np.arange(200) / 4), 3, [0.5])
    for table in (f.to_pandas(), f.to_polars(), f.to_arrow()):
        assert len(table) == 3
    assert list(f.to_pandas().columns) == ["id", "variate", "step", "mean", "0.5"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_wide_frames(toto1, kind):
    df = long(3, 80)
    wide = df.pivot(index="timestamp", columns="item_id", values="target").reset_index()
    expected = toto1.predict_df(df, prediction_length=4)
    out = to_pandas(toto1.predict_df(KINDS[kind](wide), id_column=None, prediction_length=4))
    assert list(out.columns) == list(expected.columns)
    for name in ("item_id", "timestamp", "predictions", "0.9"):
        assert (out[name].to_numpy() == expected[name].to_numpy()).all()
    some = to_pandas(toto1.predict_df(KINDS[kind](wide), id_column=None, target=["s1"], prediction_length=4))
    np.testing.assert_array_equal(some.predictions, expected.predictions[4:8])


def test_a_crooked_series_does_not_change_its_neighbours(toto1):
    """Gaps of one are filled, whether another has timestamps at odd times or not; the other's rows follow one another."""
    df = long(3, 80)
    df = df.drop(index=range(20, 25)).reset_index(drop=True)  # a gap in the first
    crooked = df.copy()
    at = crooked.index[crooked.item_id == "s1"][30]
    crooked.loc[at, "timestamp"] += pd.Timedelta("7min")
    expected = toto1.predict_df(df, prediction_length=4, freq="h")
    with pytest.warns(UserWarning, match="1 series are irregular, among them 's1'"):
        found = toto1.predict_df(crooked, prediction_length=4, freq="h")
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    one = toto1.predict_df(df[df.item_id == "s0"], prediction_length=4, freq="h")
    np.testing.assert_array_equal(one.predictions, expected.predictions[:4])


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_frame_without_rows(toto1, kind):
    empty = long()[:0]
    with pytest.raises(toto_cpp.UsageError, match="no rows"):
        toto1.predict_df(KINDS[kind](empty), prediction_length=2)
    with pytest.raises(toto_cpp.UsageError, match="no rows"):
        toto1.forecast_df(KINDS[kind](nixtla(empty)), 2, freq="h")


@pytest.mark.parametrize(("freq", "rule"), [("h", "h"), ("D", "D"), ("M", "MS"), ("Q", "QS"), ("W-SUN", "W-MON")])
def test_periods_come_back_as_periods(nano, freq, rule):
    df = nixtla(long(series=2, freq=rule))
    df["ds"] = df.ds.dt.to_period(freq)
    out = nano.forecast_df(df, 3)
    assert out.ds.dtype == df.ds.dtype
    last = df.ds.iloc[-1]
    assert out.ds.tolist() == [last + 1, last + 2, last + 3] * 2
    assert nano.cross_validation(df, 3).cutoff.tolist() == [last - 3] * 6


def test_dates_of_arrow_in_pandas(nano):
    df = nixtla(long(series=1, freq="D"))
    dates = df.assign(ds=df.ds.astype(pd.ArrowDtype(pa.date32())))
    out, wanted = nano.forecast_df(dates, 3), nano.forecast_df(df, 3)
    assert pd.to_datetime(out.ds).tolist() == wanted.ds.tolist() and out.Toto.tolist() == wanted.Toto.tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_times_of_few_bits_do_not_wrap_around(nano, kind):
    df = nixtla(long(series=2, rows=56))
    df["ds"] = np.tile(np.arange(200, 256), 2).astype(np.uint8)
    out = to_pandas(nano.forecast_df(KINDS[kind](df), 3))
    assert out.ds.tolist() == [256, 257, 258] * 2
    df["ds"] -= 100
    assert to_pandas(nano.forecast_df(KINDS[kind](df), 3)).ds.dtype == np.uint8


@pytest.mark.parametrize("freq", ["0h", "0D", "0MS", 0, -1, True, "99999999999999h", "999999999YE", pd.Timedelta(0)])
def test_steps_that_lead_nowhere(nano, freq):
    with pytest.raises(toto_cpp.UsageError, match="invalid_freq"):
        nano.forecast_df(nixtla(long(rows=30)), 3, freq=freq)


@pytest.mark.parametrize("freq", [pd.Timedelta("1h"), pd.offsets.Hour(), np.timedelta64(1, "h"), pd.Timedelta("1h").to_pytimedelta()])
def test_steps_as_objects(nano, freq):
    df = nixtla(long(rows=30))
    pd.testing.assert_frame_equal(nano.forecast_df(df, 3, freq=freq), nano.forecast_df(df, 3, freq="h"))


def test_frames_that_are_none(nano):
    df = nixtla(long(series=2))
    for given, words in (
        (pd.concat([df, df[["y"]]], axis=1), r"duplicate_column.*2 columns 'y'"), (df.y, "invalid_input.*Series"),
        (pl.Series(df.y), "invalid_input.*Series"), (df.set_index(["unique_id", "ds"]), r"missing_column.*reset_index\(\)"),
        (df.assign(y=df.ds), "not_a_number.*datetime64"), (df.assign(y=df.y + 1j), "not_a_number.*complex"),
        (df.assign(y=pd.to_timedelta(df.y, unit="s")), "not_a_number.*timedelta"),
    ):  # fmt: skip
        with pytest.raises(toto_cpp.UsageError, match=words):
            nano.forecast_df(given, 3)
