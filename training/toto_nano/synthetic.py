# SPDX-License-Identifier: Apache-2.0
"""Batches of synthetic series as the model will meet them: related variates, accidents of
measurement, units, gaps and left padding."""

import dataclasses

import torch

from . import curves
from .noise import Draw, heavy, moments, unit


@dataclasses.dataclass
class Batch:
    x: torch.Tensor  # (B,V,T) float32, zero where padded, last value carried where missing
    valid: torch.Tensor  # (B,V,T) bool
    ids: torch.Tensor  # (B,V) variates with equal ids may see each other

    def to(self, device):
        return Batch(self.x.to(device), self.valid.to(device), self.ids.to(device))


def at_random(draw, y, p, change):
    """Applies change(draw, rows) to each series with probability p."""
    rows = draw.chance(len(y), p)[:, 0].nonzero()[:, 0]
    if len(rows):
        y = y.index_copy(0, rows, change(draw, y[rows]))
    return y


def clip(draw, y):
    """Saturation at the top, the bottom or both."""
    spread = y.std(-1, keepdim=True)
    middle = y.mean(-1, keepdim=True)
    reach = draw.uniform(len(y), 0.3, 2.0) * spread
    kind = draw.integers(len(y), 0, 3)
    y = torch.where(kind != 0, torch.minimum(y, middle + reach), y)
    return torch.where(kind != 1, torch.maximum(y, middle - reach), y)


def quantise(draw, y):
    """Readings on a grid."""
    grid = y.std(-1, keepdim=True) * draw.log_uniform(len(y), 0.01, 1) + 1e-9
    return torch.round(y / grid) * grid


def spikes(draw, y):
    n, t = y.shape
    size = heavy(draw, n, t) * y.std(-1, keepdim=True) * draw.log_uniform(n, 1, 8)
    size = torch.where(draw.chance(n, 0.6), size.abs(), size)
    return y + size * moments(draw, n, t, draw.log_uniform(n, 20, 500))


def level_shifts(draw, y):
    n, t = y.shape
    size = draw.normal(n, t) * moments(draw, n, t, draw.log_uniform(n, 100, 2.0 * t))
    return y + torch.cumsum(size, -1) * y.std(-1, keepdim=True) * draw.log_uniform(n, 0.3, 3)


def regular_events(draw, y):
    """A job that runs every k steps."""
    n, t = y.shape
    every = draw.log_uniform(n, 4, t / 3).round()
    long = (every * draw.uniform(n, 0.02, 0.3)).ceil()
    on = (draw.steps(t) + draw.uniform(n, 0, 1) * every).floor() % every < long
    return y + on * y.std(-1, keepdim=True) * draw.normal(n) * draw.log_uniform(n, 0.5, 4)


def outages(draw, y):
    """Stretches at zero or at the minimum."""
    n, t = y.shape
    on = stretches(draw, n, t, draw.log_uniform(n, 100, 2.0 * t), draw.log_uniform(n, 2, t / 8))
    floor = torch.where(draw.chance(n, 0.5), y.min(-1, keepdim=True).values, y[:, :1] * 0)
    return torch.where(on, floor, y)


def squash(draw, y):
    """A percentage: bounded on both sides."""
    return torch.sigmoid(unit(y) * draw.uniform(len(y), 0.5, 2) + draw.normal(len(y)))


def stretches(draw, n, t, gap, length):
    """True in stretches of up to `length` steps that begin `gap` apart on average."""
    begin = moments(draw, n, t, gap)
    step = draw.steps(t).expand(n, t)
    last = torch.cummax(torch.where(begin, step, torch.full_like(step, -1e9)), -1).values
    return step - last < length


ACCIDENTS = [
    (clip, 0.08), (spikes, 0.08), (level_shifts, 0.08), (regular_events, 0.05),
    (outages, 0.03), (squash, 0.04), (quantise, 0.15),
]  # fmt: skip


MARKET = 0.12  # prices as an exchange reports them: nothing clipped, rounded or lost


def single(draw: Draw, n: int, t: int):
    """n unrelated series in units of one."""
    y = curves.curve(draw, n, t)
    for change, p in ACCIDENTS:
        y = at_random(draw, y, p, change)
    return at_random(draw, y, MARKET, lambda draw, rows: curves.prices(draw, *rows.shape))


def related(draw: Draw, b: int, v: int, t: int, of=None, apart=(0.25, 0.2)):
    """b groups of v series that share some factors, some with a lag, beside what is their own. `of`
    makes series (default: single), `apart`: the share of series and of groups that share nothing."""
    of = of or single
    own = unit(of(draw, b * v, t)).view(b, v, t)
    factors = unit(of(draw, b * 2, t)).view(b, 2, t)
    lag = draw.integers(b * v, 0, 49).view(b, v, 1) * draw.chance(b, 0.5).view(b, 1, 1)
    index = (torch.arange(t, device=draw.device) - lag).clamp(min=0)
    y = own * draw.log_uniform(b * v, 0.02, 1).view(b, v, 1)
    for k in range(2):
        weight = draw.normal(b * v).view(b, v, 1) * draw.chance(b * v, 0.7).view(b, v, 1)
        y = y + weight * factors[:, k : k + 1].expand(b, v, t).gather(2, index)
    alone = draw.chance(b * v, apart[0]).view(b, v, 1) | draw.chance(b, apart[1]).view(b, 1, 1)
    return torch.where(alone, own, y)


def in_units(draw, y):
    """Random scale and level. A minority is so small that the scaler's floor flattens it."""
    n = len(y)
    kind = draw.pick(n, [0.75, 0.2, 0.05])[:, None]
    scale = draw.log_uniform(n, 3, 1e4)
    scale = torch.where(kind == 1, draw.log_uniform(n, 0.05, 3), scale)
    scale = torch.where(kind == 2, draw.log_uniform(n, 0.001, 0.05), scale)
    flip = torch.where(draw.chance(n, 0.1), -1.0, 1.0)
    y = flip * y / (y.std(-1, keepdim=True) + 1e-6)
    lowest = y.min(-1, keepdim=True).values
    level = torch.stack((
        torch.zeros_like(lowest),
        -lowest,  # non-negative data
        -lowest + draw.log_uniform(n, 0.1, 30),
        draw.normal(n) * draw.log_uniform(n, 0.3, 300),
    ))  # fmt: skip
    choice = draw.pick(n, [2, 2, 4, 2])[None, :, None]
    return (y + level.gather(0, choice)[0]) * scale


def with_gaps(draw, y, pad):
    """Missing stretches or points, the last value carried over them, zeros where there is none.

    The first `pad` (n, 1) steps are left padding. Returns the series and its mask.
    """
    n, t = y.shape
    gap = stretches(draw, n, t, draw.log_uniform(n, 50, 2.0 * t), draw.log_uniform(n, 1, t / 6))
    gap = torch.where(draw.chance(n, 0.5), gap, draw.chance(n, draw.log_uniform(n, 0.005, 0.5), t))
    gap = gap & draw.chance(n, 0.15)
    step = torch.arange(t, device=y.device).expand(n, t)
    gap = gap | (step < pad)
    last = torch.cummax(torch.where(gap, torch.full_like(step, -1), step), -1).values
    carried = y.gather(1, last.clamp(min=0))
    return torch.where(last < 0, torch.zeros_like(y), carried), ~gap


def batch(draw: Draw, b: int, v: int, t: int, patch: int) -> Batch:
    y = single(draw, b, t).view(b, 1, t) if v == 1 else related(draw, b, v, t)
    y = in_units(draw, y.reshape(b * v, t))
    pad = draw.integers(b, 0, patch) * draw.chance(b, 0.7)
    x, valid = with_gaps(draw, y, pad.repeat_interleave(v, 0))
    finite = x.isfinite().all(-1, keepdim=True)
    x = torch.where(finite, x, torch.zeros_like(x))
    apart = draw.chance(b, 0.25) * draw.integers(b, 0, 3, v)
    return Batch(x.view(b, v, t), (valid & finite).view(b, v, t), apart)
