# SPDX-License-Identifier: Apache-2.0
"""Keys without what all of them share: the same forecasts, without what float32 lost to it."""

import copy

import torch

from nano2_support import batch_of
from toto_nano2 import batches, centre
from toto_nano2.model import Toto2


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
    found = Toto2(c).eval()
    found.load_state_dict(centre.centred(drifted, centre.mean_keys(drifted)))
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
