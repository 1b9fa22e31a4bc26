# SPDX-License-Identifier: Apache-2.0
"""Days and weeks of loads, as energy, traffic and services have them, and cycles that are exact."""

import math

import torch

from toto_nano.curves import cycle, trend
from toto_nano.noise import convolve_ar1, relaxing, smooth, unit, white

from .cycles import blocks, own_values, pairs

DAYS = [24, 24, 48, 48, 96, 96, 144, 288]  # steps of a day


def by_step(draw, n, days, steps):
    """A value of every day, (n, days), with memory of the day before, at every step."""
    memory = draw.uniform(n, 0, 0.8)
    return convolve_ar1(white(draw, n, days), memory).repeat_interleave(steps, 1)


def loads(draw, n, t):
    """A profile of the day, other on free days, days that are higher or lower as a whole, a slow
    season and noise with a short memory. One length of day for all rows of a call."""
    steps = DAYS[int(draw.integers(1, 0, len(DAYS)))]
    if 3 * steps > t:
        steps = 24
    days = t // steps + 2
    profile = unit(cycle(draw, n, steps))
    free = unit(profile + draw.log_uniform(n, 0.05, 1) * cycle(draw, n, steps))
    begin = draw.integers(n, 0, 7)
    day = (torch.arange(days, device=draw.device)[None] + begin) % 7
    rest = torch.where(draw.chance(n, 0.7), day >= 5, draw.chance(n, 0.05, days))
    rest = rest & draw.chance(n, 0.8)
    level = torch.where(rest, -draw.uniform(n, 0, 2), 0.0)
    height = torch.where(rest, draw.uniform(n, 0.4, 1.1), 1.0) * (1 + 0.05 * draw.normal(n, days))
    shape = torch.where(rest[..., None], free[:, None], profile[:, None])
    y = (shape * height[..., None] + level[..., None]).flatten(1)
    y = y + by_step(draw, n, days, steps) * draw.log_uniform(n, 0.02, 0.6)
    first = int(draw.integers(1, 0, steps))
    y = y[:, first : first + t]
    y = y + smooth(draw, n, t, steps * draw.log_uniform(n, 2, 40)) * draw.log_uniform(n, 0.02, 1)
    y = y + relaxing(draw, n, t) * draw.log_uniform(n, 0.01, 0.4) + white(draw, n, t) * draw.log_uniform(n, 0.003, 0.2)
    return torch.where(draw.chance(n, 0.35), torch.exp(unit(y) * draw.uniform(n, 0.1, 0.7)), y)


def routine(draw, n, t):
    """Hours of a week, each with a value of its own, days more or less alike; the day as a whole is
    higher or lower; noise that grows with the value, or counts. One length of day for all rows."""
    steps = 24 if draw.uniform(1, 0, 1).item() < 0.6 else DAYS[int(draw.integers(1, 0, len(DAYS)))]
    if 3 * steps > t:
        steps = 24
    days = t // steps + 2
    jagged = draw.uniform(n, 0, 1)
    own = unit(jagged * draw.normal(n, steps) + (1 - jagged) * cycle(draw, n, steps))
    each = unit(draw.normal(n * 7, steps) + cycle(draw, n * 7, steps)).view(n, 7, steps)
    each[:, 6] = torch.where(draw.chance(n, 0.5), each[:, 5], each[:, 6])
    apart = draw.log_uniform(n, 0.02, 1) * torch.tensor([0.3, 0.3, 0.3, 0.3, 0.3, 1, 1], device=draw.device)
    level = draw.normal(n, 7) * draw.log_uniform(n, 0.02, 1)
    week = own[:, None] + apart[..., None] * each + level[..., None]
    day = (torch.arange(days, device=draw.device)[None] + draw.integers(n, 0, 7)) % 7
    y = week.gather(1, day[..., None].expand(n, days, steps)).flatten(1)
    y = y + by_step(draw, n, days, steps) * draw.log_uniform(n, 0.01, 0.6)
    first = int(draw.integers(1, 0, steps))
    y = unit(y[:, first : first + t])
    y = y + smooth(draw, n, t, steps * draw.log_uniform(n, 3, 40)) * draw.log_uniform(n, 0.01, 1)
    y = y + relaxing(draw, n, t) * draw.log_uniform(n, 0.01, 0.6)
    kind = draw.pick(n, [3, 2, 2])[:, None]
    grown = torch.exp((y * draw.uniform(n, 0.2, 1.0)).clamp(-5, 5))
    counted = torch.poisson((grown * draw.log_uniform(n, 1, 1000)).clamp(0, 1e5), generator=draw.generator)
    noise = white(draw, n, t) * draw.log_uniform(n, 0.003, 0.4)
    return torch.where(kind == 0, y + noise, torch.where(kind == 1, grown * (1 + 0.5 * noise), counted))


def normals(draw, n, t):
    """What a day is like in the mean of many years: one wave that turns slowly into another, and next
    to no noise."""
    steps = DAYS[int(draw.integers(1, 0, len(DAYS)))]
    if 3 * steps > t:
        steps = 24
    one, two = (unit(cycle(draw, n, steps)) for _ in range(2))
    place = (torch.arange(t, device=draw.device)[None] + draw.integers(n, 0, steps)) % steps
    year = steps * 365.25 * draw.log_uniform(n, 0.1, 1)
    turn = 2 * math.pi * (draw.steps(t) / year + draw.uniform(n, 0, 1))
    share = draw.uniform(n, 0, 0.5) * (1 + torch.cos(turn))
    height = 1 + draw.uniform(n, 0, 0.6) * torch.cos(turn + draw.normal(n))
    y = height * torch.lerp(one.gather(1, place), two.gather(1, place), share)
    y = y + draw.log_uniform(n, 0.1, 5) * torch.cos(turn + draw.normal(n))
    y = y + smooth(draw, n, t, steps * draw.log_uniform(n, 1, 20)) * draw.log_uniform(n, 0.003, 0.2)
    return y + white(draw, n, t) * draw.log_uniform(n, 0.001, 0.1)


def exact(draw, n, t):
    """One sharp cycle over and over and hardly any noise: what was a period ago, averaged."""
    period = torch.where(draw.chance(n, 0.5), pairs(draw, n, t)[0].clamp(min=8), draw.log_uniform(n, 24, min(700.0, t / 3)).round())
    bins = 700
    kind = draw.pick(n, [3, 2, 1])[:, None]
    steps = unit(blocks(draw, n, bins))
    jagged = draw.normal(n, 8).gather(1, draw.integers(n, 0, 8, bins))
    table = torch.where(kind == 0, own_values(draw, n, bins), torch.where(kind == 1, jagged, steps))
    phase = (draw.steps(t) + (draw.uniform(n, 0, 1) * period).floor()) % period
    phase = torch.where(kind == 2, phase * (bins / period), phase)
    y = unit(table.gather(1, phase.long().clamp(0, bins - 1)))
    return y + draw.normal(n, t) * draw.log_uniform(n, 0.004, 0.15)


def carried(draw, n, t):
    """Sharp cycles that swell, on a level that moves."""
    y = exact(draw, n, t)
    slow = smooth(draw, n, t, draw.log_uniform(n, 100, 2.0 * t)) * draw.uniform(n, 0, 0.5)
    y = y * torch.exp(torch.where(draw.chance(n, 0.4), slow, 0))
    return y + trend(draw, n, t) * draw.log_uniform(n, 0.05, 3)
