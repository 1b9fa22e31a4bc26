# SPDX-License-Identifier: Apache-2.0
"""The families of series that the Toto 2.0 format is trained on."""

import math

import pytest
import torch

from toto_nano.noise import Draw
from toto_nano2 import batches, business, calendars, graphs, loads, quotes, series


@pytest.mark.parametrize("kind", series.LENGTHS)
def test_series_are_finite_and_follow_from_their_seed(kind):
    one, two, other = (series.chunk(s, kind, 40000) for s in (5, 5, 6))
    assert torch.equal(one, two) and not torch.equal(one, other)
    assert one.isfinite().all() and one.abs().max() < 1e4


@pytest.mark.parametrize("family", list(series.COMMON | series.RECURSIVE | series.BRIEF | {quotes.quotes: 1, quotes.assets: 1}), ids=lambda f: f.__name__)
def test_every_family_varies(family):
    draw = Draw(torch.Generator().manual_seed(2))
    y = family(draw, 16, 200)
    assert y.shape == (16, 200) and y.isfinite().all()
    assert (y.std(-1) > 0).float().mean() > 0.8


def test_the_shortest_rows_drift_more():
    shortest, brief = (series.chunk(5, kind, 300000).squeeze(1)[..., :128] for kind in ("shortest", "brief"))
    t = torch.linspace(-1, 1, 128)
    trend = [(((y - y.mean(-1, keepdim=True)) @ t) / (y.std(-1) * t.norm() * 127**0.5 + 1e-6)).abs().median() for y in (shortest, brief)]
    assert trend[0] > 1.1 * trend[1], trend
    assert batches.SHAPES[0].name == "one" and batches.SHAPES[0].kind == "shortest"


def test_prices_have_no_drift_that_tells():
    """The last value is the best forecast: steps neither persist nor return."""
    y = quotes.quotes(Draw(torch.Generator().manual_seed(4)), 400, 256).log()
    steps = y.diff(dim=-1)
    steps = steps / steps.std(-1, keepdim=True)
    assert (steps[:, 1:] * steps[:, :-1]).mean().abs() < 0.05
    assert steps.mean().abs() < 0.03
    assert steps.pow(4).mean() > 4  # fat tails


def test_assets_rise_a_little():
    y = quotes.assets(Draw(torch.Generator().manual_seed(4)), 600, 256).log()
    steps = y.diff(dim=-1)
    steps = steps / steps.std(-1, keepdim=True)
    assert 0.02 < steps.mean() < 0.05
    assert -0.08 < (steps[:, 1:] * steps[:, :-1]).mean() < 0


def test_momentum_persists():
    y = business.momentum(Draw(torch.Generator().manual_seed(4)), 400, 128)
    steps = y.diff(dim=-1)
    steps = (steps - steps.mean(-1, keepdim=True)) / steps.std(-1, keepdim=True)
    assert (steps[:, 1:] * steps[:, :-1]).mean() > 0.2


def test_drifts_go_on():
    """What half a series gained tells what the other half gains."""
    y = business.drifting(Draw(torch.Generator().manual_seed(4)), 600, 64)
    assert y.isfinite().all()
    first, second = y[:, 31] - y[:, 0], y[:, 63] - y[:, 32]
    assert (first.sign() == second.sign()).float().mean() > 0.75


def test_steady_growth_is_carried_on():
    """A line and a season in logarithms, fitted to the first part, hold for the rest; the noise of a
    row, at most 0.06, is all that is left."""
    t, known = 128, 104
    y = business.steady(Draw(torch.Generator().manual_seed(4)), 300, t)
    assert (y > 0).all()
    step = torch.arange(t, dtype=torch.float64)
    best = torch.full((300,), math.inf, dtype=torch.float64)
    for season in (1, 4, 5, 6, 7, 12, 24):
        x = torch.cat((step[:, None] / t, torch.nn.functional.one_hot(step.long() % season, season).double()), -1)
        fit = torch.linalg.lstsq(x[:known], y.log().double().mT[:known], driver="gelsd").solution
        best = torch.minimum(best, (x @ fit - y.log().mT)[known:].abs().mean(0))
    assert (best < 0.15).double().mean() > 0.7  # four of five keep their rate, some have a season of 52
    gained = (y[:, -12:].mean(-1) / y[:, :12].mean(-1)).log()
    assert 0.75 < (gained > 0).float().mean() < 0.95


def test_seasons_evolve():
    """Changes are like those of a season ago, not of a step before it, and not wholly."""
    draw = Draw(torch.Generator().manual_seed(4))
    seen = set()
    for _ in range(12):
        y = business.evolving(draw, 200, 240).diff(dim=-1)
        y = (y - y.mean(-1, keepdim=True)) / y.std(-1, keepdim=True)
        alike = {m: (y[:, m:] * y[:, :-m]).mean().item() for m in (4, 7, 12, 52)}
        odd = {m: (y[:, m + 1 :] * y[:, : -m - 1]).mean().item() for m in (4, 7, 12, 52)}
        found = max(alike, key=lambda m: alike[m] - odd[m])
        assert 0.25 < alike[found] < 0.95
        seen.add(found)
    assert len(seen) >= 3


def test_exact_cycles_repeat():
    """Some lag explains all but the noise."""
    y = loads.exact(Draw(torch.Generator().manual_seed(4)), 12, 1536)
    least = torch.stack([(y[:, p:] - y[:, :-p]).abs().mean(-1) for p in range(8, 701)]).amin(0)
    assert (least < 0.2).all()


def test_hours_come_back_with_the_week():
    """With some length of day, what a week ago was tells more than what half a day ago was."""
    draw = Draw(torch.Generator().manual_seed(4))
    y = torch.cat([loads.routine(draw, 20, 2688) for _ in range(12)])
    assert y.isfinite().all()
    best = torch.zeros(len(y))
    for steps in (24, 48, 96, 144, 288):
        y = (y - y.mean(-1, keepdim=True)) / y.std(-1, keepdim=True)
        like = {lag: (y[:, lag * steps // 2 :] * y[:, : -(lag * steps // 2)]).mean(-1) for lag in (1, 2, 14)}
        best = torch.maximum(best, like[14] - like[1])
    assert best.median() > 0.3
    draw = Draw(torch.Generator().manual_seed(4))
    y = torch.cat([loads.normals(draw, 30, 1344) for _ in range(4)])
    assert y.isfinite().all()
    least = torch.stack([(y[:, p:] - y[:, :-p]).abs().mean(-1) for p in (24, 48, 96, 144, 288)]).amin(0)
    assert (least / y.std(-1)).median() < 0.2


def test_surprises_come_without_notice():
    draw = Draw(torch.Generator().manual_seed(4))
    calm = torch.randn(300, 128, generator=draw.generator)
    y = business.surprised(draw, calm.clone())
    changed = (y != calm).float()
    assert y.isfinite().all() and 0.3 < changed.mean() < 0.95
    assert changed[:, 0].mean() < 0.2  # most begin later


def test_feasts_come_back_a_year_later():
    draw = Draw(torch.Generator().manual_seed(4))
    place, number = calendars.year_of(draw, 300, 1500, calendars.YEAR)
    assert place.min() == 0 and place.max() == 365 and number.diff(dim=-1).unique().numel() <= 3
    y = calendars.feasts(draw, place, torch.full((300, 1), calendars.YEAR), number)
    y = y - y.mean(-1, keepdim=True)

    def likeness(lag):
        a, b = y[:, lag:], y[:, :-lag]
        return ((a * b).sum(-1) / (a.square().sum(-1) * b.square().sum(-1)).sqrt().clamp(min=1e-6)).mean()

    assert likeness(365) > 0.5 and likeness(180).abs() < 0.1


@pytest.mark.parametrize("kind", ["household", "sunlight", "wind", "timers", "passages"])
def test_meters_know_the_day(kind):
    draw = Draw(torch.Generator().manual_seed(4))
    y = getattr(calendars, kind)(draw, 60, 28, 48)
    assert y.shape == (60, 28 * 48) and y.isfinite().all()
    y = (y - y.mean(-1, keepdim=True)) / (y.std(-1, keepdim=True) + 1e-6)
    day, half = ((y[:, lag:] * y[:, :-lag]).mean() for lag in (48, 24))
    assert (day > half + 0.2) == (kind != "wind")
    if kind == "sunlight":
        assert (y == y.min(-1, keepdim=True).values).float().mean() > 0.3  # night


def test_causes_come_before_effects():
    """One node is noise; whoever follows it is like its past and not like its future."""
    draw = Draw(torch.Generator().manual_seed(4))
    x = torch.randn(400, 600, generator=draw.generator)
    y = graphs.respond(draw, x, torch.full((400, 1), 7), torch.full((400, 1), 2.0))
    past, future = ((y[:, 100:500] * x[:, 100 - lag : 500 - lag]).mean() for lag in (7, -7))
    assert past > 0.2 and future.abs() < 0.02
    groups = graphs.caused(draw, 300, 4, 256, lambda draw, n, t: draw.normal(n, t))
    assert groups.shape == (300, 4, 256)
    joined = torch.stack([torch.corrcoef(g).abs().sum() - 4 for g in groups])
    assert joined.mean() > 1  # noise of four strangers: about 0.6
