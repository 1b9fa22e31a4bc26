# SPDX-License-Identifier: Apache-2.0
"""The drop-ins against the outputs of the official implementations (tests/data/golden), through their own calls; and
GluonTS's own machinery over the predictors."""

import json
import struct

import numpy as np
import pytest

import toto_cpp
from conftest import GOLDEN, NANO1
from toto_cpp.compat import MaskedTimeseries, Toto, Toto2GluonTSModel, Toto2GluonTSModelConfig, Toto2Model, TotoForecaster, TotoPipeline

TYPES = {"F32": np.float32, "F64": np.float64, "U8": np.uint8, "I32": np.int32}


def tensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    out = {}
    for name, t in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + o for o in t["data_offsets"])
            out[name] = np.frombuffer(data[begin:end], TYPES[t["dtype"]]).reshape(t["shape"])
    return out


def worst(found, expected, scale):
    return float(np.max(np.abs(found - expected) / (scale + np.abs(expected))))


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("case", ["a", "b", "c", "exogenous", "extreme", "scaler-global", "scaler-step"])
def test_toto_forecaster_in_mean_mode(case, cached):
    folder = GOLDEN / f"toto1-tiny-{case}"
    given, expected = tensors(folder / "inputs.safetensors"), tensors(folder / "expected.safetensors")
    future = given.get("future_exogenous")
    wanted = expected["mean.cached" if cached else "mean.uncached"]
    toto = Toto.from_pretrained(str(folder)).to("cpu").eval()
    inputs = MaskedTimeseries(
        given["series"], given["padding_mask"].astype(bool), given["id_mask"], np.zeros_like(given["id_mask"]),
        np.ones(given["series"].shape[:2]), 0 if future is None else future.shape[1],
    )  # fmt: skip
    found = TotoForecaster(toto.model).forecast(inputs.to("cpu"), wanted.shape[-1], use_kv_cache=cached, future_exogenous_variables=future)
    assert found.samples is None and found.mean.shape == wanted.shape
    scale = expected["prefill.scale"][..., -1:]
    assert worst(found.mean, wanted, scale) <= 2e-5


def test_toto_forecaster_with_samples():
    folder = GOLDEN / "toto1-tiny-a"
    given = tensors(folder / "inputs.safetensors")
    series = given["series"][0]
    inputs = MaskedTimeseries(series, np.ones(series.shape, bool), np.zeros((3, 1)), np.zeros(series.shape), np.ones(3))
    forecaster = TotoForecaster(Toto.from_pretrained(folder))
    found = forecaster.forecast(inputs, prediction_length=20, num_samples=2000, samples_per_batch=100)
    assert found.samples.shape == (1, 3, 20, 2000) and found.mean.shape == found.median.shape == found.std.shape == (1, 3, 20)
    error = 5 * found.std / np.sqrt(2000)
    assert (np.abs(found.samples.mean(-1) - found.mean) < error).all()
    np.testing.assert_array_equal(found.quantile(0.25), np.quantile(found.samples, 0.25, axis=-1).astype(np.float32))
    with pytest.raises(AssertionError, match="divisible"):
        forecaster.forecast(inputs, 20, num_samples=15)
    with pytest.raises(AssertionError, match="samples"):
        forecaster.forecast(inputs, 20).quantile(0.5)


CASES = ["uni", "multi", "cov", "switches", "degenerate", "onepatch"]


@pytest.mark.parametrize("case", CASES)
def test_toto2_model(case):
    folder = GOLDEN / f"toto2-tiny-{case}"
    given, expected = tensors(folder / "inputs.safetensors"), tensors(folder / "expected.safetensors")
    model = Toto2Model.from_pretrained(folder).to("cpu").eval()
    compared = 0
    for call in json.loads((folder / "case.json").read_text())["calls"]:
        wanted = expected[call["name"] + ".quantiles"]
        options = {k: v for k, v in call.items() if k not in ("name", "horizon", "trace", "precision")}
        found = model.forecast(dict(given), call["horizon"], **options)
        assert found.shape == wanted.shape
        finite = np.isfinite(wanted)
        scale = np.nanmax(np.abs(given["target"]), axis=-1)[None, :, :, None] + 1e-3
        assert worst(np.where(finite, found, 0), np.where(finite, wanted, 0), scale) <= 1e-4, call["name"]
        compared += 1
    assert compared > 0


def test_toto2_covariates():
    """Known ahead in the horizon or not: what is there, and that it is, changes the forecast."""
    given = dict(tensors(GOLDEN / "toto2-tiny-cov" / "inputs.safetensors"))
    model = Toto2Model.from_pretrained(GOLDEN / "toto2-tiny-cov")
    found = model.forecast(given, 29)
    assert found.shape == (9, 2, 2, 29)
    mask = given["known_dynamic_mask"].copy()
    assert not mask[..., 48:].all()
    mask[..., 48:] = 1
    whole = model.forecast({**given, "known_dynamic_mask": mask}, 29)
    assert (whole != found).any()
    changed = given["known_dynamic"].copy()
    changed[..., 48:] += 1
    assert (model.forecast({**given, "known_dynamic": changed, "known_dynamic_mask": mask}, 29) != whole).any()


def test_toto1_takes_no_gaps_ahead(toto1):
    values, ahead = np.zeros((2, 64), np.float32), np.zeros((1, 8), np.float32)
    with pytest.raises(toto_cpp.DataError, match="missing_covariate"):
        toto1.forecast(values, 8, exogenous=1, future_exogenous=ahead, future_mask=ahead > 0)
    with pytest.raises(toto_cpp.UsageError, match="future_mask"):
        toto1.forecast(values, 8, exogenous=1, future_exogenous=ahead, future_mask=ahead[:, 1:] > 0)


def test_toto2_says_what_it_does_not_know():
    model = Toto2Model.from_pretrained(GOLDEN / "toto2-tiny-uni")
    given = tensors(GOLDEN / "toto2-tiny-uni" / "inputs.safetensors")
    with pytest.warns(UserWarning, match="modus"):
        model.forecast(given, 8, modus=1)
    with pytest.raises(AssertionError, match="divisible by patch_size"):
        model.forecast(given, 8, decode_block_size=3)
    with pytest.raises(RuntimeError, match="whole patches"):
        model.forecast({**given, "target": given["target"][..., 1:], "target_mask": given["target_mask"][..., 1:]}, 8)
    with pytest.raises(ValueError, match="toto-1.0"):
        Toto2Model.from_pretrained(GOLDEN / "toto1-tiny-a")


class Tensor(np.ndarray):
    """As much of torch's tensor as the drop-ins use."""

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return np.asarray(self)


def test_tensors_in_tensors_out(monkeypatch):
    """Where the inputs are torch's, the results are; torch is not imported for it."""
    import sys
    import types

    kind = type("Tensor", (Tensor,), {"__module__": "torch"})
    fake = types.ModuleType("torch")
    fake.from_numpy = lambda array: array.view(kind)
    monkeypatch.setitem(sys.modules, "torch", fake)
    given = tensors(GOLDEN / "toto2-tiny-uni" / "inputs.safetensors")
    plain = Toto2Model.from_pretrained(GOLDEN / "toto2-tiny-uni").forecast(given, 8)
    found = Toto2Model.from_pretrained(GOLDEN / "toto2-tiny-uni").forecast({k: v.view(kind) for k, v in given.items()}, 8)
    assert type(found) is kind and type(plain) is np.ndarray
    np.testing.assert_array_equal(found.cpu().numpy(), plain)


def test_pipeline(wave):
    pipeline = TotoPipeline.from_pretrained(device="cpu", torch_compile=True, compile_mode="reduce-overhead")
    pipeline.to("cpu").warmup([(512, 24)])
    built = pipeline.counters["plan_builds"]
    assert pipeline.predict(wave, prediction_length=24, num_samples=16, quantile_levels=[0.5]).quantiles.shape == (1, 24)
    assert pipeline.counters["plan_builds"] == built
    eager = TotoPipeline.from_pretrained(torch_compile=False)
    assert eager.model.settings["mode"][0] == "eager"
    with pytest.raises(ValueError, match="compile_mode"):
        TotoPipeline.from_pretrained(compile_mode="fast")


def dataset(target):
    pd = pytest.importorskip("pandas")
    start = pd.Period("2024-01-01", freq="h")
    return [{"target": t, "start": start, "item_id": f"s{i}"} for i, t in enumerate(target)]


def test_the_default_is_of_toto2():
    assert Toto2Model.from_pretrained(None).core.info.name == "toto-nano-2"
    with pytest.raises(ValueError, match="toto-nano-2 is toto-2.0: use toto_cpp.compat.toto2"):
        Toto.from_pretrained(None)
    assert Toto.from_pretrained(str(NANO1)).core.info.parameters == 4_759_280


def test_gluonts_predictor_of_toto1(nano1, wave):
    pytest.importorskip("gluonts")
    from gluonts.dataset.common import ListDataset
    from gluonts.evaluation import Evaluator, make_evaluation_predictions

    from toto_cpp.compat.gluonts import TotoPredictor

    data = ListDataset(dataset([np.tile(wave, 2), np.tile(wave * 3, 2)]), freq="h")
    predictor = TotoPredictor.create_for_eval(nano1, prediction_length=24, context_length=512)
    forecasts, truth = make_evaluation_predictions(data, predictor, num_samples=50)
    forecasts, truth = list(forecasts), list(truth)
    assert [f.samples.shape for f in forecasts] == [(50, 24)] * 2 and forecasts[1].item_id == "s1"
    metrics, _ = Evaluator(num_workers=0)(iter(truth), iter(forecasts))
    assert metrics["MASE"] < 1
    both = list(predictor.predict(dataset([np.stack([wave, wave])]), num_samples=7))
    assert both[0].samples.shape == (7, 24, 2)
    assert next(iter(predictor.predict(dataset([wave])))).samples.shape == (1, 24)


def test_gluonts_predictor_of_toto2():
    pytest.importorskip("gluonts")
    from gluonts.dataset.split import split
    from gluonts.ev.metrics import MeanWeightedSumQuantileLoss
    from gluonts.model import evaluate_model

    from gluonts.dataset.common import ListDataset

    model = Toto2Model.from_pretrained(GOLDEN / "toto2-tiny-uni")
    config = Toto2GluonTSModelConfig(prediction_length=12, context_length=128, target_dim=1, quantiles=[0.1, 0.5, 0.9])
    predictor = Toto2GluonTSModel(model, config).create_predictor(batch_size=3, device="cpu")
    values = np.sin(np.arange(300) / 5)
    values[100:120] = np.nan
    forecasts = list(predictor.predict(dataset([values, values * 2, values[:50], values + 1])))
    assert [f.quantile(0.5).shape for f in forecasts] == [(12,)] * 4
    assert [f.item_id for f in forecasts] == ["s0", "s1", "s2", "s3"]
    # Scales with the series; what is known to the model is the last 120 steps.
    np.testing.assert_allclose(forecasts[1].quantile(0.9), 2 * forecasts[0].quantile(0.9), rtol=1e-3, atol=1e-3)
    _, template = split(ListDataset(dataset([np.sin(np.arange(300) / 5)]), freq="h"), offset=-24)
    table = evaluate_model(
        predictor, test_data=template.generate_instances(12, windows=2), metrics=[MeanWeightedSumQuantileLoss([0.1, 0.5, 0.9])]
    )
    assert len(table) == 1
