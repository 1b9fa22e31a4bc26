# SPDX-License-Identifier: Apache-2.0
"""Keys without what all of them share: the same forecasts, without what float32 lost to it."""

import copy

import pytest
import torch

from nano2_support import RECIPE, batch_of
from toto_nano2 import batches, centre, train
from toto_nano2.run import Run


def forecasts(model, p, dtype):
    model = copy.deepcopy(model).to(dtype)
    with torch.no_grad():
        return model(p.inputs.to(dtype), p.time_mask, p.variate_mask, dtype).double()


def test_a_shared_key_is_taken_out_and_forecasts_stay(model):
    drifted = copy.deepcopy(model)
    c = model.config
    for layer in drifted.layers:
        bias = layer.attn.in_proj.bias.data.view(3, c.num_heads, c.head_dim)
        bias[1, :, c.head_dim // 2 :] += 3e5
    found = centre.take_off(copy.deepcopy(drifted), centre.mean_keys(drifted))
    p = batch_of(batches.SHAPES[1])
    truth = forecasts(model, p, torch.float64)
    off = [(forecasts(m, p, torch.float32) - truth).abs().max().item() for m in (model, found, drifted)]
    assert off[1] < 2 * off[0] + 1e-6
    assert off[2] > 10 * off[1], "the shared key cost nothing, so this showed nothing"
    for i, layer in enumerate(found.layers):
        bias = layer.attn.in_proj.bias.data.view(3, c.num_heads, c.head_dim)[1, :, c.head_dim // 2 :]
        assert layer.variate == bool(bias.abs().max() > 2e5), i  # the layer over variates is left as it is
    keys = centre.mean_keys(found)
    assert all(mean[:, c.head_dim // 2 :].abs().max() < 0.05 for mean in keys.values())


def test_a_run_takes_the_mean_key_of_its_batch_off_both_of_its_models():
    run = Run(RECIPE, "cpu")
    c = run.model.config
    half = slice(c.head_dim // 2, None)
    for model, shift in ((run.model, 50), (run.slow, 70)):
        for layer in model.layers:
            layer.attn.in_proj.bias.data.view(3, c.num_heads, c.head_dim)[1, :, half] += shift
    p = batch_of(batches.SHAPES[1])
    both = run.model, run.slow
    before = [forecasts(m, p, torch.float64) for m in both]
    biases = [[layer.attn.in_proj.bias.clone() for layer in m.layers] for m in both]
    centre.hold(run, p)
    for model, was in zip(both, before):
        assert (forecasts(model, p, torch.float64) - was).abs().max() < 1e-4
    sums = centre.sums_of_keys(run.model, p)
    assert all(s[:, half].abs().max() / p.inputs.shape[:3].numel() < 1e-4 for s in sums.values())
    for i in sums:  # one vector for both
        now = [m.layers[i].attn.in_proj.bias for m in both]
        moved = [old[i] - new for old, new in zip(biases, now)]
        assert moved[0].abs().max() > 40 and torch.allclose(*moved, atol=1e-3)


@pytest.mark.parametrize("hold, calls", [(2, 2), (0, 0)])
def test_a_recipe_says_after_how_many_steps(tmp_path, monkeypatch, hold, calls):
    held = []
    monkeypatch.setattr(centre, "hold", lambda run, p: held.append(run.step))
    train.train({**RECIPE, "hold": hold}, tmp_path, steps=5)
    assert held == [hold * (i + 1) for i in range(calls)]
