# SPDX-License-Identifier: Apache-2.0
"""Steps as graphs, and ways of attention: each does what the plain one does."""

import copy

import pytest
import torch

from nano2_support import RECIPE, batch_of, weights
from toto_nano2 import batches, captured, startup, train
from toto_nano2.model import Config, Parts, bias_of, fused, over_time, written_out
from toto_nano2.run import Run


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
    run, plain = Run(RECIPE, "cpu"), Run(RECIPE, "cpu")
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
    run = Run(RECIPE, "cpu")
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
    run = Run(RECIPE, "cpu")
    run.captured = object()
    run.trust(torch.tensor(2.0), torch.tensor(2.001))
    assert run.captured
    run.trust(torch.tensor(2.0), torch.tensor(float("nan")))
    assert run.captured is None


def test_short_sequences_together_are_blind_to_each_other():
    mask = torch.ones(4, 1, 16, 16, dtype=torch.bool).tril()
    apart = torch.zeros(4, 1, 16, 16).masked_fill(~mask, -torch.inf)
    assert torch.equal(bias_of(mask, torch.float32), apart)
    whole = bias_of(mask, torch.bfloat16)[0, 0].float()
    blocks = torch.block_diag(*[torch.ones(16, 16)] * 4).bool()
    assert whole.shape == (64, 64) and (whole[~blocks] == -torch.inf).all()
    assert torch.equal(whole[:16, :16], apart[0, 0]) and torch.equal(whole[48:, 48:], apart[0, 0])


def test_ways_of_attention_agree():
    parts = Parts()
    config = Config(**RECIPE["model"])
    said = startup.choose_attention(parts, config, 1920, "cpu")
    assert all("fused" in times and "written out" in times for n, times in said.items() if n <= 64)
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 4 * 16, 2, 8)
    mask = torch.ones(4, 1, 16, 16, dtype=torch.bool).tril()
    bias = bias_of(mask, torch.float32)
    a, b = (over_time(q, k, v, bias, way) for way in (fused, written_out))
    torch.testing.assert_close(a, b)
