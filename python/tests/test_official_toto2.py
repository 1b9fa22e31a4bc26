# SPDX-License-Identifier: Apache-2.0
"""The drop-ins beside the official package toto-2, where it and torch are installed (Python 3.12 and later): same
signatures, same quantiles, the same kind of error for the same misuse, the same forecasts through GluonTS."""

import dataclasses
import inspect
import json

import numpy as np
import pytest

from conftest import GOLDEN
from toto_cpp.compat import Toto2GluonTSModel, Toto2GluonTSModelConfig, Toto2Model
from toto_cpp.compat.gluonts import imputed

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("toto2")
CASES = ["uni", "multi", "cov", "switches", "degenerate", "onepatch"]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    def load(case, precision="float32"):
        """The model of a golden folder, without its other files, from each of them."""
        folder = tmp_path_factory.mktemp(case)
        for path in (GOLDEN / f"toto2-tiny-{case}").iterdir():
            if path.name == "config.json" or path.name.startswith("model"):
                (folder / path.name).symlink_to(path)
        own = Toto2Model.from_pretrained(str(folder), precision=precision)
        return theirs.Toto2Model.from_pretrained(str(folder)), own

    return load


def parameters_of(function):
    return [(p.name, p.default, p.kind) for p in inspect.signature(function).parameters.values()]


def test_signatures():
    for name in ("__init__", "create_predictor"):
        assert parameters_of(getattr(theirs.Toto2GluonTSModel, name)) == parameters_of(getattr(Toto2GluonTSModel, name))
    assert parameters_of(theirs.Toto2Model.forecast) == parameters_of(Toto2Model.forecast)
    fields = [[(f.name, f.default) for f in dataclasses.fields(c.Toto2GluonTSModelConfig)] for c in (theirs,)]
    assert fields == [[(f.name, f.default) for f in dataclasses.fields(Toto2GluonTSModelConfig)]]
    official = inspect.signature(theirs.Toto2Model.from_pretrained).parameters.values()
    own = inspect.signature(Toto2Model.from_pretrained).parameters
    for one in official:  # theirs takes whatever else by **model_kwargs
        assert one.kind is one.VAR_KEYWORD or own[one.name].kind == one.kind, one.name


def random_inputs(config, seed, variates=3, patches=5, known=0, horizon=0):
    draw = torch.Generator().manual_seed(seed)
    patch = config.patch_size
    steps = patches * patch
    target = torch.randn((2, variates, steps), generator=draw).cumsum(-1)
    mask = torch.rand(target.shape, generator=draw) > 0.1
    mask[0, 0, : patch + 3] = False
    ids = torch.tensor([[0] * (variates - 1) + [1], [0] * variates])
    inputs = {"target": target, "target_mask": mask, "series_ids": ids}
    if known:
        ahead = torch.randn((2, 2, known), generator=draw)
        seen = torch.rand(ahead.shape, generator=draw) > 0.3  # gaps in the context and in the horizon
        inputs |= {"known_dynamic": ahead, "known_dynamic_mask": seen, "known_dynamic_series_ids": torch.tensor([[0, 1], [0, 0]])}
    return inputs


def distance(a, b, target):
    """The largest |a - b| of a quantile, over |a| and the largest value of its series."""
    assert type(a) is type(b) and a.shape == b.shape
    scale = target.abs().amax(-1, keepdim=True) + 1e-3
    return float(((a - b).abs() / (scale + a.abs())).max())


def compare(a, b, target, bound=1e-4):
    assert a.dtype == b.dtype
    assert distance(a, b, target) <= bound


FREE_BLOCKS = 3e-4  # of blocks that run free in float32 (src/models/toto2/golden.cpp, kFreeBlocks)


def compare_free_blocks(official, own, ours, inputs, horizon, options):
    """``official`` and ``own`` are models in float64, ``ours`` is our forecast in float32. Blocks feed medians back, and these
    made-up weights multiply a rounding by three or so with each patch: after five, two float32 programs part by how the
    kernels of their machines round (theirs by up to 1.5e-3 from its own float64, ours by up to 4.6e-4; seeds 0 to 11). So
    blocks that run free are compared in float64, and in float32 ours is compared with that, up to four patches ahead."""
    wide = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
    truth = official.forecast(wide, horizon, **options)
    assert truth.dtype == torch.float64
    # Theirs computes a part in float32 even so: 5.6e-5 was seen.
    assert distance(truth, own.forecast(inputs, horizon, **options).double(), inputs["target"]) <= FREE_BLOCKS / 3
    if horizon <= 4 * official.config.patch_size:
        assert distance(truth, ours.double(), inputs["target"]) <= FREE_BLOCKS


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("options", [{}, {"decode_block_size": 8}, {"has_missing_values": False, "decode_block_size": None},
                                     {"decode_block_size": 16, "scaler_fallback_min_obs": 8, "quantile_real_cap_k": 1e4}],
                         ids=["plain", "blocks", "unmasked", "capped"])  # fmt: skip
def test_quantiles(both, case, options):
    official, own = both(case)
    official64, own64 = both(case, "float64")
    official64.double()
    blocks = bool(options.get("decode_block_size"))
    if blocks and options["decode_block_size"] % official.config.patch_size:
        options = {**options, "decode_block_size": official.config.patch_size}
    for seed, horizon in enumerate((1, 29, 40)):
        inputs = random_inputs(official.config, seed)
        expected, ours = official.forecast(inputs, horizon, **options), own.forecast(inputs, horizon, **options)
        if blocks:
            assert expected.dtype == ours.dtype
            compare_free_blocks(official64, own64, ours, inputs, horizon, options)
        else:
            compare(expected, ours, inputs["target"], 3e-5)


@pytest.mark.parametrize("case", ["cov", "multi"])
@pytest.mark.parametrize("block", [0, 8, 16])
def test_covariates_known_in_part(both, case, block):
    """Shorter than the context, up to the middle of the horizon, to its end, to the end of its last patch; gaps in all."""
    official, own = both(case)
    steps, horizon = 5 * official.config.patch_size, 3 * official.config.patch_size - 3
    for seed, known in enumerate((steps - 5, steps, steps + 9, steps + horizon, steps + horizon + 1, steps + horizon + 3)):
        inputs = random_inputs(official.config, seed, known=known)
        compare(
            official.forecast(inputs, horizon, decode_block_size=block), own.forecast(inputs, horizon, decode_block_size=block),
            inputs["target"], 3e-4,
        )  # fmt: skip


def test_exponential_tails_are_those_of_gluonts(both):
    """Of the forecast that the official GluonTS predictor returns."""
    import pandas
    from gluonts.model.forecast import QuantileForecast

    _, own = both("uni")
    values = np.sin(np.arange(64) / 5).astype(np.float32)
    levels = [0.001, 0.01, 0.05, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999]
    deciles = own.core.forecast(values, 20).quantiles
    found = own.core.forecast(values, 20, levels, tails="exponential").quantiles
    names = [f"0.{i}" for i in range(1, 10)]
    theirs = QuantileForecast(deciles, start_date=pandas.Period("2024-01-01", "D"), forecast_keys=names)
    for level, row in zip(levels, found):
        expected = theirs.quantile(level)
        assert np.max(np.abs(row - expected) / (1 + np.abs(expected))) < 1e-4  # theirs moves levels by 1e-8


def test_one_series_without_a_batch_axis(both):
    official, own = both("multi")
    inputs = {name: value[0] for name, value in random_inputs(official.config, 0).items()}
    compare(official.forecast(inputs, 9), own.forecast(inputs, 9), inputs["target"])


def test_nothing_ahead(both):
    official, own = both("uni")
    inputs = random_inputs(official.config, 0)
    for horizon in (0, -3):
        assert official.forecast(inputs, horizon).shape == own.forecast(inputs, horizon).shape


MISUSE = {
    "block": lambda i: (i, dict(decode_block_size=5)),
    "part of a patch": lambda i: ({**i, "target": i["target"][..., 1:], "target_mask": i["target_mask"][..., 1:]}, {}),
    "mask of floats": lambda i: ({**i, "target_mask": i["target_mask"].float()}, {}),
    "no ids": lambda i: ({k: v for k, v in i.items() if k != "series_ids"}, {}),
    "no mask": lambda i: ({k: v for k, v in i.items() if k != "target_mask"}, {}),
    "no target": lambda i: ({k: v for k, v in i.items() if k != "target"}, {}),
    "no mask of covariates": lambda i: ({k: v for k, v in i.items() if k != "known_dynamic_mask"}, {}),
    "no ids of covariates": lambda i: ({k: v for k, v in i.items() if k != "known_dynamic_series_ids"}, {}),
    "too many covariates": lambda i: ({**i, **{k: torch.cat([i[k]] * 3, -1) for k in ("known_dynamic", "known_dynamic_mask")}}, {}),
}


@pytest.mark.parametrize("kind", MISUSE)
def test_misuse(both, kind):
    """Ours is an error that the same ``except`` catches."""
    official, own = both("cov")
    inputs, options = MISUSE[kind](random_inputs(official.config, 0, known=48))
    with pytest.raises(Exception) as expected:
        official.forecast(inputs, 16, **options)
    kinds = [one for one in type(expected.value).__mro__ if one.__module__ == "builtins" and one not in (object, BaseException, Exception)]
    with pytest.raises(kinds[0]):
        own.forecast(inputs, 16, **options)


def test_a_missing_folder():
    for model in (theirs.Toto2Model, Toto2Model):
        with pytest.raises(OSError):
            model.from_pretrained("nobody/nothing", local_files_only=True)


def entries(lengths, dim, seed, ahead=0, known=0, past=0):
    import pandas as pd

    rng = np.random.default_rng(seed)
    out = []
    for i, n in enumerate(lengths):
        values = rng.normal(size=(dim, n)).cumsum(1).astype(np.float32)
        values[rng.random(values.shape) < 0.08] = np.nan
        if i == 0:
            values[:, :5] = np.nan
        one = {"target": values[0] if dim == 1 else values, "start": pd.Period("2024-01-01", freq="h"), "item_id": f"s{i}"}
        if known:
            one["feat_dynamic_real"] = rng.normal(size=(known, n + ahead)).astype(np.float32)
            one["feat_dynamic_real"][0, ::7] = np.nan
        if past:
            one["past_feat_dynamic_real"] = rng.normal(size=(past, n)).astype(np.float32)
        out.append(one)
    return out


@pytest.mark.parametrize("method", ["ffill", "linear", "none"])
@pytest.mark.parametrize(("dim", "known", "past"), [(1, 0, 0), (2, 0, 0), (1, 2, 0), (2, 1, 2)])
def test_predictors_of_gluonts(both, method, dim, known, past):
    official, own = both("multi")
    horizon = 21
    config = dict(
        prediction_length=horizon, context_length=64, target_dim=dim, feat_dynamic_real_dim=known, past_feat_dynamic_real_dim=past,
        imputation_internal=method, decode_block_size=16,
    )  # fmt: skip
    # Covariates end with the horizon: the official batches need them to have the same length.
    data = entries([200, 200, 200] if known else [200, 30, 64], dim, 3, horizon, known, past)
    a = theirs.Toto2GluonTSModel(official, theirs.Toto2GluonTSModelConfig(**config)).create_predictor(batch_size=2, device="cpu")
    b = Toto2GluonTSModel(own, Toto2GluonTSModelConfig(**config)).create_predictor(batch_size=2, device="cpu")
    for x, y, entry in zip(a.predict(data), b.predict(data), data, strict=True):
        assert (x.item_id, x.start_date, x.forecast_keys) == (y.item_id, y.start_date, y.forecast_keys)
        assert x.forecast_array.shape == y.forecast_array.shape and x.forecast_array.dtype == y.forecast_array.dtype
        scale = np.nanmax(np.abs(entry["target"]))
        assert np.max(np.abs(x.forecast_array - y.forecast_array)) <= 3e-4 * scale
        assert x.quantile(0.3).shape == y.quantile(0.3).shape


def test_imputation():
    from toto2 import model as module

    rng = np.random.default_rng(0)
    for seed in range(20):
        values = rng.normal(size=(3, 40)).astype(np.float32)
        values[rng.random(values.shape) < 0.5] = np.nan
        values[0, : seed % 7] = np.nan
        values[1, 33:] = np.nan
        values[2] = np.nan if seed == 5 else values[2]
        np.testing.assert_array_equal(imputed(values, "ffill"), module.ffill_imputation(values))
        np.testing.assert_allclose(imputed(values, "linear"), module.linear_imputation(values), rtol=1e-6, atol=1e-7)


def test_golden_calls(both):
    """The official package still gives what the golden case says."""
    folder = GOLDEN / "toto2-tiny-cov"
    from safetensors.torch import load_file

    given, expected = load_file(folder / "inputs.safetensors"), load_file(folder / "expected.safetensors")
    inputs = {k: v.bool() if k.endswith("mask") else v.long() if k.endswith("ids") else v for k, v in given.items()}
    official, own = both("cov")
    for call in json.loads((folder / "case.json").read_text())["calls"]:
        options = {k: v for k, v in call.items() if k not in ("name", "horizon", "trace", "precision")}
        wanted = expected[call["name"] + ".quantiles"].float()
        compare(official.forecast(inputs, call["horizon"], **options), wanted, inputs["target"], 3e-4)
        compare(own.forecast(inputs, call["horizon"], **options), wanted, inputs["target"], 3e-4)
