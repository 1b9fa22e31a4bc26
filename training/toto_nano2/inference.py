# SPDX-License-Identifier: Apache-2.0
"""Forecasts with the training program's own model, as the engine makes them in a single pass."""

import torch

from . import prepare
from .model import Toto2


def pad_left(x, m, patch):
    """To whole patches; the last one counts as observed, whatever the mask says."""
    pad = -x.shape[-1] % patch
    x, m = (torch.nn.functional.pad(t, (pad, 0)) for t in (x, m))
    m = m.clone()
    m[..., -patch:] = True
    return x, m


@torch.no_grad()
def forecast(model: Toto2, x, m, ids, horizon):
    """x (B,V,T), m its mask, ids (B,V): (quantiles (9,B,V,horizon) in the units of x, and the
    network's own numbers: loc and scale (B,V,N), raw (9,B,V,patches,P))."""
    patch = model.config.patch_size
    x, m = pad_left(x, m, patch)
    context, ahead = x.shape[-1] // patch, -(-horizon // patch)
    x, m = (torch.nn.functional.pad(t, (0, ahead * patch)) for t in (x, m))
    loc, scale, _ = prepare.statistics(x, m, patch)
    values, flags = x.unflatten(-1, (-1, patch)), m.unflatten(-1, (-1, patch))
    u = torch.where(flags, torch.asinh((values - loc[..., None]) / scale[..., None]), 0.0)
    span = torch.zeros(len(x), context + ahead, dtype=torch.long)
    span[:, context:] = 1
    time, variate = prepare.masks(flags.any(-1), span)
    variate = variate & (ids[:, :, None] == ids[:, None])[:, None, None]
    raw = model(torch.cat((u, (~flags).float()), -1), time, variate)
    raw = raw[:, :, context - 1 : context + ahead - 1]
    y = torch.sinh(raw) * scale[:, :, context:, None, None] + loc[:, :, context:, None, None]
    quantiles = y.flatten(2, 3)[:, :, :horizon].sort(-1).values.permute(3, 0, 1, 2)
    return quantiles, {"loc": loc, "scale": scale, "raw": raw.permute(4, 0, 1, 2, 3)}
