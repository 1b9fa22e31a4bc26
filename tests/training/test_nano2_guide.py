# SPDX-License-Identifier: Apache-2.0
"""Weights that forecast as a mean of several networks does, by the length of the history."""

import os
import subprocess
import sys

import pytest
import torch

from nano2_support import RECIPE, ROOT, batch_of, free_port, weights
from toto_nano2 import batches, guide, tensors
from toto_nano2.model import Config, Parts, Toto2


def checkpoint(folder, seed):
    torch.manual_seed(seed)
    model = Toto2(Config(**RECIPE["model"]))
    tensors.save_checkpoint(folder, model.config, model.state_dict(), torch.float32)
    return folder


@pytest.fixture
def run(tmp_path):
    return guide.Guided(checkpoint(tmp_path / "run", 1), checkpoint(tmp_path / "guide", 2))


def most(found):
    """Tokens that saw one value again and again give the same whatever the weights."""
    return found.float().mean() > 0.9


def test_short_histories_have_the_guide_for_a_target_and_long_ones_the_run(run):
    p = batch_of(batches.SHAPES[1])
    seen = guide.known(p)
    distance, ramp, counts = run.distances(p)
    between = (seen > guide.SHORT) & (seen < guide.LONG)
    assert between.any() and ((ramp[between] > 0) & (ramp[between] < 1)).all()
    assert (ramp[seen <= guide.SHORT] == 1).all() and (ramp[seen >= guide.LONG] == 0).all()
    assert (distance[seen >= guide.LONG] == 0).all()  # the run as it began
    assert torch.equal(counts, seen >= guide.LEAST)
    felt = counts & (seen <= guide.SHORT)
    assert most(distance[felt] > 0)
    run.model.load_state_dict(run.guide.state_dict())
    distance, _, _ = run.distances(p)
    assert (distance[felt] == 0).all() and most(distance[seen >= guide.LONG] > 0)


def quantiles_of(model, inputs, p):
    with torch.no_grad():
        return model(inputs, p.time_mask, p.variate_mask)


def test_shares_mix_both_whatever_the_history(tmp_path):
    shares = {"shares": (0.4, 0.4), "short": 32, "long": 64}
    run = guide.Guided(checkpoint(tmp_path / "run", 1), checkpoint(tmp_path / "guide", 2), **shares)
    p = batch_of(batches.SHAPES[1])
    seen = guide.known(p)
    kept, other = (quantiles_of(m, p.inputs, p) for m in (run.keeper, run.guide))
    mixed, ramp, _ = run.distances(p)
    torch.testing.assert_close(run.target(p, ramp), 0.6 * kept + 0.4 * other)
    assert most(mixed[seen >= guide.LEAST] > 0)  # the run as it began is not the mixture
    run.shares = (1, 0.25)
    target = run.target(p, ramp)
    torch.testing.assert_close(target[seen <= 32], other[seen <= 32])
    long = seen >= 64
    torch.testing.assert_close(target[long], 0.75 * kept[long] + 0.25 * other[long])
    between = (seen > 32) & (seen < 64)
    share = (0.25 + 0.75 * (64 - seen) / 32)[..., None, None]
    assert between.any()
    torch.testing.assert_close(target[between], torch.lerp(kept, other, share)[between])


def test_the_target_is_a_mean_of_several_networks_and_of_forecasts_turned_back(tmp_path):
    torch.manual_seed(3)
    small = Toto2(Config(**RECIPE["model"] | {"d_ff": 24}))  # another shape
    tensors.save_checkpoint(tmp_path / "small", small.config, small.state_dict(), torch.float32)
    near, far = checkpoint(tmp_path / "run", 1), checkpoint(tmp_path / "guide", 2)
    more = {"shares": (0.4, 0.3), "also": [(tmp_path / "small", (0.0, 0.2))], "flip": (0.0, 0.15), "short": 32, "long": 64}
    run = guide.Guided(near, far, **more)
    p = batch_of(batches.SHAPES[1])
    seen = guide.known(p)
    patch = p.target.shape[-1]
    assert (p.inputs[..., :patch] < 0).any() and (p.inputs[..., patch:] > 0).any()
    turned = p.inputs.clone()
    turned[..., :patch] *= -1
    networks = run.keeper, run.guide, small
    plain = [quantiles_of(m, p.inputs, p) for m in networks]
    back = [-quantiles_of(m, turned, p).flip(-1) for m in networks]
    _, ramp, _ = run.distances(p)
    target = run.target(p, ramp)
    short, long = seen <= 32, seen >= 64
    torch.testing.assert_close(target[short], (0.6 * plain[0] + 0.4 * plain[1])[short])
    mean = lambda q: 0.5 * q[0] + 0.3 * q[1] + 0.2 * q[2]  # noqa: E731
    torch.testing.assert_close(target[long], (0.85 * mean(plain) + 0.15 * mean(back))[long])
    assert (mean(plain) - mean(back))[long].abs().max() > 1e-3
    between, at = (seen > 32) & (seen < 64), ((64 - seen) / 32)[..., None, None]
    parts = [torch.lerp(0.5 * q[0] + 0.3 * q[1] + 0.2 * q[2], 0.6 * q[0] + 0.4 * q[1], at) for q in (plain, back)]
    assert between.any()
    torch.testing.assert_close(target[between], torch.lerp(*parts, 0.15 * (1 - at))[between])
    rounded = guide.Guided(near, far, **more, dtype=torch.bfloat16).target(p, ramp)
    assert rounded.dtype == torch.float32 and 0 < (rounded - target).abs().max() < 0.05 * target.abs().max()


def test_steps_bring_short_histories_nearer_and_repeat(tmp_path):
    near, far = checkpoint(tmp_path / "run", 1), tmp_path / "guide"
    other = tensors.load_checkpoint(near)
    with torch.no_grad():  # as another moment of the same run
        for p in other.parameters():
            p.add_(0.05 * p.std().nan_to_num(0) * torch.randn(p.shape, generator=torch.Generator().manual_seed(3)))
    tensors.save_checkpoint(far, other.config, other.state_dict(), torch.float32)
    before = guide.Guided(near, far)

    def steps():
        run = guide.Guided(near, far, recipe=guide.RECIPE | {"tokens_per_step": 1920})
        return guide.guided(run, guide.pool_of(run), 0.05, 25, say=lambda *a, **k: None)

    once, again = steps(), steps()
    assert torch.equal(weights(once), weights(again))
    p = batch_of(batches.SHAPES[0])
    was, ramp, _ = before.distances(p)
    before.model.load_state_dict(once.state_dict())
    now, _, _ = before.distances(p)
    assert now[ramp == 1].mean() < 0.7 * was[ramp == 1].mean()


def test_the_program_takes_guides_shares_and_types(tmp_path, monkeypatch):
    near, far, more = (checkpoint(tmp_path / name, i) for i, name in enumerate(("run", "guide", "more")))
    made = []

    def kept(run, *args):
        made.append((run, args))
        return run.slow

    monkeypatch.setattr(guide, "guided", kept)
    command = ["guide", near, far, tmp_path / "out", "--begin", more, "--shares", "0.4,0.3", "--also", more, "0,0.2", "--also", near, "0.1,0",
               "--flip", "0,0.15", "--short", "40", "--long", "80", "--bfloat16", "--peak", "0.02", "--steps", "7", "--tokens", "1920",
               "--device", "cpu"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", [str(c) for c in command])
    guide.main()
    (run, (_, peak, steps, seconds)), = made
    same = lambda model, folder: torch.equal(weights(model), weights(tensors.load_checkpoint(folder)))  # noqa: E731
    assert same(run.keeper, near) and same(run.guide, far) and same(run.model, more)
    assert [(same(m, f), s) for (m, s), f in zip(run.also, (more, near))] == [(True, (0.0, 0.2)), (True, (0.1, 0.0))]
    assert (run.shares, run.flip, run.short, run.long, run.dtype) == ((0.4, 0.3), (0.0, 0.15), 40, 80, torch.bfloat16)
    assert (peak, steps, seconds) == (0.02, 7, None)
    saved = weights(tensors.load_checkpoint(tmp_path / "out"))
    torch.testing.assert_close(saved, weights(run.model), rtol=2**-8, atol=0)


@pytest.mark.parametrize("wrong", [["--shares", "0.4"], ["--flip", "a,b"], ["--also", "x", "1,2,3"], ["--short", "96"],
                                   ["--shares", "0.4,0.9", "--also", "x", "0,0.2"], ["--steps", "3", "--seconds", "4"]])  # fmt: skip
def test_what_an_option_cannot_be_is_said(wrong, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["guide", "run", "guide", "out", *wrong])
    with pytest.raises(SystemExit) as stopped:
        guide.main()
    assert stopped.value.code == 2 and wrong[0] in capsys.readouterr().err.splitlines()[-1]


def test_several_processes_leave_one_checkpoint_of_the_series_of_all(tmp_path):
    near, far = checkpoint(tmp_path / "run", 1), checkpoint(tmp_path / "guide", 2)
    program = str(ROOT / "training" / "guide")
    launch = ["-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", "2", "--master-addr", "127.0.0.1",
              "--master-port", str(free_port())]  # fmt: skip
    found = []
    for how in ([], [], launch):
        out = tmp_path / f"out{len(found)}"
        command = [sys.executable, *how, program, str(near), str(far), str(out), "--steps", "3", "--tokens", "1920"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"})
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(weights(tensors.load_checkpoint(out)))
    began, (alone, again, both) = weights(tensors.load_checkpoint(near)), found
    assert torch.equal(alone, again)
    moved = (alone - began).norm()
    assert 0.3 * moved < (both - began).norm() < 3 * moved
    assert (both - alone).norm() > 0.1 * moved, "the second process brought no series of its own"


def test_networks_with_other_heads_have_positions_of_their_own():
    parts = Parts(compiled=True)  # which keeps tables
    wide, narrow = (parts.tables(4, 2, 1, width, "cpu")[0] for width in (16, 8))
    assert [t.shape[-1] for t in wide[:2]] == [2 * t.shape[-1] for t in narrow[:2]]
