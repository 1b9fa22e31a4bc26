# SPDX-License-Identifier: Apache-2.0
"""``predict_df`` beside that of chronos-forecasting, where it and torch are installed: the same arguments, and on the same
frames the same rows, columns and types. The model of theirs has made-up weights: its numbers are not compared."""

import inspect

import numpy as np
import pytest

torch = pytest.importorskip("torch")
chronos2 = pytest.importorskip("chronos.chronos2")
pd = pytest.importorskip("pandas")

import toto_cpp  # noqa: E402


@pytest.fixture(scope="module")
def theirs():
    config = chronos2.Chronos2CoreConfig(
        d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, architectures=["Chronos2Model"],
        chronos_config=dict(
            context_length=128, output_patch_size=16, input_patch_size=16, input_patch_stride=16, max_output_patches=4,
            quantiles=[0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99], use_reg_token=True, use_arcsinh=True,
        ),
    )  # fmt: skip
    torch.manual_seed(0)
    return chronos2.Chronos2Pipeline(chronos2.Chronos2Model(config).eval())


def frame(freq, ids, zone=None, dtype=np.float64):
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-01-31", periods=60, freq=freq, tz=zone)
    parts = [pd.DataFrame({"item_id": one, "timestamp": times, "target": rng.normal(size=60).cumsum()}) for one in ids]
    return pd.concat(parts, ignore_index=True).assign(second=1.0, target=lambda df: df.target.astype(dtype))


def test_the_arguments_are_those_of_chronos():
    wanted = [(p.name, p.default) for p in inspect.signature(chronos2.Chronos2Pipeline.predict_df).parameters.values()][1:-1]
    given = [(p.name, p.default) for p in inspect.signature(toto_cpp.predict_df).parameters.values()][1:-1]
    assert given == wanted


@pytest.mark.parametrize("freq", ["h", "D", "B", "W", "MS", "ME", "15min", "QS"])
@pytest.mark.parametrize("target", ["target", ["target", "second"]])
def test_rows_and_columns(nano, theirs, freq, target):
    df = frame(freq, ["b", "a", "c"])
    options = dict(target=target, prediction_length=7, quantile_levels=[0.1, 0.5, 0.9])
    a, b = theirs.predict_df(df, **options), nano.predict_df(df, **options)
    assert list(a.columns) == list(b.columns) and list(a.dtypes) == list(b.dtypes)
    for name in ("item_id", "timestamp", "target_name"):
        assert (a[name].to_numpy() == b[name].to_numpy()).all(), name


@pytest.mark.parametrize("ids", [[3, 1, 2], ["x"], pd.Categorical(["u", "v"])])
def test_kinds_of_ids(nano, theirs, ids):
    df = frame("h", list(ids), dtype=np.float32)
    a, b = theirs.predict_df(df, prediction_length=3), nano.predict_df(df, prediction_length=3)
    assert list(a.dtypes) == list(b.dtypes) and (a.item_id == b.item_id).all() and (a.timestamp == b.timestamp).all()


def test_covariates_known_ahead(nano, theirs):
    df = frame("D", ["a", "b"])
    future = nano.predict_df(df, prediction_length=5)[["item_id", "timestamp"]].assign(second=2.0)
    a, b = (model.predict_df(df, future, prediction_length=5) for model in (theirs, nano))
    assert list(a.columns) == list(b.columns) and (a.timestamp == b.timestamp).all()
