# SPDX-License-Identifier: Apache-2.0
"""Autoregressive forecasting with the training program's own model: the mirror image against
which the engine is checked, and the forecaster used while there is no engine at hand."""

import torch

from .model import Mixture, Toto

HUGE = torch.finfo(torch.float32).max / 2


class Cache:
    """Keys (already rotated) and values of each time layer, oldest token first."""

    def __init__(self):
        self.length = 0
        self.entries = {}

    def append(self, layer, k, v):
        if layer in self.entries:
            old_k, old_v = self.entries[layer]
            k, v = torch.cat((old_k, k), 2), torch.cat((old_v, v), 2)
        self.entries[layer] = (k, v)
        return k, v

    def repeat(self, times: int):
        """Turns the cache of a context into that of `times` trajectories (sample-major rows)."""
        for layer, (k, v) in self.entries.items():
            self.entries[layer] = (k.repeat(times, 1, 1, 1), v.repeat(times, 1, 1, 1))


def pad_left(series, valid, ids, patch):
    """Zeros with mask False up to a whole number of patches; ids repeat the first one."""
    extra = -series.shape[-1] % patch
    series = torch.nn.functional.pad(series, (extra, 0))
    valid = torch.nn.functional.pad(valid, (extra, 0))
    ids = torch.cat((ids[..., :1].expand(*ids.shape[:-1], extra), ids), -1)
    return series, valid, ids


def step(model: Toto, x, valid, ids, prefix, cache, keep=None):
    """One model call on the tokens that are not in the cache yet (all without a cache).

    Returns the mixture of the patch that follows and the loc and scale that de-scale it.
    """
    patch = model.config.patch_size
    loc, scale = model.statistics(x, valid, prefix)
    first = cache.length if cache is not None else 0
    patches = x.unflatten(-1, (-1, patch))[:, :, first:]
    scaled = (patches - loc[:, :, first:, None]) / scale[:, :, first:, None]
    hidden = model.tokens(scaled, ids[..., ::patch][:, :, first:], cache, keep)
    if cache is not None:
        cache.length += patches.shape[2]
    return model.mixture(hidden[:, :, -1]), loc[..., -1], scale[..., -1]


def replace_extremes(y):
    return torch.where(y.isfinite() & (y.abs() < HUGE), y, torch.zeros_like(y))


def mixture_mean(m: Mixture, loc, scale):
    return replace_extremes((m.probs * m.loc).sum(-1) * scale[..., None] + loc[..., None])


def mixture_draw(m: Mixture, loc, scale, generator=None):
    probs = m.probs
    flat = probs.flatten(0, -2)
    pick = torch.multinomial(flat, 1, generator=generator).view(*probs.shape[:-1], 1)
    df, mu, sigma = (t.gather(-1, pick).squeeze(-1) for t in (m.df, m.loc, m.scale))
    # Bailey's form: one Student-T from two uniforms, no rejection.
    u1, u2 = torch.rand((2, *df.shape), generator=generator, dtype=torch.float64)
    d = df.double()
    t = torch.sqrt(d * torch.expm1(-2 * torch.log(u1) / d)) * torch.cos(2 * torch.pi * u2)
    return replace_extremes((mu + sigma * t.float()) * scale[..., None] + loc[..., None])


def extend(x, valid, ids, patch_values):
    p = patch_values.shape[-1]
    return (
        torch.cat((x, patch_values), -1),
        torch.cat((valid, torch.ones_like(patch_values, dtype=torch.bool)), -1),
        torch.cat((ids, ids[..., -1:].expand(*ids.shape[:-1], p)), -1),
    )


@torch.no_grad()
def forecast_mean(model: Toto, series, valid, ids, horizon: int, cached: bool = True):
    """Mean mode: (B,V,horizon)."""
    x, valid, ids = pad_left(series, valid, ids, model.config.patch_size)
    start = x.shape[-1]
    cache = Cache() if cached else None
    while x.shape[-1] < start + horizon:
        x, valid, ids = extend(
            x, valid, ids, mixture_mean(*step(model, x, valid, ids, start, cache))
        )
    return x[..., start : start + horizon]


@torch.no_grad()
def forecast_samples(model: Toto, series, valid, ids, horizon: int, samples: int, seed: int = 0):
    """Cached sample mode: (samples, B, V, horizon). The prefill is shared by all trajectories."""
    generator = torch.Generator().manual_seed(seed)
    x, valid, ids = pad_left(series, valid, ids, model.config.patch_size)
    start, batch = x.shape[-1], x.shape[0]
    cache = Cache()
    m, loc, scale = step(model, x, valid, ids, start, cache)
    x, valid, ids, loc, scale = (
        t.repeat(samples, *[1] * (t.dim() - 1)) for t in (x, valid, ids, loc, scale)
    )
    m = Mixture(*(t.repeat(samples, 1, 1, 1) for t in (m.df, m.loc, m.scale, m.logits)))
    cache.repeat(samples)
    while True:
        x, valid, ids = extend(x, valid, ids, mixture_draw(m, loc, scale, generator))
        if x.shape[-1] >= start + horizon:
            return x[..., start : start + horizon].unflatten(0, (samples, batch))
        m, loc, scale = step(model, x, valid, ids, start, cache)
