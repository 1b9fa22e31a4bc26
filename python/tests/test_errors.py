# SPDX-License-Identifier: Apache-2.0
"""Errors carry code, status, place and remedy."""

import pickle

import numpy as np
import pytest

import toto_cpp

CASES = [
    ("invalid_horizon", 2, toto_cpp.UsageError, dict(horizon=0)),
    ("invalid_horizon", 2, toto_cpp.UsageError, dict(horizon=-1)),
    ("invalid_horizon", 2, toto_cpp.UsageError, dict(horizon=100_001)),
    ("invalid_quantile", 2, toto_cpp.UsageError, dict(quantiles=[0.5, 1.0])),
    ("invalid_samples", 2, toto_cpp.UsageError, dict(num_samples=0, horizon=100)),
    ("invalid_seed", 2, toto_cpp.UsageError, dict(seed=-1)),
    ("invalid_choice", 2, toto_cpp.UsageError, dict(decode="fast")),
    ("invalid_choice", 2, toto_cpp.UsageError, dict(missing="mean")),
    ("invalid_context", 2, toto_cpp.UsageError, dict(context=0)),
    ("invalid_input", 2, toto_cpp.UsageError, dict(inputs="abc")),
    ("invalid_input", 2, toto_cpp.UsageError, dict(inputs=np.zeros((1, 1, 1, 1)))),
    ("invalid_input", 2, toto_cpp.UsageError, dict(inputs=np.float32(3))),
    ("invalid_input", 2, toto_cpp.UsageError, dict(inputs=[[1.0, 2.0]], ids=["a", "b"])),
    ("invalid_input", 2, toto_cpp.UsageError, dict(mask=np.ones(7))),
    ("missing_value", 65, toto_cpp.DataError, dict(inputs=[1.0, float("nan")], missing="error")),
    ("not_finite", 65, toto_cpp.DataError, dict(inputs=[1.0, float("inf")])),
    ("not_finite", 65, toto_cpp.DataError, dict(inputs=np.array([1.0, 1e300]))),
    ("invalid_series", 65, toto_cpp.DataError, dict(inputs=np.zeros(0, np.float32))),
    ("duplicate_id", 65, toto_cpp.DataError, dict(inputs=[[1.0, 2.0], [1.0, 2.0]], ids=["a", "a"])),
]


@pytest.mark.parametrize("code, status, kind, arguments", CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_codes(nano, wave, code, status, kind, arguments):
    with pytest.raises(kind) as caught:
        nano.forecast(**{"inputs": wave, "horizon": 8, **arguments})
    error = caught.value
    assert (error.code, error.status) == (code, status)
    assert f"[{code}]" in str(error) and "\n" not in str(error)
    assert isinstance(error, toto_cpp.TotoError) and isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, again.where, str(again)) == (kind, code, error.where, str(error))


def test_loading(tmp_path):
    with pytest.raises(toto_cpp.MissingInputError) as caught:
        toto_cpp.load(tmp_path / "nothing")
    assert isinstance(caught.value, FileNotFoundError) and caught.value.code == "model_not_found"
    with pytest.raises(toto_cpp.UsageError) as caught:
        toto_cpp.load(mode="fast")
    assert caught.value.code == "unknown_mode" and caught.value.field == "mode"
    with pytest.raises(TypeError, match="no option 'modus'"):
        toto_cpp.load(modus="fast")
    (tmp_path / "config.json").write_text("{")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(toto_cpp.ConfigError) as caught:
        toto_cpp.load(tmp_path)
    assert caught.value.code == "invalid_json" and "config.json" in caught.value.where


def test_a_closed_model(wave):
    with toto_cpp.load() as model:
        assert "toto-nano-2" in repr(model)
        kept = model.forecast(wave, 8)
    assert kept.mean.shape == (8,) and repr(model) == "<toto_cpp.Model, closed>"
    with pytest.raises(toto_cpp.UsageError, match="closed"):
        model.forecast(wave, 8)


def test_progress_stops(nano, wave):
    calls = []
    with pytest.raises(toto_cpp.CancelledError) as caught:
        nano.forecast([wave] * 64, 500, progress=lambda done, total: calls.append((done, total)) or False)
    assert caught.value.code == "interrupted" and len(calls) == 1
    seen = []
    nano.forecast(wave, 200, progress=lambda done, total: seen.append(done / total))
    assert seen[-1] == 1.0 and seen == sorted(seen)

    def broken(done, total):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nano.forecast([wave] * 64, 500, progress=broken)
    assert nano.forecast(wave, 8).mean.shape == (8,)
