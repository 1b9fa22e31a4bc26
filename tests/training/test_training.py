# SPDX-License-Identifier: Apache-2.0
"""A tiny run: reproducible, resumable, exportable; and the synthetic series it feeds on."""

import json
import pathlib

import pytest
import torch
from safetensors.torch import load_file

from toto_nano import checkpoint, curves, golden, inference, synthetic, train
from toto_nano.noise import Draw

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = json.loads((ROOT / "training" / "recipes" / "tiny.json").read_text())


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_two_runs_give_the_same_weights(tmp_path):
    first, second = (weights(train.train(RECIPE, tmp_path / n)) for n in "ab")
    assert torch.equal(first, second)
    other = weights(train.train({**RECIPE, "seed": 8}, tmp_path / "c"))
    assert not torch.equal(first, other)


def test_a_resumed_run_ends_like_an_unbroken_one(tmp_path):
    whole = weights(train.train(RECIPE, tmp_path / "whole"))
    train.train(RECIPE, tmp_path / "part", until=2)
    rest = train.train(RECIPE, tmp_path / "rest", resume=tmp_path / "part" / "state.pt")
    assert torch.equal(weights(rest), whole)


def test_workers_make_the_same_batches(tmp_path):
    alone = weights(train.train(RECIPE, tmp_path / "alone"))
    helped = weights(train.train(RECIPE, tmp_path / "helped", workers=2))
    assert torch.equal(alone, helped)


def test_loss_falls(tmp_path):
    train.train({**RECIPE, "steps": 60, "report_every": 20}, tmp_path)
    rows = (tmp_path / "curve.csv").read_text().splitlines()
    column = rows[0].split(",").index("dev_1x8")
    values = [float(r.split(",")[column]) for r in rows[1:]]
    assert values[-1] < values[0]


def test_missing_and_padded_targets_do_not_count():
    data = train.Data(RECIPE, "cpu")
    model = train.Run(RECIPE, "cpu").model
    batch = data.batch(0, RECIPE["shapes"][0])
    batch.valid[..., -8:] = False
    with torch.no_grad():
        before = train.average(*train.losses(train.likelihood, model, batch, 0, False, None))
        batch.x[..., -8:] += 1e3  # the last patch is a target only, and masked
        after = train.average(*train.losses(train.likelihood, model, batch, 0, False, None))
    assert torch.equal(before, after)


def test_the_future_does_not_leak():
    model = train.Run(RECIPE, "cpu").model
    for layer in model.transformer.layers:
        torch.nn.init.normal_(layer.attention.wO.weight)
        torch.nn.init.normal_(layer.mlp[0].w3.weight)
    batch = train.Data(RECIPE, "cpu").batch(0, RECIPE["shapes"][1])
    with torch.no_grad():
        before, _ = train.losses(train.likelihood, model, batch, 0, False, None)
        batch.x[..., -16:] = batch.x[..., -16:] * 3 + 1
        after, _ = train.losses(train.likelihood, model, batch, 0, False, None)
    assert torch.equal(before[:, :, :-2], after[:, :, :-2])
    assert not torch.equal(before[:, :, -2:], after[:, :, -2:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_export_keeps_the_published_names(tmp_path, dtype):
    model = train.Run(RECIPE, "cpu").ema
    checkpoint.save(model, tmp_path, dtype)
    tensors = load_file(tmp_path / "model.safetensors")
    assert tensors["model.transformer.layers.1.mlp.0.w12.weight"].shape == (48, 16)
    assert tensors["model.unembed.weight"].shape == (8 * 16, 16)
    assert {t.dtype for t in tensors.values()} == {dtype}
    again = checkpoint.load(tmp_path)
    assert again.config == model.config
    assert torch.equal(weights(again), weights(model).to(dtype).float())


def test_golden_case_is_consistent(tmp_path):
    checkpoint.save(train.Run(RECIPE, "cpu").ema, tmp_path / "model", torch.float32)
    batch = train.Data(RECIPE, "cpu").batch(0, RECIPE["shapes"][1])
    ids = batch.ids[..., None].expand(batch.x.shape).int()
    context = batch.x[:1], batch.valid[:1], ids[:1]
    golden.write_case(tmp_path / "case", tmp_path / "model", context, 13)
    found = load_file(tmp_path / "case" / "expected.safetensors")
    assert found["mean.cached"].shape == (1, 2, 13)
    assert found["forced.step01.df"].shape == (2, 2, 8, 2)
    for part in golden.PARTS:  # the first step sees the context alone
        torch.testing.assert_close(
            found[f"forced.step00.{part}"][:1], found[f"prefill.dist.{part}"]
        )
    # Iterating the mean by hand, without a cache, is the uncached mean.
    model = checkpoint.load(tmp_path / "model")
    by_hand = inference.forecast_mean(model, *context, 13, cached=False)
    torch.testing.assert_close(found["mean.uncached"], by_hand)


@pytest.mark.parametrize("family", curves.FAMILIES, ids=lambda f: f.__name__)
def test_families_are_finite_and_vary(family):
    y = family(Draw(torch.Generator().manual_seed(3)), 16, 256)
    assert y.shape == (16, 256) and y.isfinite().all()
    assert (y.std(-1) > 0).float().mean() > 0.5


def test_batches_follow_from_the_seed():
    def make(seed):
        return synthetic.batch(Draw(torch.Generator().manual_seed(seed)), 6, 3, 256, 32)

    a, b, c = make(1), make(1), make(2)
    assert torch.equal(a.x, b.x) and torch.equal(a.valid, b.valid) and torch.equal(a.ids, b.ids)
    assert not torch.equal(a.x, c.x)
    assert a.x.isfinite().all()


def test_padding_is_zero_and_shared_by_a_group():
    batch = synthetic.batch(Draw(torch.Generator().manual_seed(5)), 64, 2, 128, 32)
    first = batch.valid.int().argmax(-1)
    assert (first > 0).any()
    for x, start in zip(batch.x.flatten(0, 1), first.flatten()):
        if start < 32:
            assert (x[:start] == 0).all()
