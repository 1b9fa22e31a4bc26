# SPDX-License-Identifier: Apache-2.0
"""Trends, seasonal waves and whole families of synthetic series, in units of about one."""

import math

import torch

from .noise import (
    Draw, by_kind, convolve, heavy, moments, power_law, relaxing, ringing, smooth, unit, walk,
    wander, white,
)

BINS = 336  # resolution of one cycle: a week of half hours

# Cycles in steps as people's data have them, with weights. Two numbers: a short cycle inside a
# long one (days inside a week, days inside a year, ...).
CYCLES = [
    ((24, 168), 10), ((24,), 6), ((7,), 8), ((7, 365.25), 5), ((365.25,), 6), ((12,), 14),
    ((4,), 6), ((52.18,), 6), ((48, 336), 5), ((48,), 4), ((96, 672), 4), ((96,), 3),
    ((144, 1008), 3), ((144,), 3), ((288, 2016), 3), ((288,), 3), ((60, 1440), 2), ((1440,), 2),
    ((60,), 2), ((5, 252), 2), ((5,), 1.5), ((24, 8766), 4), ((13,), 1), ((6,), 1.5), ((3,), 1),
    ((10,), 1), ((30,), 1), ((8,), 1), ((16,), 1), ((32,), 1), ((120,), 1), ((168,), 2),
    ((720,), 1), ((365,), 2), ((52,), 3), ((26,), 1), ((18,), 0.5), ((36,), 0.5), ((20,), 0.5),
]  # fmt: skip


def straight(draw, n, t):
    return unit(draw.steps(t).expand(n, t)) * draw.normal(n).sign()


def broken(draw, n, t):
    """Piecewise linear; pieces last from 20 steps to several lengths."""
    change = moments(draw, n, t, draw.log_uniform(n, 20, 3.0 * t)) * draw.normal(n, t)
    slope = torch.cumsum(change, -1) + draw.normal(n)
    damping = torch.exp(-1 / draw.log_uniform(n, t / 4, 50.0 * t))
    return unit(torch.cumsum(slope * damping ** draw.steps(t), -1))


def logistic(draw, n, t):
    """Growth that saturates, or a transition between two levels."""
    centre, width = draw.uniform(n, -0.2, 1.2) * t, draw.log_uniform(n, 0.01, 0.5) * t
    return unit(torch.sigmoid((draw.steps(t) - centre) / width) * draw.normal(n).sign())


def stairs(draw, n, t):
    """Level shifts."""
    shift = moments(draw, n, t, draw.log_uniform(n, 30, 2.0 * t)) * draw.normal(n, t)
    return unit(torch.cumsum(shift, -1))


def nothing(draw, n, t):
    return torch.zeros(n, t, device=draw.device)


def trend(draw, n, t):
    kinds = {nothing: 3, straight: 3, broken: 3, logistic: 1, stairs: 0.7, wander: 2, walk: 2.5}
    return by_kind(draw, n, t, kinds)


# --- one cycle, as a table over its phase -------------------------------------------------------


def harmonics(draw, n, bins):
    order = torch.arange(1, 13, device=draw.device, dtype=torch.float32)[None]
    size = draw.normal(n, 12) * order ** -draw.uniform(n, 0.5, 3)
    size = size * (order <= draw.integers(n, 1, 13))
    angle = 2 * math.pi * draw.steps(bins)[..., None] / bins * order[:, None]
    angle = angle + 2 * math.pi * draw.uniform(n, 0, 1, 12)[:, None]
    return (size[:, None] * torch.cos(angle)).sum(-1)


def bumps(draw, n, bins):
    """One to three peaks of random place and width."""
    place = draw.uniform(n, 0, 1, 3)[..., None]
    width = draw.log_uniform(n, 0.01, 0.2, 3)[..., None]
    size = (draw.normal(n, 3).abs() * (draw.uniform(n, 0, 1, 3) < 0.6))[..., None]
    size[:, 0] = size[:, 0].clamp(min=0.5)
    off = draw.steps(bins)[None] / bins - place
    off = off - off.round()
    return (size * torch.exp(-0.5 * (off / width) ** 2)).sum(1)


def plateaus(draw, n, bins):
    """Constant pieces, as in on/off schedules."""
    edges = draw.uniform(n, 0, 1, 4).sort(-1).values
    edges[:, 2:] = torch.where(draw.chance(n, 0.6), torch.ones_like(edges[:, 2:]) * 2, edges[:, 2:])
    level = draw.normal(n, 5)
    place = (draw.steps(bins) / bins).expand(n, bins).contiguous()
    index = torch.searchsorted(edges.contiguous(), place)
    return level.gather(1, torch.where(index == 4, torch.zeros_like(index), index))


def ramp(draw, n, bins):
    """A sawtooth, from sudden to symmetric."""
    peak, place = draw.uniform(n, 0.02, 0.98), draw.steps(bins) / bins
    return torch.where(place < peak, place / peak, (1 - place) / (1 - peak))


def rough(draw, n, bins):
    """Every bin its own value, slightly smoothed: what a month of the year often looks like."""
    values = draw.normal(n, bins)
    f = torch.fft.rfftfreq(bins, device=draw.device)[None]
    keep = torch.exp(-0.5 * (2 * math.pi * f * draw.log_uniform(n, 1, 40)) ** 2)
    return torch.fft.irfft(torch.fft.rfft(values) * keep, bins)


def cycle(draw, n, bins=BINS):
    kinds = {harmonics: 5, bumps: 2, plateaus: 1, ramp: 0.7, rough: 3}
    table = unit(by_kind(draw, n, bins, kinds))
    shift = draw.integers(n, 0, bins)
    index = (torch.arange(bins, device=draw.device)[None] + shift) % bins
    return table.gather(1, index)


def days_in_week(draw, n):
    """A week of daily cycles: each day with its own height and level, weekends apart."""
    day = cycle(draw, n, BINS // 7)
    weekend = (torch.arange(7, device=draw.device)[None] + draw.integers(n, 0, 7)) % 7 >= 5
    height = 1 + 0.15 * draw.normal(n, 7) + weekend * draw.normal(n) * 0.5
    level = 0.15 * draw.normal(n, 7) + weekend * draw.normal(n) * draw.uniform(n, 0, 1.5)
    return unit((day[:, None] * height[..., None] + level[..., None]).flatten(1))


def wave(draw, n, t, period, table):
    """The table's cycle repeated every `period` (n, 1) steps; some drift in phase and height."""
    phase = draw.steps(t) / period + draw.uniform(n, 0, 1)
    slip = draw.chance(n, 0.2)[:, 0].nonzero()[:, 0]
    if len(slip):
        slow = smooth(draw, len(slip), t, period[slip] * draw.log_uniform(len(slip), 0.5, 10))
        phase[slip] += slow * draw.log_uniform(len(slip), 0.01, 0.2)
    place = (phase % 1) * table.shape[1]
    low = place.long().clamp(max=table.shape[1] - 1)
    left = table.gather(1, low)
    right = table.gather(1, (low + 1) % table.shape[1])
    y = torch.lerp(left, right, place - low)
    swell = draw.chance(n, 0.35)[:, 0].nonzero()[:, 0]
    if len(swell):
        k = len(swell)
        slow = smooth(draw, k, t, draw.log_uniform(k, 2, 20) * period[swell])
        growth = draw.steps(t) / t * draw.normal(k)
        y[swell] *= torch.exp(draw.uniform(k, 0.05, 0.6) * slow + 0.5 * growth)
    return y


def seasons(draw, n, t):
    """One to three seasonalities; the cycles in CYCLES or any period."""
    usable = [(c, w) for c, w in CYCLES if c[0] <= t / 2]
    choice = draw.pick(n, [w for _, w in usable])
    short = torch.tensor([c[0] for c, _ in usable], device=draw.device)[choice][:, None]
    long = torch.tensor([c[-1] for c, _ in usable], device=draw.device)[choice][:, None]
    free = draw.chance(n, 0.2)
    short = torch.where(free, draw.log_uniform(n, 2.5, t / 2), short)
    long = torch.where(free, short * draw.log_uniform(n, 2, 30), long)
    has_long = (long > short) & (~free | draw.chance(n, 0.4))
    is_week = has_long & ((long / short - 7).abs() < 0.1) & draw.chance(n, 0.75)
    third = draw.chance(n, 0.06)

    y = torch.zeros(n, t, device=draw.device)
    for rows, period, make, size in (
        (is_week, long, days_in_week, 1.0),
        (~is_week, short, cycle, 1.0),
        (has_long & ~is_week, long, cycle, draw.log_uniform(n, 0.2, 3)),
        (third, draw.log_uniform(n, 3, t / 2), cycle, 0.5),
    ):
        rows = rows[:, 0].nonzero()[:, 0]
        if len(rows):
            part = wave(draw, len(rows), t, period[rows], make(draw, len(rows)))
            y[rows] += part * (size[rows] if torch.is_tensor(size) else size)
    return unit(y)


def disturbance(draw, n, t):
    """Noise around the pattern; sometimes its size changes in time."""
    x = by_kind(draw, n, t, {white: 5, relaxing: 5, power_law: 1, ringing: 0.5})
    rows = draw.chance(n, 0.25)[:, 0].nonzero()[:, 0]
    if len(rows):
        k = len(rows)
        slow = smooth(draw, k, t, draw.log_uniform(k, 10, 1.0 * t))
        x[rows] *= torch.exp(slow * draw.uniform(k, 0.1, 0.8))
    return unit(x)


# --- families -----------------------------------------------------------------------------------


def structural(draw, n, t):
    """Trend + seasons + noise, added or multiplied."""
    up = trend(draw, n, t) * torch.where(
        draw.chance(n, 0.6), draw.log_uniform(n, 0.2, 4), draw.log_uniform(n, 0.02, 0.5)
    )
    season = seasons(draw, n, t)
    quiet = draw.log_uniform(n, 0.01, 0.3)
    noise = disturbance(draw, n, t) * torch.where(draw.chance(n, 0.5), quiet, draw.log_uniform(n, 0.1, 1.5))
    added = up + season + noise
    size = draw.log_uniform(n, 0.05, 0.8)
    product = torch.exp(size * up) * (1 + size * season).clamp(min=0) * (1 + 0.5 * size * noise)
    grown = torch.exp(size * added)
    choice = draw.pick(n, [5, 2, 2])[:, None]
    return torch.where(choice == 0, added, torch.where(choice == 1, product, grown))


def trending(draw, n, t):
    """A trend and little else: annual and quarterly economics."""
    up = by_kind(draw, n, t, {straight: 2, broken: 3, logistic: 1, wander: 2, walk: 3})
    y = up + disturbance(draw, n, t) * draw.log_uniform(n, 0.005, 0.5)
    return torch.where(draw.chance(n, 0.4), torch.exp(y * draw.uniform(n, 0.1, 1)), y)


def stationary(draw, n, t):
    return by_kind(draw, n, t, {white: 1, relaxing: 4, ringing: 3, power_law: 3, wander: 1})


def prices(draw, n, t):
    """Geometric random walk with stochastic volatility, jumps and a small drift.

    The drift is a few hundredths of a day's deviation, as the yearly Sharpe ratios of markets are
    (0.3 of a year is 0.02 of a day), and changes along the way: yesterday's trend says little.
    """
    step = draw.log_uniform(n, 0.001, 0.03)
    calm = smooth(draw, n, t, draw.log_uniform(n, 5, 200)) + relaxing(draw, n, t)
    volatility = torch.exp(draw.uniform(n, 0, 0.5) * calm)
    shock = heavy(draw, n, t) * volatility
    mood = smooth(draw, n, t, draw.log_uniform(n, 50, 2000))
    drift = 0.02 + 0.02 * draw.normal(n) + draw.uniform(n, 0, 0.04) * mood
    bounce = draw.uniform(n, -0.1, 0.1) * draw.chance(n, 0.5)
    shock = shock + bounce * torch.nn.functional.pad(shock[:, :-1], (1, 0))
    return torch.exp((torch.cumsum(step * (shock + drift), -1)).clamp(-8, 8))


def regimes(draw, n, t):
    """Two or three states with their own level, spread and cycle, switching at random."""
    gap = draw.log_uniform(n, 10, 1.0 * t)
    state = (torch.cumsum(moments(draw, n, t, gap), -1) * draw.integers(n, 1, 3)) % 3
    level = draw.normal(n, 3).gather(1, state)
    spread = draw.log_uniform(n, 0.03, 1, 3).gather(1, state)
    y = level + spread * stationary(draw, n, t)
    return y + torch.where(draw.chance(n, 0.3), seasons(draw, n, t) * spread, 0 * y)


def rate(draw, n, t):
    """A positive curve of mean about one."""
    log = draw.uniform(n, 0, 0.7) * seasons(draw, n, t) + draw.uniform(n, 0, 0.6) * trend(draw, n, t)
    return torch.exp(log.clamp(-4, 4))


def counts(draw, n, t):
    """Poisson counts around a moving rate, some of them overdispersed."""
    mean = rate(draw, n, t) * draw.log_uniform(n, 0.1, 200)
    extra = torch.exp(draw.uniform(n, 0, 0.6) * stationary(draw, n, t))
    mean = torch.where(draw.chance(n, 0.5), mean * extra, mean)
    return torch.poisson(mean.clamp(max=1e4), generator=draw.generator)


def intermittent(draw, n, t):
    """Demand that is mostly zero."""
    often = (rate(draw, n, t) * draw.log_uniform(n, 0.02, 0.5)).clamp(max=0.95)
    size = 1 + torch.poisson(draw.log_uniform(n, 0.1, 20).expand(n, t).contiguous(), generator=draw.generator)
    return draw.chance(n, often, t) * size


def pulses(draw, n, t):
    """Events that rise and fade: rainfall in a river, load after a release, meals."""
    due = moments(draw, n, 2 * t, draw.log_uniform(n, 5, t / 3))
    size = torch.exp(draw.normal(n, 2 * t) * draw.uniform(n, 0.1, 1))
    fade, rise = draw.log_uniform(n, 1, 100), draw.log_uniform(n, 0.3, 10)
    k = draw.steps(t)
    kernel = torch.exp(-k / fade) - torch.exp(-k / (fade * rise / (1 + rise)))
    y = unit(convolve(due * size, kernel))
    y = y + torch.where(draw.chance(n, 0.3), seasons(draw, n, t), 0 * y)
    return y + disturbance(draw, n, t) * draw.log_uniform(n, 0.003, 0.3)


def switching(draw, n, t):
    """On and off, fill and reset, timers."""
    flips = torch.cumsum(moments(draw, n, t, draw.log_uniform(n, 4, t / 2)), -1) % 2
    period, phase = draw.log_uniform(n, 5, 1.0 * t), draw.uniform(n, 0, 1)
    saw = (draw.steps(t) / period + phase) % 1
    resets = moments(draw, n, t, period)
    last = torch.cummax(torch.where(resets, draw.steps(t).expand(n, t), 0 * saw), -1).values
    fill = (draw.steps(t) - last) / period
    choice = draw.pick(n, [1, 1, 1])[:, None]
    y = torch.where(choice == 0, flips.float(), torch.where(choice == 1, saw, fill))
    return unit(y) + disturbance(draw, n, t) * draw.log_uniform(n, 0.002, 0.3)


def weather(draw, n, t):
    """A daily or yearly wave under a slow disturbance; sometimes only its positive part."""
    y = seasons(draw, n, t) * draw.log_uniform(n, 0.3, 3) + relaxing(draw, n, t)
    y = y + white(draw, n, t) * draw.uniform(n, 0, 0.3)
    bent = torch.relu(y - draw.uniform(n, -2, 1)) ** draw.uniform(n, 0.7, 2.5)
    return torch.where(draw.chance(n, 0.25), bent, y)


def cycles(draw, n, t):
    """Irregular cycles with sharp peaks, as of populations or the sun."""
    y = torch.exp(ringing(draw, n, t) * draw.uniform(n, 0.3, 1.2))
    return y + disturbance(draw, n, t) * draw.log_uniform(n, 0.01, 0.3)


FAMILIES = {
    structural: 42, trending: 9, stationary: 7, walk: 7, prices: 9, regimes: 3, counts: 5,
    intermittent: 3, pulses: 4, switching: 3, weather: 6, cycles: 2,
}  # fmt: skip


def curve(draw: Draw, n: int, t: int):
    return by_kind(draw, n, t, FAMILIES)
