# SPDX-License-Identifier: Apache-2.0
"""Days in years with feasts, and what a grid meters in a day: profiles, sun, wind, timers."""

import math

import torch

from toto_nano.curves import cycle, trend
from toto_nano.noise import by_kind, convolve_ar1, relaxing, smooth, unit, white

YEAR = 365.25
FEASTS = 12  # at most, in a year
YEARS = 32  # with effects of their own


def feasts(draw, place, year, number):
    """Effects of days that come once a year, (n, t); place (n, t): steps since the year began.

    Each lasts one to four steps, grows before or fades after, and is a little different every time;
    some move by days from year to year."""
    n, t = place.shape
    home = draw.uniform(n, 0, 1, FEASTS) * year
    size = draw.normal(n, FEASTS) * draw.chance(n, draw.uniform(n, 0.1, 0.9), FEASTS)
    short = (year < 100).float()  # weeks: a feast is one step
    wide = 1 + (draw.log_uniform(n, 1, 8, FEASTS) * draw.chance(n, 0.5, FEASTS)).floor() * (1 - short)
    before = draw.log_uniform(n, 0.3, 12, FEASTS) * draw.chance(n, 0.3, FEASTS) * (1 - 0.8 * short) + 1e-3
    after = draw.log_uniform(n, 0.3, 6, FEASTS) * draw.chance(n, 0.2, FEASTS) * (1 - 0.8 * short) + 1e-3
    moves = draw.chance(n, 0.35, FEASTS) * draw.log_uniform(n, 1, 15, FEASTS) * (1 - 0.8 * short)
    y = torch.zeros_like(place)
    for k in range(FEASTS):
        own = slice(k, k + 1)
        shift = (draw.uniform(n, -1, 1, YEARS) * moves[:, own]).gather(1, number)
        height = (1 + 0.15 * draw.normal(n, YEARS)).gather(1, number)
        off = place - (home[:, own] + shift).floor()
        off = torch.remainder(off + year / 2, year) - year / 2
        inside = (off >= 0) & (off < wide[:, own])
        grows = torch.exp((off / before[:, own]).clamp(-30, 0)) * (off < 0)
        fades = torch.exp((-(off - wide[:, own] + 1) / after[:, own]).clamp(-30, 0)) * (off >= wide[:, own])
        y = y + size[:, own] * height * torch.where(inside, 1.0, 0.7 * grows + 0.7 * fades)
    return y


def year_of(draw, n, t, year):
    """(steps since the year began, number of the year), both (n, t); the first day is any."""
    step = draw.steps(t) + (draw.uniform(n, 0, 1) * 400 * year / YEAR).floor()
    number = (step / year).floor()
    return (step - number * year).floor(), number.long() % YEARS


def days(draw, n, t):
    """Daily figures, of every day or of working days, or weekly ones: week, year, feasts."""
    kind = draw.pick(n, [5, 2, 2] if t > 600 else [2, 1, 5] if t > 400 else [0.2, 0.1, 5])[:, None]
    week = torch.where(kind == 0, 7, torch.where(kind == 1, 5, 1))
    year = torch.where(kind == 0, YEAR, torch.where(kind == 1, YEAR * 5 / 7, YEAR / 7))
    place, number = year_of(draw, n, t, year)
    table = cycle(draw, n, 336)
    yearly = table.gather(1, (place / year * 336).long().clamp(0, 335)) * draw.log_uniform(n, 0.1, 2.5)
    yearly = torch.where(draw.chance(n, 0.85), yearly, 0)
    day = (torch.arange(t, device=draw.device)[None] + draw.integers(n, 0, 7)) % week
    free = (day >= 5) & draw.chance(n, 0.7)
    by_day = draw.normal(n, 7) * draw.log_uniform(n, 0.05, 1)
    weekly = by_day.gather(1, day) + free * draw.normal(n) * draw.uniform(n, 0, 3)
    weekly = torch.where(week > 1, weekly, 0) * draw.chance(n, 0.85)
    swing = draw.uniform(n, 0, 0.6) * draw.chance(n, 0.3)
    weekly = weekly * (1 + swing * unit(yearly))
    feast = feasts(draw, place, year, number) * draw.log_uniform(n, 0.5, 5) * draw.chance(n, 0.75)
    slow = trend(draw, n, t) * draw.log_uniform(n, 0.05, 3)
    rough = relaxing(draw, n, t) * draw.log_uniform(n, 0.05, 1) + white(draw, n, t) * draw.log_uniform(n, 0.05, 0.7)
    y = yearly + weekly + feast + slow + rough
    log = unit(y) * draw.uniform(n, 0.05, 0.8)
    form = draw.pick(n, [4, 3, 2])[:, None]
    grown = torch.exp(log.clamp(-5, 5))
    closed = (day >= 6) & draw.chance(n, 0.15) & (week == 7)
    grown = torch.where(closed, 0.0, grown)
    counted = torch.poisson((grown * draw.log_uniform(n, 0.5, 3000)).clamp(0, 1e5), generator=draw.generator)
    return torch.where(form == 0, y, torch.where(form == 1, grown, counted))


DAYS = [24, 24, 24, 48, 96, 96, 96, 96, 144, 288]  # steps of a day


def by_day(draw, n, count, low, high):
    """A value of every day with memory, unit deviation times a size of low to high, (n, count)."""
    return unit(convolve_ar1(white(draw, n, count), draw.uniform(n, 0, 0.8))) * draw.log_uniform(n, low, high)


def spread_out(values, steps):
    return values.repeat_interleave(steps, 1)


def metered(draw, n, count, steps):
    """Profiles of three kinds of day that turn from winter to summer, (n, count * steps)."""
    base = cycle(draw, n * 2, steps).view(n, 2, 1, steps)
    other = cycle(draw, n * 4, steps).view(n, 2, 2, steps)
    apart = draw.log_uniform(n, 0.05, 1.2).view(n, 1, 1, 1)
    kinds = torch.cat((base, base + apart * other - draw.uniform(n * 2, 0, 1.2).view(n, 1, 2, 1)), 2)
    kinds[:, 1] = kinds[:, 0] + (kinds[:, 1] - kinds[:, 0]) * draw.uniform(n, 0, 0.8).view(n, 1, 1)
    number = torch.arange(count, device=draw.device)[None] + draw.integers(n, 0, 7)
    kind = (number % 7 - 4).clamp(min=0)  # Saturday 1, Sunday 2
    kind = torch.where(draw.chance(n, 0.2), 0, kind)
    kind = torch.where(draw.chance(n, 0.03, count) & draw.chance(n, 0.6), 2, kind)
    turned = 0.5 + 0.5 * torch.cos(2 * math.pi * (number / YEAR + draw.uniform(n, 0, 1)))
    rows = torch.arange(n, device=draw.device)[:, None]
    y = kinds[rows, 0, kind] * turned[..., None] + kinds[rows, 1, kind] * (1 - turned[..., None])
    y = y * (1 + by_day(draw, n, count, 0.005, 0.3))[..., None] + by_day(draw, n, count, 0.005, 0.4)[..., None]
    return y.flatten(1)


def household(draw, n, count, steps):
    """A profile, what one house or machine adds by chance, and a floor."""
    y = metered(draw, n, count, steps)
    t = y.shape[1]
    busy = unit(relaxing(draw, n, t))
    y = y + busy * draw.log_uniform(n, 0.003, 0.4) + white(draw, n, t) * draw.log_uniform(n, 0.002, 0.15)
    log = torch.exp(unit(y) * draw.uniform(n, 0.1, 0.8))
    return torch.where(draw.chance(n, 0.5), log, y)


def sunlight(draw, n, count, steps):
    """Zero at night, an arch by day, clouds by the day and by the hour."""
    phase = draw.steps(count * steps) / steps
    year = torch.cos(2 * math.pi * (phase / YEAR + draw.uniform(n, 0, 1)))
    arch = torch.relu(-torch.cos(2 * math.pi * (phase + draw.uniform(n, -0.1, 0.1))) + 0.45 * year) ** draw.uniform(n, 0.8, 1.6)
    dull = torch.sigmoid(by_day(draw, n, count, 0.3, 2.5) + draw.normal(n))
    cloud = smooth(draw, n, count * steps, draw.log_uniform(n, 0.01 * steps, 0.1 * steps).clamp(min=0.5))
    return arch * spread_out(dull, steps) * torch.exp(-torch.relu(cloud) * draw.log_uniform(n, 0.03, 1.5))


def wind(draw, n, count, steps):
    """A power curve: nothing, the cube of the speed, full."""
    t = count * steps
    pace = smooth(draw, n, t, steps * draw.log_uniform(n, 0.05, 1.5)) + 0.4 * smooth(draw, n, t, steps * draw.log_uniform(n, 2, 8))
    pace = pace + relaxing(draw, n, t) * draw.log_uniform(n, 0.02, 0.4)
    speed = torch.exp(unit(pace) * draw.uniform(n, 0.25, 0.6)) * draw.log_uniform(n, 0.4, 1.1)
    return speed.pow(3).clamp(max=1) * (speed > 0.25)


def timers(draw, n, count, steps):
    """Blocks that are switched on at hours of the day, for as long as the day needs."""
    place = torch.arange(steps, device=draw.device)[None, None]
    y = torch.zeros(n, count, steps, device=draw.device)
    week = (torch.arange(count, device=draw.device)[None] + draw.integers(n, 0, 7)) % 7
    for _ in range(3):
        start = (draw.uniform(n, 0, 1) * steps).floor()[..., None]
        jitter = (draw.normal(n, count) * draw.chance(n, 0.4) * 0.02 * steps).round()[..., None]
        need = draw.log_uniform(n, 0.02, 0.4) * (1 + by_day(draw, n, count, 0.01, 0.5)).clamp(min=0)
        off = (place - start - jitter) % steps
        rests = (week >= 5) & draw.chance(n, 0.4)
        y = y + ((off < (need * steps)[..., None]) & ~rests[..., None]) * draw.normal(n).abs()[..., None]
    y = y.flatten(1)
    other = metered(draw, n, count, steps)
    return y + other * draw.log_uniform(n, 0.02, 0.7) + white(draw, n, y.shape[1]) * draw.log_uniform(n, 0.003, 0.15)


def passages(draw, n, count, steps):
    """Counts of people or vehicles: the profile is a rate."""
    y = unit(metered(draw, n, count, steps)) * draw.uniform(n, 0.3, 1.3) + spread_out(by_day(draw, n, count, 0.02, 0.5), steps)
    rate = torch.exp(y.clamp(-6, 4)) * draw.log_uniform(n, 1, 500)
    rate = rate * torch.exp(relaxing(draw, n, y.shape[1]) * draw.log_uniform(n, 0.02, 0.3))
    return torch.poisson(rate.clamp(0, 1e5), generator=draw.generator)


def meters(draw, n, t):
    """What meters of energy, traffic and use read, some of them among each other. One length of day
    for all rows of a call."""
    steps = DAYS[int(draw.integers(1, 0, len(DAYS)))]
    if 3 * steps > t:
        steps = 24
    count = t // steps + 2
    first = int(draw.integers(1, 0, steps))

    def kind(make):
        return lambda draw, n, _: make(draw, n, count, steps)

    kinds = {kind(household): 6, kind(sunlight): 1.2, kind(wind): 1, kind(timers): 1.5, kind(passages): 3}
    y = by_kind(draw, n, count * steps, kinds)[:, first : first + t]
    slow = smooth(draw, n, t, steps * draw.log_uniform(n, 2, 60)) * draw.log_uniform(n, 0.02, 0.6)
    return torch.where(draw.chance(n, 0.3), unit(y) + slow, y)
