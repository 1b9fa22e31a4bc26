# SPDX-License-Identifier: Apache-2.0
"""The training model against outputs of the official implementation and worked examples."""

import math
import pathlib

import pytest
import torch
from safetensors.torch import load_file

from toto_nano import checkpoint, inference, scaler
from toto_nano.model import Mixture, log_gamma_ratio

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "data" / "golden"
# The cases with the scaler and the head that are trained here.
CASES = ["toto1-tiny-a", "toto1-tiny-b", "toto1-tiny-extreme"]
PARTS = ("df", "loc", "scale", "probs")


def load_case(name):
    folder = GOLDEN / name
    inputs = load_file(folder / "inputs.safetensors")
    series = inputs["series"], inputs["padding_mask"].bool(), inputs["id_mask"]
    return checkpoint.load(folder), series, load_file(folder / "expected.safetensors")


def close(actual, expected, scale=0.0, bound=2e-5):
    error = ((actual - expected).abs() / (scale + expected.abs()).clamp(min=1e-12)).max().item()
    assert error <= bound, error


def check_mixture(mixture, expected, prefix):
    for part in PARTS:
        close(getattr(mixture, part), expected[f"{prefix}.{part}"], scale=1.0)


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_prefill(name):
    model, series, expected = load_case(name)
    x, valid, ids = inference.pad_left(*series, model.config.patch_size)
    keep = []
    mixture, _, _ = inference.step(model, x, valid, ids, x.shape[-1], None, keep)
    for i, hidden in enumerate(keep):
        ref = expected[f"prefill.layer{i:02d}"]
        close(hidden, ref, scale=ref.abs().max(), bound=1e-5)
    loc, scale = model.statistics(x, valid)
    close(loc, expected["prefill.loc"], scale)
    close(scale, expected["prefill.scale"])
    check_mixture(mixture, expected, "prefill.dist")


@pytest.mark.parametrize("name", CASES)
def test_means(name):
    model, series, expected = load_case(name)
    scale = expected["prefill.scale"][..., -1:]
    for mode in ("cached", "uncached"):
        ref = expected[f"mean.{mode}"]
        close(inference.forecast_mean(model, *series, ref.shape[-1], mode == "cached"), ref, scale)


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_forced_steps(name):
    model, series, expected = load_case(name)
    x, valid, ids = inference.pad_left(*series, model.config.patch_size)
    start = x.shape[-1]
    samples = expected["forced.samples"]
    n = samples.shape[0] // x.shape[0]
    x, valid, ids = (t.repeat(n, 1, 1) for t in (x, valid, ids))
    cache = inference.Cache()
    for i, patch in enumerate(samples.split(model.config.patch_size, -1)):
        mixture, loc, scale = inference.step(model, x, valid, ids, start, cache)
        check_mixture(mixture, expected, f"forced.step{i:02d}")
        close(loc, expected[f"forced.step{i:02d}.affine_loc"], scale)
        close(scale, expected[f"forced.step{i:02d}.affine_scale"])
        x, valid, ids = inference.extend(x, valid, ids, patch)


T, NO = True, False


@pytest.mark.parametrize(
    "x, valid, prefix, loc, scale",
    [
        ([2, 4, 4, 6, 10, 10, 12, 20], [T] * 8, 8, [4, 8.5], [1.66333, 5.83952]),
        ([0, 0, 5, 7, 9, 9, 9, 9], [NO, NO, T, T, T, T, T, T], 8, [6, 8], [1.44914, 1.70294]),
        ([0, 0, 0, 0], [NO] * 4, 4, [0], [0.31622777]),
        ([0] * 4 + [1e12, 3e12] * 2, [T] * 8, 8, [0, 1e12], [122.47449, 1.3093073e12]),
        ([0] * 4 + [1e12, 3e12] * 2, [T] * 8, 4, [0, 1e12], [0.31622777, 3.1622776e9]),
    ],
)
def test_scaler_examples(x, valid, prefix, loc, scale):
    x = torch.tensor(x, dtype=torch.float32)
    got = scaler.patch_statistics(x, torch.tensor(valid), 4, prefix, True, 10.0)
    torch.testing.assert_close(got[0], torch.tensor(loc, dtype=torch.float32))
    torch.testing.assert_close(got[1], torch.tensor(scale), rtol=3e-6, atol=0)


def test_log_gamma_ratio():
    x = torch.logspace(0, 4, 1000, dtype=torch.float64)
    exact = torch.lgamma(x + 0.5) - torch.lgamma(x)
    assert (log_gamma_ratio(x) - exact).abs().max() < 3e-6


def test_log_prob_is_the_mixture_of_student_t():
    k = torch.manual_seed(0) and 4
    df, loc, scale = 2 + torch.rand(3, k) * 9, torch.randn(3, k), torch.rand(3, k) + 0.1
    logits, y = torch.randn(3, k), torch.randn(3) * 3
    each = torch.distributions.StudentT(df, loc, scale).log_prob(y[:, None])
    expected = torch.logsumexp(each + torch.log_softmax(logits, -1), -1)
    torch.testing.assert_close(Mixture(df, loc, scale, logits).log_prob(y), expected, atol=1e-5,
                               rtol=1e-5)
    assert math.isfinite(expected.sum())
