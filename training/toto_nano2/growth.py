# SPDX-License-Identifier: Apache-2.0
"""Levels that move: exponential smoothing's own processes, seasonal integration, growth, shifts."""

import torch

from toto_nano.curves import disturbance
from toto_nano.noise import by_kind, heavy, moments, unit, white

from .cycles import PAIRS, pairs, repeat, seasonal

RING = 64  # the longest season of the recursive family


def smoothing(draw, n, t):
    """ETS: level, damped trend and season with additive or relative errors."""
    season = torch.where(draw.chance(n, 0.65), pairs(draw, n, t)[0], torch.ones(n, 1, device=draw.device))
    season = torch.where(season <= RING, season, torch.ones_like(season))[:, 0].long()
    relative = draw.chance(n, 0.5)[:, 0]
    product = draw.chance(n, 0.6)[:, 0] & relative
    sigma = draw.log_uniform(n, 0.002, 0.3)[:, 0]
    alpha = draw.uniform(n, 0.01, 1)[:, 0]
    beta = alpha * draw.log_uniform(n, 0.003, 0.5)[:, 0] * draw.chance(n, 0.6)[:, 0]
    gamma = draw.log_uniform(n, 0.001, 0.4)[:, 0] * (1 - alpha)
    phi = torch.where(draw.chance(n, 0.5), draw.uniform(n, 0.8, 0.995), torch.ones(n, 1, device=draw.device))[:, 0]
    level = torch.ones(n, device=draw.device)
    slope = draw.normal(n)[:, 0] * draw.log_uniform(n, 3e-4, 0.05)[:, 0] * draw.chance(n, 0.7)[:, 0]
    ring = draw.normal(n, RING) * draw.log_uniform(n, 0.01, 0.5)
    ring = torch.where((season > 1)[:, None], ring - ring.mean(-1, keepdim=True), 0)
    ring = torch.where(product[:, None], ring.clamp(min=-0.9), ring)
    noise = white(draw, n, t) * sigma[:, None]
    y = torch.empty(n, t, device=draw.device)
    rows = torch.arange(n, device=draw.device)
    for i in range(t):
        at = i % season
        s = ring[rows, at]
        base = level + phi * slope
        size = torch.where(relative, base.abs().clamp(0.05, 50), torch.ones_like(base))
        e = noise[:, i] * size
        y[:, i] = torch.where(product, base * (1 + s), base + s) + e
        level = (base + alpha * e).clamp(-100, 100)
        slope = (phi * slope + beta * e).clamp(-1, 1)
        ring[rows, at] = s + gamma * torch.where(product, e / size, e)
    return y


def integrated(draw, n, t):
    """Seasonal ARIMA: sums over steps and over seasons of noise with a short memory. One season
    for all rows of a call."""
    usable = [p[0] for p in PAIRS if p[0] <= t / 3]
    m = usable[int(draw.integers(1, 0, len(usable)))]
    e = white(draw, n, t + 2)
    e = e[:, 2:] + draw.uniform(n, -0.9, 0.9) * e[:, 1:-1] * draw.chance(n, 0.7)
    cycles = -(-t // m)
    padded = torch.nn.functional.pad(e, (0, cycles * m - t)).view(n, cycles, m)
    keep = torch.where(draw.chance(n, 0.5), draw.uniform(n, 0.0, 0.3), torch.ones(n, 1, device=draw.device))
    start = draw.normal(n, m) * draw.log_uniform(n, 0.3, 30)
    own = (start[:, None] + keep[..., None] * padded.cumsum(1)).flatten(1)[:, :t]
    walk = (e * draw.uniform(n, 0, 1)).cumsum(-1) * draw.log_uniform(n, 0.03, 1)
    drift = draw.steps(t) * draw.normal(n) * draw.log_uniform(n, 1e-4, 0.1)
    kind = draw.pick(n, [2, 2, 1])[:, None]
    y = torch.where(kind == 0, own + walk + drift, torch.where(kind == 1, own + drift + e, own + walk))
    return torch.where(draw.chance(n, 0.3), torch.exp(unit(y) * draw.uniform(n, 0.1, 0.9)), y)


def growing(draw, n, t):
    """Exponential, damped, saturating or power growth; season and noise grow with the level."""
    u = draw.steps(t) / t
    total = draw.normal(n) * draw.log_uniform(n, 0.2, 2.5)
    exponential = torch.exp(total * u)
    bend = draw.log_uniform(n, 1, 12)
    damped = 1 + total.abs() * (1 - torch.exp(-bend * u))
    power = 0.02 + (u + draw.uniform(n, 0, 0.2)) ** draw.log_uniform(n, 0.4, 4)
    logistic = 0.03 + torch.sigmoid((u - draw.uniform(n, 0.2, 1.2)) * draw.log_uniform(n, 4, 25))
    kinds = torch.stack((exponential, damped, power, logistic))
    level = kinds.gather(0, draw.pick(n, [4, 2, 1.5, 1.5])[None, :, None].expand(1, n, t))[0]
    season = torch.where(draw.chance(n, 0.7), seasonal(draw, n, t) * draw.log_uniform(n, 0.01, 0.35), 0)
    noise = disturbance(draw, n, t) * draw.log_uniform(n, 0.002, 0.2)
    product = level * (1 + season).clamp(min=0) * torch.exp(noise)
    added = level + level.std(-1, keepdim=True) * (season + noise)
    y = torch.where(draw.chance(n, 0.75), product, added)
    return torch.where(draw.chance(n, 0.1), y.flip(-1), y)


def lines(draw, n, t):
    """A straight or broken line under an exact season and some noise: short business series."""
    turn = moments(draw, n, t, draw.log_uniform(n, 12, 4.0 * t))
    slope = draw.normal(n) + (turn * draw.normal(n, t)).cumsum(-1)
    y = slope.cumsum(-1)
    y = y / (y.std(-1, keepdim=True) + 1e-6) * draw.log_uniform(n, 0.1, 5)
    season = torch.where(draw.chance(n, 0.75), seasonal(draw, n, t), 0)
    return y + season + disturbance(draw, n, t) * draw.log_uniform(n, 0.01, 1)


def stepping(draw, n, t):
    """Level shifts of one to many deviations, often: half of all origins lie soon after one."""
    gap = draw.log_uniform(n, 12, 300)
    jump = moments(draw, n, t, gap) * (draw.normal(n, t) + 0.5 * heavy(draw, n, t))
    level = jump.cumsum(-1) * draw.log_uniform(n, 1, 12)
    back = draw.chance(n, 0.25)  # shifts that return: the level is one of two
    two = (moments(draw, n, t, gap).cumsum(-1) % 2) * draw.log_uniform(n, 1, 12)
    base = torch.where(draw.chance(n, 0.5), seasonal(draw, n, t) * draw.log_uniform(n, 0.3, 3), 0)
    return torch.where(back, two, level) + base + disturbance(draw, n, t)


def outliers(draw, n, t):
    """A calm series with single wild points that mean nothing for what follows."""
    base = by_kind(draw, n, t, {lines: 2, seasonal: 1, disturbance: 1})
    wild = moments(draw, n, t, draw.log_uniform(n, 15, 400)) * heavy(draw, n, t)
    return unit(base) + wild * draw.log_uniform(n, 2, 15)


def changing(draw, n, t):
    """One season gives way to another, or its height changes at once."""
    cut = (draw.uniform(n, 0.1, 0.95) * t).floor()
    after = draw.steps(t) >= cut
    one = seasonal(draw, n, t)
    short, _ = pairs(draw, n, t)
    two = torch.where(draw.chance(n, 0.5), one * draw.uniform(n, 0, 2), unit(repeat(draw, n, t, short)))
    y = torch.where(after, two + draw.normal(n), one)
    return y + disturbance(draw, n, t) * draw.log_uniform(n, 0.02, 0.7)
