# SPDX-License-Identifier: Apache-2.0
"""Weights that are changed after training: wider bands, fewer hidden units."""

import copy
import json

import pytest
import torch

from nano2_support import RECIPE, batch_of
from toto_nano2 import batches, feed, pool, prepare, tensors, trim, widen, widths
from toto_nano2.model import Config, Toto2, published, read
from toto_nano2.team import Team


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


@pytest.mark.parametrize("text, lower, upper", [("1.25", 1.25, 1.25), ("1,1.25", 1.0, 1.25)])
def test_outermost_deciles_are_widened_alone(model, text, lower, upper):
    wide, x = Toto2(model.config), torch.randn(40, model.config.d_model)
    wide.load_state_dict(widen.widened(model.state_dict(), 1.0, widen.outermost(text)))
    with torch.no_grad():
        a, b = (widths.quantiles(x, m.head, 1e-4) for m in (model, wide))
    off = a - a[..., 4:5]
    want = off * torch.tensor([lower, *[1.0] * 7, upper])
    torch.testing.assert_close(b - b[..., 4:5], want, rtol=0, atol=1e-5 * off.abs().max().item())


def test_three_factors_of_outermost_deciles_are_refused():
    with pytest.raises(ValueError):
        widen.outermost("1,1.1,1.2")


def test_hidden_units_that_others_can_replace_go_without_loss(model, tmp_path):
    """A network whose hidden units stand there twice gives the same with half of them; a layer that
    fills a group does nothing."""
    torch.manual_seed(4)
    config = Config(d_model=32, num_layers=3, num_heads=2, d_ff=48, layer_group_size=2)
    net = Toto2(config).eval()
    for layer in net.layers:
        values, gates = layer.ffn.fc1.weight.data.chunk(2)
        values[24:], gates[24:] = values[:24], gates[:24]
    made, _ = feed.pools(RECIPE, "cpu", 0, 0, Team())
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
