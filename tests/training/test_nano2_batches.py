# SPDX-License-Identifier: Apache-2.0
"""What a batch of the Toto 2.0 format holds, and what it hides from the model."""

import pytest
import torch

from nano2_support import CPU, RECIPE
from toto_nano2 import batches, feed, inference, pool, prepare


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
    fed = feed.Feed(made, r, {**RECIPE, "together": 2}, 32)
    first = fed.next()
    left = [k for k, v in fed.waiting.items() if v]
    assert len(left) == 1 and fed.waiting[left[0]][0].inputs.shape == first.inputs.shape
