# SPDX-License-Identifier: Apache-2.0
"""The trainer of the Toto 2.0 format: reproducible, resumable, what it hides, what it feeds on."""

import copy
import json
import math
import pathlib
import socket
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from toto_nano.noise import Draw
from toto_nano2 import batches, business, calendars, captured, graphs, inference, loads, optimizer, pool, prepare, quotes, series, tensors, train, trim, widen, widths
from toto_nano2.team import Team
from toto_nano2.model import Config, Parts, Toto2, bias_of, fused, over_time, published, read, written_out

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = json.loads((ROOT / "training" / "recipes" / "tiny2.json").read_text())
CPU = torch.device("cpu")


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    made = Toto2(Config(**RECIPE["model"]))
    for p in made.head.parameters():  # as they begin, forecasts are nearly flat
        p.data *= 30
    return made.eval()


def test_two_runs_give_the_same_weights(tmp_path):
    first, second = (weights(train.train(RECIPE, tmp_path / n, steps=5)) for n in "ab")
    assert torch.equal(first, second)
    other = weights(train.train({**RECIPE, "seed": 8}, tmp_path / "c", steps=5))
    assert not torch.equal(first, other)


def test_a_run_stops_by_the_clock_and_goes_on(tmp_path):
    train.train(RECIPE, tmp_path / "a", seconds=1, total=1e4, workers=1)
    info = json.loads((tmp_path / "a" / "state.json").read_text())
    assert info["elapsed"] >= 1
    again = train.Run(RECIPE, "cpu")
    again.load(tmp_path / "a")
    assert again.step == info["step"] and again.adam.count == info["adam_count"]
    saved = tensors.load_checkpoint(tmp_path / "a")
    assert torch.equal(weights(saved), weights(again.slow))
    state = load_file(tmp_path / "a" / "state0.safetensors")
    assert torch.equal(state["model.head.linear1.bias"], again.model.head.linear1.bias)
    train.train(RECIPE, tmp_path / "b", seconds=1, total=1e4, resume=tmp_path / "a", workers=1)
    assert json.loads((tmp_path / "b" / "state.json").read_text())["elapsed"] >= 2


def test_loss_falls(tmp_path):
    train.train({**RECIPE, "report_seconds": 0}, tmp_path, steps=30)
    rows = (tmp_path / "curve.csv").read_text().splitlines()
    column = rows[0].split(",").index("dev_short")
    values = [float(r.split(",")[column]) for r in rows[1:]]
    assert values[-1] < 0.9 * values[0]


def test_the_rate_warms_up_stays_and_falls_to_zero():
    rates = [train.schedule(p, 0.1, 0.5) for p in (0, 0.05, 0.2, 0.5, 0.75, 1.0)]
    assert rates == pytest.approx([0.01, 0.51, 1, 1, 0.5, 0])


def test_files_of_a_state_stay_small(tmp_path, monkeypatch):
    monkeypatch.setattr(train, "LARGEST_FILE", 200_000)
    run = train.Run(RECIPE, "cpu")
    run.save(tmp_path, {})
    files = list(tmp_path.glob("state*.safetensors"))
    assert len(files) > 3 and max(f.stat().st_size for f in files) < 220_000
    before = weights(run.model)
    run.model.head.linear1.weight.data.zero_()
    run.load(tmp_path)
    assert torch.equal(weights(run.model), before)


def test_safetensors_are_what_the_library_reads(tmp_path):
    parts = {"a": torch.randn(3, 4), "b": torch.tensor(2.5), "c": torch.randn(5).bfloat16()}
    tensors.write(tmp_path / "ours", parts)
    for name, t in load_file(tmp_path / "ours").items():
        assert torch.equal(t, parts[name])
    save_file(parts, tmp_path / "theirs", metadata={"format": "pt"})
    for name, t in tensors.read(tmp_path / "theirs").items():
        assert torch.equal(t, parts[name])


def test_statistics_are_causal_and_know_gaps():
    x = torch.tensor([[[1.0, 3, torch.nan, 5, 2, 2, 2, 2]]])
    loc, scale, n = prepare.statistics(x, ~x.isnan(), 4)
    assert loc.flatten().tolist() == pytest.approx([3, 2.4285715])
    assert scale.flatten().tolist() == pytest.approx([2, 1.272418])
    assert n.flatten().tolist() == [3, 7]


def test_a_hidden_span_is_seen_by_nobody(model):
    """Changing what a span hides changes targets only, of the tokens that precede its patches."""
    torch.manual_seed(1)
    x = torch.randn(2, 1, 8 * 32).cumsum(-1)
    span = torch.zeros(2, 8, dtype=torch.long)
    span[:, 4:6] = 1
    other = x.clone()
    other[..., 4 * 32 : 6 * 32] += 100
    one, two = (prepare.prepare(y, span, 32) for y in (x, other))
    with torch.no_grad():
        a, b = (model(p.inputs, p.time_mask, p.variate_mask) for p in (one, two))
    assert torch.equal(a, b)
    assert not torch.equal(one.target[:, :, 3:5], two.target[:, :, 3:5])
    assert torch.equal(one.target[:, :, :3], two.target[:, :, :3])


def test_a_span_is_forecast_as_the_engine_would(model):
    """The numbers of a hidden span equal those of a forecast from where it begins."""
    torch.manual_seed(2)
    x = torch.randn(1, 2, 10 * 32).cumsum(-1)
    span = torch.zeros(1, 10, dtype=torch.long)
    span[:, 6:9] = 5
    p = prepare.prepare(x, span, 32)
    with torch.no_grad():
        raw = model(p.inputs, p.time_mask, p.variate_mask)[:, :, 5:8]
    past = x[..., : 6 * 32]
    ids = torch.zeros(1, 2, dtype=torch.long)
    _, parts = inference.forecast(model, past, torch.ones_like(past).bool(), ids, 96)
    torch.testing.assert_close(raw.permute(4, 0, 1, 2, 3), parts["raw"], rtol=0, atol=2e-5)


def test_strangers_and_missing_patches_stay_apart(model):
    torch.manual_seed(4)
    x = torch.randn(1, 2, 6 * 32)
    x[:, :, 64:96] = torch.nan
    span = torch.zeros(1, 6, dtype=torch.long)

    def first(x, strangers):
        p = prepare.prepare(x, span, 32, strangers)
        with torch.no_grad():
            return model(p.inputs, p.time_mask, p.variate_mask)[:, 0]

    other = x.clone()
    other[:, 1] *= -2
    other[:, 1, :32] += 1
    apart, together = torch.tensor([[0, 1]]), torch.tensor([[0, 0]])
    assert torch.equal(first(x, apart), first(other, apart))
    assert not torch.equal(first(x, together), first(other, together))
    p = prepare.prepare(x, span, 32, together)
    assert not p.time_mask[0, 0, 4, 2] and p.time_mask[0, 0, 4, 1]


@pytest.mark.parametrize("shape", batches.SHAPES, ids=lambda s: s.name)
def test_batches_are_whole(shape):
    made = pool.Pool(1, 1e6, "cpu", 65536)
    while not made.ready():
        made.fill_here()
    generator = torch.Generator().manual_seed(1)
    r = batches.Random(generator, CPU)
    r.shift = 5
    p = batches.draw(made, shape, 1920, r)
    assert p.inputs.isfinite().all() and p.target[p.counts].isfinite().all()
    assert p.counts.float().mean() > 0.6
    assert p.inputs.shape[:2].numel() * shape.patches == 1920
    hidden = (p.inputs[..., 32:] == 1).all(-1).float().mean()
    assert 0.1 < hidden < 0.6
    assert p.target.abs().max() <= prepare.LARGEST


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


def test_prices_have_no_drift_that_tells():
    """The last value is the best forecast: steps neither persist nor return."""
    y = quotes.quotes(Draw(torch.Generator().manual_seed(4)), 400, 256).log()
    steps = y.diff(dim=-1)
    steps = steps / steps.std(-1, keepdim=True)
    assert (steps[:, 1:] * steps[:, :-1]).mean().abs() < 0.05
    assert steps.mean().abs() < 0.03
    assert steps.pow(4).mean() > 4  # fat tails


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


def test_surprises_come_without_notice():
    draw = Draw(torch.Generator().manual_seed(4))
    calm = torch.randn(300, 128, generator=draw.generator)
    y = business.surprised(draw, calm.clone())
    changed = (y != calm).float()
    assert y.isfinite().all() and 0.3 < changed.mean() < 0.95
    assert changed[:, 0].mean() < 0.2  # most begin later


def test_values_before_a_span_may_be_stuck():
    r = batches.Random(torch.Generator().manual_seed(1), CPU)
    x = torch.randn(4000, 1, 96)
    hidden = torch.tensor([0, 0, 1]).expand(4000, 3)
    flat = batches.stuck(r, x, hidden, 32)
    rows = (flat != x).any(-1)[:, 0]
    assert 0.02 < rows.float().mean() < 0.06
    last = flat[rows][:, 0, 62:64]
    assert torch.equal(last[:, 0], last[:, 1]) and torch.equal(flat[..., 64:], x[..., 64:])


def test_few_values_are_forecast_whatever_is_missing():
    r = batches.Random(torch.Generator().manual_seed(1), CPU)
    whole = torch.randn(2000, 1, 128)
    lost = whole.masked_fill(torch.rand(whole.shape) < 0.3, torch.nan)
    few, hidden = batches.one_patch(r, whole, lost, torch.zeros(2000, 4, dtype=torch.long), 3, 32, 1.0)
    assert few.isfinite().all()
    assert (hidden == torch.tensor([0, 1, 1, 1])).all()
    length = (few[:, 0, :32] != 0).sum(-1)
    assert length.min() == 3 and length.max() == 31 and 15 < length.float().mean() < 19
    raised = (few[:, 0, 32:] >= 0).all(-1)  # or all below, or as it was
    assert 0.6 < raised.float().mean() < 0.85


def test_a_run_begins_from_weights(tmp_path, model):
    tensors.save_checkpoint(tmp_path / "old", model.config, model.state_dict(), torch.float32)
    run = train.Run(RECIPE, "cpu")
    run.begin_from(tmp_path / "old")
    assert torch.equal(weights(run.model), weights(model)) and torch.equal(weights(run.slow), weights(model))
    assert run.step == 0 and not any(m.any() for m in run.muon.momentum.values())
    train.train(RECIPE, tmp_path / "new", steps=1, weights=tmp_path / "old")
    again = tensors.load_checkpoint(tmp_path / "new")
    assert 0 < (weights(again) - weights(model)).abs().max() < 0.05


def test_short_sequences_together_are_blind_to_each_other():
    mask = torch.ones(4, 1, 16, 16, dtype=torch.bool).tril()
    apart = torch.zeros(4, 1, 16, 16).masked_fill(~mask, -torch.inf)
    assert torch.equal(bias_of(mask, torch.float32), apart)
    whole = bias_of(mask, torch.bfloat16)[0, 0].float()
    blocks = torch.block_diag(*[torch.ones(16, 16)] * 4).bool()
    assert whole.shape == (64, 64) and (whole[~blocks] == -torch.inf).all()
    assert torch.equal(whole[:16, :16], apart[0, 0]) and torch.equal(whole[48:, 48:], apart[0, 0])


def test_wider_bands_keep_the_median(model):
    wide = Toto2(model.config)
    wide.load_state_dict(widen.widened(model.state_dict(), 1.5))
    x = torch.randn(40, model.config.d_model)
    with torch.no_grad():
        a, b = (read(x.double(), 1e-4, torch.float64, *(w.double() for w in m.head.weights())) for m in (model, wide))
    a, b = (y.unflatten(-1, (-1, 9)) for y in (a, b))
    torch.testing.assert_close(b[..., 4], a[..., 4], rtol=1e-5, atol=1e-5)
    off = a - a[..., 4:5]
    torch.testing.assert_close(b - b[..., 4:5], 1.5 * off, rtol=0, atol=1e-6 * off.abs().max().item())


def test_outermost_deciles_are_widened_alone(model):
    wide, x = Toto2(model.config), torch.randn(40, model.config.d_model)
    wide.load_state_dict(widen.widened(model.state_dict(), 1.0, 1.25))
    with torch.no_grad():
        a, b = (widths.quantiles(x, m.head, 1e-4) for m in (model, wide))
    off = a - a[..., 4:5]
    want = off * torch.tensor([1.25, *[1.0] * 7, 1.25])
    torch.testing.assert_close(b - b[..., 4:5], want, rtol=0, atol=1e-5 * off.abs().max().item())


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


def test_assets_rise_a_little():
    y = quotes.assets(Draw(torch.Generator().manual_seed(4)), 600, 256).log()
    steps = y.diff(dim=-1)
    steps = steps / steps.std(-1, keepdim=True)
    assert 0.02 < steps.mean() < 0.05
    assert -0.08 < (steps[:, 1:] * steps[:, :-1]).mean() < 0


def test_some_rows_are_blocks_of_longer_series():
    ring = pool.Ring("long", 64 * 5120, CPU)
    ring.put(torch.arange(5120.0).repeat(64, 1).flatten())
    r = batches.Random(torch.Generator().manual_seed(1), CPU)
    x = torch.full((100, 1, 256), torch.nan)
    assert batches.resampled(r, x, ring) is x
    r.rate = 20
    y = batches.resampled(r, x, ring)
    count = int(batches.RESAMPLED * 100)
    assert y[count:].isnan().all()
    assert torch.equal(y[:count].diff(dim=-1), torch.full((count, 1, 255), 20.0))


def test_batches_of_several_steps_come_apart():
    made = pool.Pool(1, 1e6, "cpu", 65536)
    while not made.ready():
        made.fill_here()
    r = batches.Random(torch.Generator().manual_seed(1), CPU)
    whole = batches.draw(made, batches.SHAPES[-1], 3840, r)
    parts = whole.parts(2)
    for name in ("inputs", "target", "counts", "time_mask", "variate_mask"):
        assert torch.equal(torch.cat([getattr(p, name) for p in parts]), getattr(whole, name))
    feed = train.Feed(made, r, {**RECIPE, "together": 2}, 32)
    first = feed.next()
    left = [k for k, v in feed.waiting.items() if v]
    assert len(left) == 1 and feed.waiting[left[0]][0].inputs.shape == first.inputs.shape


def test_quiet_tokens_count_for_more():
    """By the width of their bands, whatever their loss came out as."""
    for size in (0.1, 3.0):
        loss = torch.tensor([[size], [1.0]]).repeat(1, 20).requires_grad_()
        band = torch.tensor([[0.1], [1.0]]).repeat(1, 20)
        train.weighted(loss, torch.ones(2, 20), 0.5, band).backward()
        assert loss.grad[0, 0] / loss.grad[1, 0] == pytest.approx((1.1 / 0.128) ** 0.5, rel=1e-4)


def test_bands_are_remembered_from_what_was_seen():
    band = torch.tensor([[1.0, 3.0, 100.0, 5.0]])
    seen = torch.tensor([[True, True, False, True]])
    once = math.exp(-1 / train.FADES)
    two = (1 * once + 3) / (once + 1)
    last = (1 * once**3 + 3 * once**2 + 5) / (once**3 + once**2 + 1)
    assert train.remembered(band, seen)[0].tolist() == pytest.approx([1, two, two, last])
    assert train.remembered(band, ~seen)[0].tolist() == pytest.approx([1, 3, 5, 5])
    later = torch.tensor([[1.0, 3.0, 7.0, 9.0]])
    assert torch.equal(train.remembered(later, seen)[:, :2], train.remembered(band, seen)[:, :2])


def batch_of(shape, tokens=1920):
    made = pool.Pool(1, 1e6, "cpu", 65536)
    while not made.ready():
        made.fill_here()
    return batches.draw(made, shape, tokens, batches.Random(torch.Generator().manual_seed(1), CPU))


class Still:
    """A graph that leaves the weights as they were."""

    def __init__(self, body, run):
        self.body, self.run = body, run

    def replay(self):
        before = copy.deepcopy(self.run.model.state_dict())
        self.body()
        self.run.model.load_state_dict(before)


def test_a_graph_does_what_a_step_does(tmp_path):
    """With graphs that call the step again: weights as without, and the run begins as it was."""
    prepared = [batch_of(s) for s in batches.SHAPES[-2:]]
    run, plain = train.Run(RECIPE, "cpu"), train.Run(RECIPE, "cpu")
    said = []
    run.captured = captured.Captured.make(run, prepared, said.append)
    assert run.captured and len(said) == 2 and all("a graph of" in text for text in said)
    for a, b in zip(run.everything(), plain.everything()):
        assert torch.equal(a, b)
    for p in prepared * 2:
        assert torch.equal(torch.stack(run.train_on(p, 0.5)), torch.stack(plain.train_on(p, 0.5)))
    assert torch.equal(weights(run.model), weights(plain.model)) and torch.equal(weights(run.slow), weights(plain.slow))
    train.train(RECIPE, tmp_path / "a", steps=3, graphs=True)
    assert (tmp_path / "a" / "model.safetensors").exists()


@pytest.mark.parametrize("wrong", ["still", "refused", "blind"])
def test_a_graph_that_does_otherwise_is_not_used(wrong):
    run = train.Run(RECIPE, "cpu")
    before, said = [t.clone() for t in run.everything()], []
    first, second = batch_of(batches.SHAPES[2]), batch_of(batches.SHAPES[3])

    def record(body, device, memory):
        if wrong == "refused":
            raise RuntimeError("no")
        if wrong == "blind":  # does not see the batch
            return captured.Again(lambda: run.whole_step(second))
        return Still(body, run)

    assert captured.Captured.make(run, [first], said.append, record) is None
    assert "steps are not graphs" in said[-1]
    if wrong == "still":
        assert all(torch.equal(a, b) for a, b in zip(run.everything(), before))


def test_a_graph_that_loses_its_way_is_left():
    run = train.Run(RECIPE, "cpu")
    run.captured = object()
    run.trust(torch.tensor(2.0), torch.tensor(2.001))
    assert run.captured
    run.trust(torch.tensor(2.0), torch.tensor(float("nan")))
    assert run.captured is None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_several_processes_take_the_step_of_their_mean_gradient(tmp_path):
    program = ROOT / "tests" / "training" / "two_processes.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", "2",
               "--master-addr", "127.0.0.1", "--master-port", str(free_port()), str(program), str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (load_file(tmp_path / f"rank{i}.safetensors") for i in range(2))
    own = first.pop("own gradients"), second.pop("own gradients")
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(*own)
    assert torch.allclose(first["sent"], sum(own) / 2, rtol=1e-5, atol=1e-9)
    saved = weights(tensors.load_checkpoint(tmp_path / "run"))
    slow = Toto2(Config(**RECIPE["model"]))
    slow.load_state_dict({k.removeprefix("slow."): v for k, v in first.items() if k.startswith("slow.")})
    assert torch.equal(saved, weights(slow))


def test_steps_without_finite_gradients_are_counted():
    rows = torch.tensor([[1.0, 2.0], [3.0, torch.nan], [3.0, 4.0]])
    assert train.summary(rows) == (2.0, 3.0, 1)


def test_a_step_without_finite_gradients_moves_no_weight():
    run, p = train.Run(RECIPE, "cpu"), batch_of(batches.SHAPES[2])
    run.train_on(p, 0.5)
    before, usual = weights(run.model), run.usual.clone()
    whole = run.gradients

    def broken(prepared):
        whole(prepared)
        run.sent[5] = torch.nan

    run.gradients = broken
    assert not run.train_on(p, 0.5)[1].isfinite()
    assert torch.equal(weights(run.model), before) and torch.equal(run.usual, usual)
    run.gradients = whole
    run.train_on(p, 0.5)
    assert not torch.equal(weights(run.model), before) and weights(run.model).isfinite().all()


def test_states_without_taus_are_read(tmp_path):
    run = train.Run(RECIPE, "cpu")
    run.save(tmp_path, {})
    path = tmp_path / "state0.safetensors"
    tensors.write(path, {k: t for k, t in tensors.read(path).items() if not k.endswith(".taus")})
    again = train.Run({**RECIPE, "seed": 9}, "cpu")
    again.load(tmp_path)
    assert torch.equal(weights(again.model), weights(run.model))


def test_hidden_units_that_others_can_replace_go_without_loss(model, tmp_path):
    """A network whose hidden units stand there twice gives the same with half of them; a layer that
    fills a group does nothing."""
    torch.manual_seed(4)
    config = Config(d_model=32, num_layers=3, num_heads=2, d_ff=48, layer_group_size=2)
    net = Toto2(config).eval()
    for layer in net.layers:
        values, gates = layer.ffn.fc1.weight.data.chunk(2)
        values[24:], gates[24:] = values[:24], gates[:24]
    made, _ = train.pools(RECIPE, "cpu", 0, 0, Team())
    while not made.ready():
        made.fill_here()
    small, lost = trim.trimmed(net, 24, made)
    assert small.config.d_ff == 24 and max(lost) < 1e-6
    p = batch_of(batches.SHAPES[2])
    full, short = (m.stream(p.inputs, p.time_mask, p.variate_mask) for m in (net, small))
    assert (full - short).abs().max() < 1e-3 * full.abs().max()
    fewer, lost = trim.trimmed(net, 12, made)
    assert max(lost) > 1e-4

    whole, filled = trim.whole_groups(small.config, published(small.state_dict()))
    assert whole.num_layers == 4
    tensors.write(tmp_path / "model.safetensors", filled)
    (tmp_path / "config.json").write_text(json.dumps(whole.to_json()))
    again = tensors.load_checkpoint(tmp_path)
    assert torch.equal(again.stream(p.inputs, p.time_mask, p.variate_mask), short)
    assert torch.equal(again.layers[3].taus, torch.zeros(2))


def test_adam_is_what_pytorch_has():
    torch.manual_seed(6)
    ours = [torch.nn.Parameter(torch.randn(s)) for s in ((4, 3), (5,))]
    theirs = [torch.nn.Parameter(p.detach().clone()) for p in ours]
    adam = optimizer.Adam([("in.weight", ours[0]), ("head.bias", ours[1])])
    groups = [{"params": [p], "lr": 0.01 * s} for p, s in zip(theirs, (1, adam.HEAD))]
    other = torch.optim.Adam(groups, betas=adam.betas, eps=1e-10)
    for _ in range(4):
        grads = [torch.randn_like(p) for p in ours]
        for p, g in zip(theirs, grads):
            p.grad = g
        other.step()
        adam.step(torch.cat([g.flatten() for g in grads]), torch.tensor(0.01))
    assert adam.count == 4
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b)


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


def test_a_light_run_leaves_two_models_and_no_state(tmp_path):
    train.train(RECIPE, tmp_path, steps=2, light=True, profile=1)
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"config.json", "curve.csv", "last.safetensors", "model.safetensors", "profile.txt"}
    averaged, last = (tensors.read(tmp_path / f"{n}.safetensors") for n in ("model", "last"))
    assert averaged.keys() == last.keys()


def test_ways_of_attention_agree():
    parts = Parts()
    config = Config(**RECIPE["model"])
    said = train.choose_attention(parts, config, 1920, "cpu")
    assert all("fused" in times and "written out" in times for n, times in said.items() if n <= 64)
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 4 * 16, 2, 8)
    mask = torch.ones(4, 1, 16, 16, dtype=torch.bool).tril()
    bias = bias_of(mask, torch.float32)
    a, b = (over_time(q, k, v, bias, way) for way in (fused, written_out))
    torch.testing.assert_close(a, b)


def test_classes_of_history():
    assert widths.class_of(torch.tensor([3, 31, 32, 63, 64, 900])).tolist() == [0, 0, 1, 1, 2, 2]
    x = torch.full((1, 1, 96), torch.nan)
    x[..., 10:] = torch.randn(86)
    span = torch.tensor([[0, 0, 1]])
    assert widths.lengths(prepare.prepare(x, span, 32), 32).tolist() == [[22, 54, 54]]


def test_widths_read_what_the_last_layer_reads(model):
    """The tokens that are gathered, through the last feed-forward layer and the head, are the model's."""
    made = pool.Pool(5, 3e5, "cpu", 40_000)
    while not made.ready():
        made.fill_here()
    x, kind = widths.gathered(model, made, 3, {"few": 1, "middle": 1}, 960)
    assert set(kind.tolist()) == {0, 1, 2}
    r = batches.Random(torch.Generator().manual_seed(3), torch.device("cpu"))
    r.shift, r.rate = int(torch.randint(32, (1,), generator=r.generator)), 2
    p = batches.draw(made, next(s for s in batches.SHAPES if s.name == "one"), 960, r, 32, few=1.0)
    keep = torch.nn.functional.pad(p.counts.any(-1), (0, 1)).flatten()
    with torch.no_grad():
        want = model(p.inputs, p.time_mask, p.variate_mask).flatten(0, 2)[keep]
        _, base, whole = widths.Last(model, x, 4).both(x)
        got = widths.quantiles(whole, model.head, 1e-4)
    assert not torch.equal(base, whole) and (kind == 0).sum() == len(want)
    torch.testing.assert_close(got[kind == 0], want, rtol=1e-4, atol=1e-4)


def test_widths_follow_the_history(model):
    """Short histories get bands of their own, long ones keep theirs; only the least units change."""
    torch.manual_seed(5)
    model = copy.deepcopy(model)
    for p in model.head.parameters():
        p.data /= 30
    model.head.skip_proj.weight.data[:, 2] += 40 * torch.linspace(-1, 1, 9).repeat(32)  # what widens bands
    model.head.skip_proj.bias.data += 100 * torch.linspace(-1, 1, 9).repeat(32)
    ffn = model.layers[-1].ffn
    ffn.fc2.weight.data[:, 7:12] *= 1e-6
    x = torch.randn(3000, model.config.d_model)
    kind = torch.arange(3000) % 3
    x[:, 1] = torch.tensor([4.0, 0.0, -4.0])[kind]
    before = copy.deepcopy(model)
    fit = Toto2(model.config)
    fit.load_state_dict(widths.fitted(model, x, kind, [1.5, 1.2, 1.0], 300))
    for name, old in before.state_dict().items():
        new = fit.state_dict()[name]
        if name == f"layers.{len(fit.layers) - 1}.ffn.fc2.weight":
            assert (old != new).any(0).nonzero()[:, 0].tolist() == [7, 8, 9, 10, 11]
        elif name == f"layers.{len(fit.layers) - 1}.ffn.fc1.weight":
            changed = (old != new).any(1).nonzero()[:, 0].tolist()
            assert changed == [7, 8, 9, 10, 11] + [len(old) // 2 + i for i in range(7, 12)]
        else:
            assert torch.equal(old, new), name
    with torch.no_grad():
        a, b = (widths.quantiles(widths.Last(m, x, 1).both(x)[2], m.head, 1e-4) for m in (before, fit))
    band = lambda y: (y[..., 8] - y[..., 0]).abs().mean(-1)  # noqa: E731
    ratio = band(b) / band(a)
    assert ratio[kind == 0].mean() == pytest.approx(1.5, abs=0.05)
    assert ratio[kind == 2].mean() == pytest.approx(1.0, abs=0.003)
    off = (b - a).abs().mean((1, 2)) / band(a)
    assert off[kind == 2].mean() < 0.003
    assert ((b - a)[..., 4].abs().mean(-1) / band(a)).mean() < 0.02
