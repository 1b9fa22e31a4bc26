# SPDX-License-Identifier: Apache-2.0
"""Chunks of series for the pool: the mixture of families, the accidents, related variates."""

import torch

from toto_nano import curves, synthetic
from toto_nano.noise import Draw, by_kind, unit

from . import business, calendars, cycles, events, graphs, growth, loads, quotes

POINTS = 655360  # of one chunk
LENGTHS = {"shortest": 288, "brief": 288, "long": 5120, "middle": 1536, "short": 512, "group": 1024}
VARIATES = 4

COMMON = {
    curves.curve: 34, cycles.clean: 11, cycles.noisy: 7, cycles.spikes: 4, cycles.local_waves: 3,
    growth.growing: 6, growth.lines: 4, growth.stepping: 5, growth.outliers: 2.5, growth.changing: 2,
    growth.integrated: 5, events.rare_demand: 4, events.dense_counts: 3, events.counters: 1.5,
    events.bounded: 3, events.telemetry: 3.5, events.jumps: 2.5, events.plain_walk: 2.5,
    events.flat_noise: 1, business.momentum: 4, business.drifting: 3, business.compounding: 4.5, business.arma: 2,
    business.steady: 5, business.evolving: 6,
    loads.loads: 5, loads.exact: 26, loads.carried: 5, loads.routine: 8, loads.normals: 2.5, quotes.multifractal: 1,
    calendars.days: 9, calendars.meters: 9,
}  # fmt: skip
RECURSIVE = {growth.smoothing: 14}  # slow for long series: a step at a time

BRIEF = {  # up to a few hundred steps: what companies and offices count
    growth.smoothing: 26, business.momentum: 16, business.arma: 7, business.compounding: 16,
    growth.growing: 7, growth.lines: 5, growth.integrated: 5, growth.stepping: 3, growth.outliers: 2,
    curves.curve: 14, cycles.noisy: 4, cycles.clean: 3, events.rare_demand: 3, events.dense_counts: 3,
    events.bounded: 2, events.jumps: 1.5, events.plain_walk: 4, events.flat_noise: 1.5,
    calendars.days: 6, business.drifting: 16, business.steady: 14, business.evolving: 12,
}  # fmt: skip
SHORTEST = BRIEF | {  # those of which up to four patches are seen: they drift and grow more, LOG.md says why
    business.drifting: 42, business.compounding: 24, business.steady: 24, business.evolving: 14,
    growth.growing: 12, growth.smoothing: 18, curves.curve: 4, calendars.days: 3, events.plain_walk: 2.5,
    business.arma: 2, cycles.noisy: 1.5, cycles.clean: 1, events.dense_counts: 1, events.jumps: 0.5,
}  # fmt: skip
SURPRISES = 0.4  # of the brief ones change in some way that nothing foretold
PRICES = 0.02  # as an exchange reports them: nothing clipped, rounded or lost
ASSETS = 0.08  # those that rise by a little


def accidents(draw, y, share=0.6):
    for change, p in synthetic.ACCIDENTS:
        y = synthetic.at_random(draw, y, p * share, change)
    return y


def brief(draw, n, t, kinds):
    y = by_kind(draw, n, t, kinds).nan_to_num(0, 0, 0)
    y = synthetic.at_random(draw, y, SURPRISES, business.surprised)
    return accidents(draw, y, 0.25)


def mixture(draw: Draw, n: int, t: int, shortest=False):
    if t <= 300:
        return finished(draw, brief(draw, n, t, SHORTEST if shortest else BRIEF))
    # A step at a time is slow for long series, and on a GPU for any but very many.
    slow = t > 1024 or (draw.device.type != "cpu" and t > 600)
    kinds = COMMON if slow else COMMON | RECURSIVE
    if t <= 600:  # short series are business figures more often than signals
        kinds = kinds | {growth.growing: 10, growth.lines: 7, curves.curve: 26}
    y = by_kind(draw, n, t, kinds)
    y = y.nan_to_num(0, 0, 0)
    rows = draw.chance(n, 0.75)[:, 0].nonzero()[:, 0]
    y[rows] = accidents(draw, y[rows])
    y = synthetic.at_random(draw, y, 0.08, business.surprised)
    return finished(draw, y)


def finished(draw, y):
    """Some in whole numbers, some prices that nothing has touched."""
    n, t = y.shape
    rows = draw.chance(n, 0.1)[:, 0].nonzero()[:, 0]  # whole numbers
    if len(rows):
        y[rows] = (unit(y[rows]) * draw.log_uniform(len(rows), 1, 50)).round()
    y = synthetic.at_random(draw, y, PRICES, lambda draw, rows: quotes.quotes(draw, *rows.shape))
    y = synthetic.at_random(draw, y, ASSETS, lambda draw, rows: quotes.assets(draw, *rows.shape))
    return y.nan_to_num(0, 0, 0)


def in_small_range(draw, y):
    """Unit deviation, some level: enough for a scaler that knows no units."""
    y = unit(y)
    lowest = y.min(-1, keepdim=True).values
    shift = torch.where(draw.chance(len(y), 0.5), -lowest, draw.normal(len(y)) * draw.log_uniform(len(y), 0.1, 30))
    return y + shift


def chunk(seed: int, kind: str, points: int = POINTS, device="cpu"):
    """(rows, T), or (rows, V, T) for groups; a function of its arguments alone."""
    generator = torch.Generator(device)
    generator.manual_seed(seed)
    draw = Draw(generator)
    t = LENGTHS[kind]
    if kind == "group":
        b = max(1, points // (VARIATES * t))
        half = b // 2
        parts = [synthetic.related(draw, b - half, VARIATES, t, mixture, (0.3, 0.25))]
        if half:
            parts.append(graphs.caused(draw, half, VARIATES, t, mixture))
        y = torch.cat(parts).view(b * VARIATES, t)
        return in_small_range(draw, y).view(b, VARIATES, t)
    return in_small_range(draw, mixture(draw, max(1, points // t), t, kind == "shortest"))
