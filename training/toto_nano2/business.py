# SPDX-License-Identifier: Apache-2.0
"""Short business and economic series: ARIMA with momentum, steady growth, figures that surprise."""

import torch

from toto_nano.curves import disturbance
from toto_nano.noise import convolve, heavy, moments, unit, white

from .cycles import repeat

CALENDAR = [12, 12, 12, 4, 4, 4, 7, 7, 24, 52, 52, 5, 6]  # seasons of figures that people keep


def calendar(draw, n, t):
    """A season of the calendar, one value for every step of it, unit deviation; (n, t)."""
    usable = [m for m in CALENDAR if m <= t / 3] or [4]
    m = torch.tensor(usable, device=draw.device, dtype=torch.float32)[draw.pick(n, [1.0] * len(usable))]
    return repeat(draw, n, t, m[:, None])


def response(draw, n, t, persistent):
    """Impulse responses of stationary ARMA(2,2), (n, t), from random partial autocorrelations."""
    one = torch.where(persistent, draw.uniform(n, 0.3, 0.98), draw.uniform(n, -0.6, 0.9))
    two = draw.uniform(n, -0.6, 0.5) * draw.chance(n, 0.5)
    a, b = (one * (1 - two))[:, 0], two[:, 0]
    moving = draw.uniform(n, -0.9, 0.9, 2) * draw.chance(n, 0.4, 2)
    out = torch.zeros(n, t, device=draw.device)
    last = before = torch.zeros(n, device=draw.device)
    for i in range(min(t, 160)):
        now = a * last + b * before
        now = now + (1.0 if i == 0 else moving[:, i - 1] if i <= 2 else 0.0)
        out[:, i] = now
        last, before = now, last
    return out


def momentum(draw, n, t):
    """Changes that persist, as in employment: sums of an autoregression, once or twice, with a
    drift, in logarithms or not, perhaps under a season of the calendar."""
    persistent = draw.chance(n, 0.6)
    change = unit(convolve(white(draw, n, 2 * t), response(draw, n, t, persistent)))
    change = change + draw.normal(n) * draw.log_uniform(n, 0.02, 1.5) * draw.chance(n, 0.6)
    once = change.cumsum(-1)
    smooth = unit(convolve(white(draw, n, 2 * t), response(draw, n, t, draw.chance(n, 0.2))))
    twice = (smooth * draw.log_uniform(n, 0.02, 0.3) + draw.normal(n) * 0.3).cumsum(-1)
    twice = unit(twice.cumsum(-1)) * draw.log_uniform(n, 3, 60)
    y = torch.where(draw.pick(n, [4, 1])[:, None] == 0, once, twice + white(draw, n, t) * draw.chance(n, 0.6))
    season = calendar(draw, n, t) * draw.log_uniform(n, 0.1, 4) * y.diff(dim=-1).std(-1, keepdim=True)
    y = y + torch.where(draw.chance(n, 0.45), season, 0)
    log = torch.exp((unit(y) * draw.log_uniform(n, 0.05, 1)).clamp(-6, 6))
    return torch.where(draw.chance(n, 0.4), log, y)


def arma(draw, n, t):
    """A stationary figure round a level: rates, shares, balances; perhaps with a season."""
    y = unit(convolve(white(draw, n, 2 * t), response(draw, n, t, draw.chance(n, 0.4))))
    line = draw.steps(t) * draw.normal(n) * draw.log_uniform(n, 1e-3, 0.1)
    y = y + torch.where(draw.chance(n, 0.4), line, 0)
    return y + torch.where(draw.chance(n, 0.4), calendar(draw, n, t) * draw.log_uniform(n, 0.2, 4), 0)


def compounding(draw, n, t):
    """Growth by a rate for ever: up to some percent a step, the season and the noise relative."""
    rate = draw.log_uniform(n, 0.001, 0.05) * torch.where(draw.chance(n, 0.12), -1.0, 1.0)
    rate = rate.clamp(-6 / t, 6 / t)
    wander = (draw.normal(n, t) * rate.abs() * draw.log_uniform(n, 0.01, 3)).cumsum(-1)
    bend = (moments(draw, n, t, draw.log_uniform(n, 60, 900)) * draw.normal(n, t) * rate).cumsum(-1).cumsum(-1)
    log = rate * draw.steps(t)
    log = log + torch.where(draw.chance(n, 0.35), wander, 0) + torch.where(draw.chance(n, 0.25), bend, 0)
    season = calendar(draw, n, t) * draw.log_uniform(n, 0.02, 0.35) * draw.chance(n, 0.75)
    noise = disturbance(draw, n, t) * draw.log_uniform(n, 0.002, 0.12)
    return torch.exp(log.clamp(-7, 7)) * (1 + season).clamp(min=0.02) * torch.exp(noise)


def steady(draw, n, t):
    """Growth by a rate that holds, times an exact season, with little noise: nothing to learn but the
    rate and the season, and both must be carried on. A few slow down, evenly, towards a limit."""
    rate = draw.log_uniform(n, 0.002, 0.03) * torch.where(draw.chance(n, 0.12), -1.0, 1.0)
    rate = rate.clamp(-7 / t, 7 / t)
    slower = draw.log_uniform(n, 0.5, 8) / t
    damped = (1 - torch.exp(-slower * draw.steps(t))) / slower
    log = rate * torch.where(draw.chance(n, 0.2), damped, draw.steps(t).expand(n, t))
    season = calendar(draw, n, t) * draw.log_uniform(n, 0.02, 0.4) * draw.chance(n, 0.85)
    noise = draw.normal(n, t) * draw.log_uniform(n, 0.002, 0.06)
    return torch.exp(log) * (1 + season).clamp(min=0.05) * torch.exp(noise)


KEPT = [4, 4, 4, 12, 12, 52, 52, 7]  # seasons of figures that offices publish


def evolving(draw, n, t):
    """Level, slope and season each wander by a little of their own, under noise: what quarters and
    weeks look like. One season for all rows of a call."""
    usable = [m for m in KEPT if m <= t / 3]
    m = usable[int(draw.integers(1, 0, len(usable)))]
    slope = draw.normal(n) * draw.log_uniform(n, 0.01, 1) * draw.chance(n, 0.8)
    turns = (draw.normal(n, t) * draw.log_uniform(n, 0.001, 0.1)).cumsum(-1) * draw.chance(n, 0.5)
    level = (slope + turns + white(draw, n, t) * draw.log_uniform(n, 0.03, 1)).cumsum(-1)
    years = -(-t // m)
    own = draw.normal(n, m)[:, None] * draw.log_uniform(n, 0.3, 10)[..., None]
    moved = draw.normal(n, years * m).view(n, years, m).cumsum(1) * (draw.log_uniform(n, 0.01, 0.4) * draw.chance(n, 0.6))[..., None]
    season = (own + moved).flatten(1)[:, :t] * draw.chance(n, 0.85)
    y = level + season + white(draw, n, t) * draw.log_uniform(n, 0.05, 2)
    log = torch.exp((unit(y) * draw.log_uniform(n, 0.05, 1)).clamp(-6, 6))
    return torch.where(draw.chance(n, 0.5), log, y)


def drifting(draw, n, t):
    """A walk whose drift is felt, from a tenth of a step's deviation to three of them; now and
    then it becomes another. Production, population, prices by the year."""
    felt = draw.log_uniform(n, 0.1, 3)
    turn = moments(draw, n, t, draw.log_uniform(n, 25, 8.0 * t)) * draw.normal(n, t) * draw.log_uniform(n, 0.1, 1)
    drift = felt * torch.where(draw.chance(n, 0.15), -1.0, 1.0) * (1 + turn.cumsum(-1))
    y = (white(draw, n, t) + drift).cumsum(-1)
    y = y + white(draw, n, t) * draw.log_uniform(n, 0.05, 2) * draw.chance(n, 0.5)
    y = y + calendar(draw, n, t) * draw.log_uniform(n, 0.3, 6) * draw.chance(n, 0.3)
    log = torch.exp((y / felt * draw.log_uniform(n, 0.002, 0.05).clamp(max=8 / t)).clamp(-9, 9))
    return torch.where(draw.chance(n, 0.4), log, y)


def surprised(draw, y):
    """An accident: from some moment on a new level, slope or size of noise, with nothing before it
    that tells. Real series do so now and then, and bands must hold that too."""
    n, t = y.shape
    local = (y.diff(dim=-1).std(-1, keepdim=True) + 0.05 * y.std(-1, keepdim=True)) * draw.log_uniform(n, 0.3, 3)
    due = moments(draw, n, t, draw.log_uniform(n, 20, 2.0 * t))
    size = draw.normal(n, t) + 0.5 * heavy(draw, n, t)
    level = (due * size).cumsum(-1) * local
    slope = (due * size).cumsum(-1).cumsum(-1) * local * draw.log_uniform(n, 0.01, 0.2)
    louder = draw.normal(n, t) * local * ((due.cumsum(-1) % 2) > 0)
    kind = draw.pick(n, [3, 2, 1])[:, None]
    return y + torch.where(kind == 0, level, torch.where(kind == 1, slope, louder))
