# SPDX-License-Identifier: Apache-2.0
"""A run of the Toto 2.0 format: reproducible, resumable, its losses, steps and files."""

import json
import math
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from nano2_support import RECIPE, ROOT, batch_of, free_port, weights
from toto_nano2 import batches, clock, losses, optimizer, tensors, train
from toto_nano2.model import Config, Toto2
from toto_nano2.run import Run


def test_two_runs_give_the_same_weights(tmp_path):
    first, second = (weights(train.train(RECIPE, tmp_path / n, steps=5)) for n in "ab")
    assert torch.equal(first, second)
    other = weights(train.train({**RECIPE, "seed": 8}, tmp_path / "c", steps=5))
    assert not torch.equal(first, other)


def test_a_run_stops_by_the_clock_and_goes_on(tmp_path):
    train.train(RECIPE, tmp_path / "a", seconds=1, total=1e4, workers=1)
    info = json.loads((tmp_path / "a" / "state.json").read_text())
    assert info["elapsed"] >= 1
    again = Run(RECIPE, "cpu")
    again.load(tmp_path / "a")
    assert again.step == info["step"] and again.adam.count == info["adam_count"]
    saved = tensors.load_checkpoint(tmp_path / "a")
    assert torch.equal(weights(saved), weights(again.slow))
    ships = ROOT / "models/toto-nano-2/generation_config.json"
    assert json.loads((tmp_path / "a" / ships.name).read_text()) == json.loads(ships.read_text())
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
    rates = [clock.schedule(p, 0.1, 0.5) for p in (0, 0.05, 0.2, 0.5, 0.75, 1.0)]
    assert rates == pytest.approx([0.01, 0.51, 1, 1, 0.5, 0])


def test_files_of_a_state_stay_small(tmp_path, monkeypatch):
    monkeypatch.setattr("toto_nano2.run.LARGEST_FILE", 200_000)
    run = Run(RECIPE, "cpu")
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


def test_a_run_begins_from_weights(tmp_path, model):
    tensors.save_checkpoint(tmp_path / "old", model.config, model.state_dict(), torch.float32)
    run = Run(RECIPE, "cpu")
    run.begin_from(tmp_path / "old")
    assert torch.equal(weights(run.model), weights(model)) and torch.equal(weights(run.slow), weights(model))
    assert run.step == 0 and not any(m.any() for m in run.muon.momentum.values())
    train.train(RECIPE, tmp_path / "new", steps=1, weights=tmp_path / "old")
    again = tensors.load_checkpoint(tmp_path / "new")
    assert 0 < (weights(again) - weights(model)).abs().max() < 0.05


def test_quiet_tokens_count_for_more():
    """By the width of their bands, whatever their loss came out as."""
    for size in (0.1, 3.0):
        loss = torch.tensor([[size], [1.0]]).repeat(1, 20).requires_grad_()
        band = torch.tensor([[0.1], [1.0]]).repeat(1, 20)
        losses.weighted(loss, torch.ones(2, 20), 0.5, band).backward()
        assert loss.grad[0, 0] / loss.grad[1, 0] == pytest.approx((1.1 / 0.128) ** 0.5, rel=1e-4)


def test_bands_are_remembered_from_what_was_seen():
    band = torch.tensor([[1.0, 3.0, 100.0, 5.0]])
    seen = torch.tensor([[True, True, False, True]])
    once = math.exp(-1 / losses.FADES)
    two = (1 * once + 3) / (once + 1)
    last = (1 * once**3 + 3 * once**2 + 5) / (once**3 + once**2 + 1)
    assert losses.remembered(band, seen)[0].tolist() == pytest.approx([1, two, two, last])
    assert losses.remembered(band, ~seen)[0].tolist() == pytest.approx([1, 3, 5, 5])
    later = torch.tensor([[1.0, 3.0, 7.0, 9.0]])
    assert torch.equal(losses.remembered(later, seen)[:, :2], losses.remembered(band, seen)[:, :2])


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
    run, p = Run(RECIPE, "cpu"), batch_of(batches.SHAPES[2])
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
    run = Run(RECIPE, "cpu")
    run.save(tmp_path, {})
    path = tmp_path / "state0.safetensors"
    tensors.write(path, {k: t for k, t in tensors.read(path).items() if not k.endswith(".taus")})
    again = Run({**RECIPE, "seed": 9}, "cpu")
    again.load(tmp_path)
    assert torch.equal(weights(again.model), weights(run.model))


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


def test_a_light_run_leaves_two_models_and_no_state(tmp_path):
    train.train(RECIPE, tmp_path, steps=2, light=True, profile=1)
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"config.json", "curve.csv", "generation_config.json", "last.safetensors",
                     "model.safetensors", "profile.txt"}  # fmt: skip
    averaged, last = (tensors.read(tmp_path / f"{n}.safetensors") for n in ("model", "last"))
    assert averaged.keys() == last.keys()
