# SPDX-License-Identifier: Apache-2.0
"""Demand, counts, counters, bounded readings, telemetry, jumps."""

import torch

from toto_nano.curves import disturbance, trend
from toto_nano.noise import convolve, heavy, moments, relaxing, smooth, unit, walk, white

from .cycles import seasonal


def poisson(draw, rate):
    return torch.poisson(rate.clamp(0, 1e6), generator=draw.generator)


def rare_demand(draw, n, t):
    """Zero most of the time; sizes of one, few or many; some in seasons or bursts."""
    often = draw.log_uniform(n, 0.01, 0.6)
    slow = torch.exp(smooth(draw, n, t, draw.log_uniform(n, 20, 1.0 * t)) * draw.uniform(n, 0, 1))
    wave = torch.exp(seasonal(draw, n, t) * draw.uniform(n, 0, 1))
    often = often * torch.where(draw.chance(n, 0.3), slow, 1) * torch.where(draw.chance(n, 0.35), wave, 1)
    on = draw.chance(n, often.clamp(max=0.97), t)
    few = 1 + poisson(draw, draw.log_uniform(n, 0.05, 15).expand(n, t).contiguous())
    spread = torch.exp(draw.normal(n, t) * draw.uniform(n, 0.2, 1.2))
    geometric = 1 + (-torch.log(draw.uniform(n, 1e-6, 1, t)) * draw.log_uniform(n, 0.3, 10)).floor()
    kind = draw.pick(n, [3, 1.5, 2, 1])[:, None]
    size = torch.where(kind == 0, few, torch.where(kind == 1, spread, torch.where(kind == 2, geometric, 1.0)))
    return on * size


def dense_counts(draw, n, t):
    """Counts with seasons and trend; overdispersed."""
    log = seasonal(draw, n, t) * draw.uniform(n, 0, 0.9) + trend(draw, n, t) * draw.uniform(n, 0, 0.7)
    mean = torch.exp(log) * draw.log_uniform(n, 0.3, 300)
    rough = torch.exp(relaxing(draw, n, t) * draw.uniform(n, 0, 0.5))
    return poisson(draw, mean * torch.where(draw.chance(n, 0.5), rough, 1))


def counters(draw, n, t):
    """What only rises: sums of activity, with resets and pauses."""
    activity = torch.relu(1 + seasonal(draw, n, t) * draw.uniform(n, 0, 1) + disturbance(draw, n, t) * draw.uniform(n, 0, 0.8))
    pause = (moments(draw, n, t, draw.log_uniform(n, 30, 2.0 * t)).cumsum(-1) % 3) == 2
    activity = torch.where(draw.chance(n, 0.2) & pause, 0, activity)
    total = activity.cumsum(-1)
    reset = moments(draw, n, t, draw.log_uniform(n, t / 6, 3.0 * t)) & draw.chance(n, 0.5)
    lost = torch.cummax(torch.where(reset, total, torch.zeros_like(total)), -1).values
    return total - lost


def bounded(draw, n, t):
    """A share or percentage: between two walls, often near one, sometimes full or empty."""
    base = torch.where(draw.chance(n, 0.4), unit(walk(draw, n, t)), relaxing(draw, n, t))
    y = base + seasonal(draw, n, t) * draw.uniform(n, 0, 2) + draw.normal(n)
    soft = torch.sigmoid(y * draw.uniform(n, 0.5, 2.5))
    low, high = -draw.uniform(n, 0, 1.5), draw.uniform(n, 0, 1.5)
    y = torch.where(draw.chance(n, 0.5), soft, torch.minimum(torch.maximum(y, low), high))
    grid = torch.where(draw.chance(n, 0.5), 100.0, draw.log_uniform(n, 3, 30))
    return torch.where(draw.chance(n, 0.35), torch.round(y * grid) / grid, y)


def telemetry(draw, n, t):
    """Load of a machine: a floor, a day, bursts that fade, a ceiling, readings on a grid."""
    day = torch.relu(seasonal(draw, n, t) + draw.uniform(n, 0, 2)) * draw.uniform(n, 0, 1.5)
    due = moments(draw, n, 2 * t, draw.log_uniform(n, 8, 1.0 * t)) * heavy(draw, n, 2 * t).abs()
    fade = torch.exp(-draw.steps(t) / draw.log_uniform(n, 0.5, 60))
    y = 0.2 + day + convolve(due, fade) * draw.log_uniform(n, 0.3, 5)
    y = y + torch.where(draw.chance(n, 0.6), white(draw, n, t).abs(), relaxing(draw, n, t)) * draw.log_uniform(n, 0.01, 0.5)
    top = draw.uniform(n, 0.5, 4) * y.std(-1, keepdim=True) + y.mean(-1, keepdim=True)
    y = torch.where(draw.chance(n, 0.3), torch.minimum(y, top), y)
    grid = y.std(-1, keepdim=True) * draw.log_uniform(n, 0.03, 1) + 1e-6
    y = torch.where(draw.chance(n, 0.3), torch.round(y / grid) * grid, y)
    down = moments(draw, n, t, draw.log_uniform(n, t / 4, 4.0 * t)).float()
    out = convolve(torch.nn.functional.pad(down, (t, 0)), (draw.steps(t) < draw.log_uniform(n, 2, t / 10)).float()) > 0.5
    return torch.where(out & draw.chance(n, 0.2), 0, y)


def jumps(draw, n, t):
    """Ornstein-Uhlenbeck with jumps, sometimes in logarithms: power prices, queues, rates."""
    y = relaxing(draw, n, t)
    due = moments(draw, n, 2 * t, draw.log_uniform(n, 10, 500)) * heavy(draw, n, 2 * t)
    due = torch.where(draw.chance(n, 0.5), due.abs(), due)
    fade = torch.exp(-draw.steps(t) / draw.log_uniform(n, 0.5, 50))
    y = y + convolve(due, fade) * draw.log_uniform(n, 1, 6)
    y = y + torch.where(draw.chance(n, 0.5), seasonal(draw, n, t) * draw.log_uniform(n, 0.2, 2), 0)
    return torch.where(draw.chance(n, 0.3), torch.exp((unit(y) * draw.uniform(n, 0.2, 0.8)).clamp(-6, 6)), y)


def flat_noise(draw, n, t):
    """Nothing but noise round a level: the honest forecast is flat."""
    return white(draw, n, t)


def plain_walk(draw, n, t):
    """A random walk as it is, or its exponential: the honest forecast is the last value."""
    y = white(draw, n, t).cumsum(-1)
    drift = draw.normal(n) * draw.log_uniform(n, 0.01, 0.2) * draw.steps(t) * draw.chance(n, 0.3)
    y = y + drift
    log = y * draw.log_uniform(n, 0.003, 0.05)
    return torch.where(draw.chance(n, 0.5), torch.exp(log.clamp(-8, 8)), y)
