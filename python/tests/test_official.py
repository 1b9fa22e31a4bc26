# SPDX-License-Identifier: Apache-2.0
"""The drop-ins beside the official package toto-ts, where it and torch are installed: same signatures, same means,
samples of the same distribution, the same error for the same misuse."""

import inspect
import json

import numpy as np
import pytest

from conftest import GOLDEN
from toto_cpp.compat import MaskedTimeseries, Toto, TotoForecaster

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("toto.inference.forecaster")
FOLDER = GOLDEN / "toto1-tiny-a"


class Both(tuple):
    """Calls that forecast with each of them, and the series; `model` is the official one."""

    def __new__(cls, calls, model):
        self = super().__new__(cls, calls)
        self.model = model
        return self


@pytest.fixture(scope="module")
def both():
    """Calls that forecast with each of them."""
    from toto.data.util.dataset import MaskedTimeseries as Theirs
    from toto.model.toto import Toto as Official

    model = Official._from_pretrained(
        model_id=str(FOLDER), revision=None, cache_dir=None, force_download=False, proxies=None, resume_download=None,
        local_files_only=True, token=None, **json.loads((FOLDER / "config.json").read_text()),
    )  # fmt: skip
    torch.manual_seed(0)
    shape = (2, 3, 72)
    series, mask = torch.randn(shape).cumsum(-1), torch.ones(shape, dtype=torch.bool)
    mask[0, 1, :9] = False
    ids = torch.tensor([0, 0, 1]).view(1, 3, 1).expand(shape).contiguous()
    given = (series, mask, ids, torch.zeros(shape, dtype=torch.int), torch.ones(shape[:2], dtype=torch.int))
    official, ours = theirs.TotoForecaster(model.eval().model), TotoForecaster(Toto.from_pretrained(FOLDER).model)
    return Both(
        (lambda *a, **k: official.forecast(Theirs(*given), *a, **k), lambda *a, **k: ours.forecast(MaskedTimeseries(*given), *a, **k), series),
        model,
    )


def test_signatures():
    for name in ("__init__", "forecast"):
        a, b = (inspect.signature(getattr(c, name)).parameters.values() for c in (theirs.TotoForecaster, TotoForecaster))
        assert [(p.name, p.default, p.kind) for p in a] == [(p.name, p.default, p.kind) for p in b]
    from toto.data.util.dataset import MaskedTimeseries as Theirs

    assert Theirs._fields == MaskedTimeseries._fields


@pytest.mark.parametrize("cached", [True, False])
def test_means(both, cached):
    official, ours, series = both
    a, b = official(40, use_kv_cache=cached).mean, ours(40, use_kv_cache=cached).mean
    assert type(a) is type(b) and a.dtype == b.dtype
    scale = series.std(-1, keepdim=True)
    assert float(((a - b).abs() / (scale + a.abs())).max()) <= 2e-5


def test_samples(both):
    official, ours, _ = both
    size = 2000
    a, b = (f(16, num_samples=size, samples_per_batch=100) for f in (official, ours))
    assert a.samples.shape == b.samples.shape and a.samples.dtype == b.samples.dtype
    for level in (0.1, 0.5, 0.9):
        below = (b.samples <= a.quantile(level).unsqueeze(-1)).float().mean(-1)
        assert float((below - level).abs().max()) < 5 * np.sqrt(2 * level * (1 - level) / size)


def test_misuse(both):
    for call in both[:2]:
        with pytest.raises(AssertionError, match="num_samples must be divisible"):
            call(8, num_samples=15)


@pytest.mark.parametrize("dim", [1, 2])
def test_predictors_of_gluonts(both, dim):
    """One trajectory of means, with and without a cache of keys; short and long histories, missing values."""
    pd = pytest.importorskip("pandas")
    from toto.inference.gluonts_predictor import Multivariate as Mode
    from toto.inference.gluonts_predictor import TotoPredictor as Official

    from toto_cpp.compat.gluonts import Multivariate, TotoPredictor

    for name in ("create_for_eval", "predict"):
        a, b = (inspect.signature(getattr(c, name)).parameters.values() for c in (Official, TotoPredictor))
        assert [(p.name, p.kind) for p in a] == [(p.name, p.kind) for p in b]
    rng = np.random.default_rng(0)
    data = []
    for i, n in enumerate((300, 200, 256)):
        values = rng.normal(size=(dim, n)).cumsum(1).astype(np.float32)
        values[:, 150:153] = np.nan
        data.append({"target": values[0] if dim == 1 else values, "start": pd.Period("2024-01-01", freq="h"), "item_id": f"s{i}"})
    official = Official.create_for_eval(both.model, 20, 128, mode=Mode(batch_size=2))
    ours = TotoPredictor.create_for_eval(Toto.from_pretrained(FOLDER), 20, 128, mode=Multivariate(batch_size=2))
    for cached in (False, True):
        for a, b, entry in zip(official.predict(data, use_kv_cache=cached), ours.predict(data, use_kv_cache=cached), data, strict=True):
            assert (a.item_id, a.start_date, a.samples.shape) == (b.item_id, b.start_date, b.samples.shape)
            scale = np.nanstd(entry["target"])
            for x, y in ((a.samples, b.samples), (a.mean, b.mean)):
                assert x.shape == y.shape and np.max(np.abs(x - y) / (scale + np.abs(x))) <= 1e-4
