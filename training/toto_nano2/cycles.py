# SPDX-License-Identifier: Apache-2.0
"""Exact cycles: shapes that repeat step for step, in two seasons, with little noise or much."""

import math

import torch

from toto_nano.curves import cycle, disturbance, trend
from toto_nano.noise import Draw, by_kind, smooth, unit, white

# (short, long) seasons in steps of every sampling rate that people use; 1 = none.
PAIRS = [
    (24, 168), (24, 168), (24, 1), (7, 1), (7, 365), (12, 1), (12, 1), (12, 1), (4, 1), (4, 1),
    (52, 1), (52, 4), (48, 336), (48, 1), (96, 672), (96, 1), (144, 1008), (288, 2016), (288, 1),
    (60, 1440), (60, 1), (1440, 1), (5, 21), (5, 252), (12, 84), (8, 56), (6, 42), (4, 28), (3, 21),
    (2, 14), (30, 1), (365, 1), (13, 1), (26, 1), (10, 1), (20, 1), (3, 1), (6, 1), (16, 1), (32, 1),
    (64, 1), (100, 1), (120, 1), (168, 1), (180, 1), (200, 1), (240, 1), (360, 1), (500, 1), (672, 1),
]  # fmt: skip


def pairs(draw, n, t):
    """Two seasons (n, 1) each; short enough to be seen twice."""
    table = [p for p in PAIRS if p[0] <= t / 2]
    which = draw.pick(n, [1.0] * len(table))
    both = torch.tensor(table, device=draw.device, dtype=torch.float32)[which]
    free = draw.chance(n, 0.25)
    short = torch.where(free, draw.log_uniform(n, 3, t / 2.5).round(), both[:, :1])
    ratio = draw.integers(n, 2, 15) * draw.chance(n, 0.3)
    long = torch.where(free, (short * ratio).clamp(min=1), both[:, 1:])
    return short, torch.where(long <= t, long, torch.ones_like(long))


def own_values(draw, n, bins):
    """Every step its own value: the hardest cycle to know."""
    return draw.normal(n, bins)


def few_spikes(draw, n, bins):
    """Mostly flat, one to three narrow peaks of one to three steps."""
    place = (draw.uniform(n, 0, 1, 3) * bins).floor()
    high = draw.normal(n, 3).abs() + 0.3
    on = torch.cat((draw.chance(n, 1.0), draw.chance(n, 0.4, 2)), -1)
    wide = draw.integers(n, 1, 4, 3)
    off = (draw.steps(bins)[..., None] - place[:, None]) % bins
    return (((off < wide[:, None]) * on[:, None]) * high[:, None]).sum(-1)


def blocks(draw, n, bins):
    """Two to six constant pieces."""
    edges = draw.uniform(n, 0, 1, 5).sort(-1).values
    level = draw.normal(n, 6)
    place = (draw.steps(bins) / bins).expand(n, bins).contiguous()
    return level.gather(1, torch.searchsorted(edges, place))


def arches(draw, n, bins):
    """The positive part of a wave, as of sunlight."""
    angle = 2 * math.pi * (draw.steps(bins) / bins + draw.uniform(n, 0, 1))
    wave = torch.cos(angle) - draw.uniform(n, -0.8, 0.8)
    return torch.relu(wave) ** draw.uniform(n, 0.4, 2.5)


SHAPES = {cycle: 4, own_values: 2.5, few_spikes: 1.5, blocks: 1.5, arches: 1}
BINS = 672


def table_of(draw, n):
    return unit(by_kind(draw, n, BINS, SHAPES))


def repeat(draw, n, t, period):
    """A shape read at whole steps: cycles shorter than BINS are exact down to the step."""
    table = table_of(draw, n)
    step = draw.steps(t) + (draw.uniform(n, 0, 1) * period).floor()
    phase = step - (step / period).floor() * period
    # Short cycles take the first bins as they are; the rest are stretched.
    exact = draw.chance(n, 0.5) & (period <= BINS)
    place = torch.where(exact, phase, phase * (BINS / period))
    return table.gather(1, place.long().clamp(0, BINS - 1))


def seasonal(draw, n, t):
    """One or two exact seasons, added or multiplied."""
    short, long = pairs(draw, n, t)
    y = repeat(draw, n, t, short)
    has = (long > short)[:, 0].nonzero()[:, 0]
    if len(has):
        k = len(has)
        weekly = long[has]
        index = ((draw.steps(t) + (draw.uniform(k, 0, 1) * weekly).floor()) / short[has]).floor()
        count = (weekly / short[has]).round().clamp(min=1)
        level = unit(draw.normal(k, 31) * draw.chance(k, draw.uniform(k, 0.2, 1), 31))
        by_day = level.gather(1, (index % count).long().clamp(0, 30))
        other = repeat(draw, k, t, weekly)
        size = draw.log_uniform(k, 0.1, 1.5)
        plus = torch.where(count <= 31, by_day, other)
        kind = draw.pick(k, [1, 1, 1])[:, None]
        both = y[has] + size * plus
        times = y[has] * (1 + size * plus)
        y[has] = torch.where(kind == 0, both, torch.where(kind == 1, times, y[has] + size * other))
    return unit(y)


def clean(draw: Draw, n, t):
    """Cycles with little noise, perhaps on a slow trend or with a slow swell."""
    y = seasonal(draw, n, t)
    rows = draw.chance(n, 0.4)[:, 0].nonzero()[:, 0]
    if len(rows):
        k = len(rows)
        y[rows] = y[rows] + trend(draw, k, t) * draw.log_uniform(k, 0.05, 3)
    rows = draw.chance(n, 0.25)[:, 0].nonzero()[:, 0]
    if len(rows):
        k = len(rows)
        slow = smooth(draw, k, t, draw.log_uniform(k, 30, 1.0 * t))
        y[rows] = y[rows] * torch.exp(slow * draw.uniform(k, 0.05, 0.5))
    return y + white(draw, n, t) * draw.log_uniform(n, 3e-4, 0.2)


def noisy(draw, n, t):
    """The same cycles under noise that matters."""
    y = seasonal(draw, n, t) + trend(draw, n, t) * draw.log_uniform(n, 0.02, 4)
    return y + disturbance(draw, n, t) * draw.log_uniform(n, 0.1, 2)


def spikes(draw, n, t):
    """A quiet base with a peak every k steps, of one height or nearly; some fail to come."""
    every = draw.log_uniform(n, 4, min(700.0, t / 3)).round()
    every = torch.where(draw.chance(n, 0.5), pairs(draw, n, t)[0].clamp(min=4), every)
    wide = torch.where(draw.chance(n, 0.7), torch.ones_like(every), draw.log_uniform(n, 1, 5).floor())
    step = draw.steps(t) + (draw.uniform(n, 0, 1) * every).floor()
    on = (step % every) < wide
    number = (step / every).long().clamp(max=2047)
    varied = 1 + draw.normal(n, 2048) * draw.log_uniform(n, 0.003, 0.3)
    missed = draw.chance(n, draw.uniform(n, 0, 0.1) * draw.chance(n, 0.3), 2048)
    high = (varied * ~missed).gather(1, number)
    base = torch.where(draw.chance(n, 0.4), 0.3 * seasonal(draw, n, t), 0)
    return on * high * draw.log_uniform(n, 1, 10) + base + white(draw, n, t) * draw.log_uniform(n, 1e-3, 0.3)


def local_waves(draw, n, t):
    """A cycle whose harmonics change slowly: periodic times smooth kernels."""
    period = torch.where(draw.chance(n, 0.7), pairs(draw, n, t)[0], draw.log_uniform(n, 3, t / 2))
    slow = period * draw.log_uniform(n, 1, 30)
    y = torch.zeros(n, t, device=draw.device)
    for k in range(1, 4):
        angle = 2 * math.pi * k * draw.steps(t) / period
        part = smooth(draw, n, t, slow) * torch.cos(angle) + smooth(draw, n, t, slow) * torch.sin(angle)
        y = y + part * draw.uniform(n, 0, 1) / k
    return unit(y) + trend(draw, n, t) * draw.log_uniform(n, 0.01, 1) + white(draw, n, t) * draw.log_uniform(n, 0.01, 0.7)
