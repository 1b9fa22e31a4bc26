# SPDX-License-Identifier: Apache-2.0
"""Keys without what all of them share.

    training/centre runs/h runs/centred

A vector that is added to every key of a head adds one number to all logits of a query, which a softmax does not see.
So nothing in a loss holds that vector where it was. In one run it grew until logits of the last layer over time were
12,000 with 150 between them, and float32 holds numbers of that size to a thousandth. This takes the mean key, on
synthetic series, off the bias of the keys. It can do so where positions do not turn them: in the second half of each
head. Forecasts are the same but for rounding. The layer over variates is left as it is.

A run does the same as it goes (`hold`), where its recipe says after how many steps.
"""

import argparse
import pathlib

import torch

from . import batches, pool, tensors
from .model import Parts

SEED, POINTS, TOKENS = 13, 2e6, 3840
SHAPES = [s for s in batches.SHAPES if s.variates == 1]


class Watched(Parts):
    """The parts of a pass, which keep the keys of each layer."""

    def __init__(self):
        super().__init__()
        enter, turn = self.enter, self.turn
        self.keys = []

        def kept(found):
            self.keys.append(found[-2])
            return found

        self.enter, self.turn = (lambda *a: kept(enter(*a))), (lambda *a: kept(turn(*a)))


@torch.no_grad()
def sums_of_keys(model, p, dtype=torch.float32):
    """(heads, width) of every layer over time, by its number: the sum of the keys of a batch, in float64."""
    parts = Watched()
    model.stream(p.inputs, p.time_mask, p.variate_mask, dtype, parts)
    return {i: k.double().sum(0) for i, k in enumerate(parts.keys) if not model.layers[i].variate}


def mean_keys(model):
    """(heads, width) of every layer over time, by its number: the mean key over tokens of all shapes of single series."""
    made = pool.Pool(SEED * 10**9, POINTS, "cpu", 65536)
    while not made.ready():
        made.fill_here()
    r = batches.Random(torch.Generator().manual_seed(SEED), torch.device("cpu"))
    sums, count = {}, 0
    for shape in SHAPES:
        p = batches.draw(made, shape, TOKENS, r, model.config.patch_size)
        for i, s in sums_of_keys(model, p).items():
            sums[i] = sums.get(i, 0) + s
        count += p.inputs.shape[:3].numel()
    return {i: s / count for i, s in sums.items()}


@torch.no_grad()
def take_off(model, keys):
    """These keys off the biases of a model, in the half of each head that positions do not turn."""
    c = model.config
    half = slice(c.head_dim // 2, None)
    for i, mean in keys.items():
        bias = model.layers[i].attn.in_proj.bias.unflatten(0, (3, c.num_heads, c.head_dim))
        bias[1, :, half] -= (mean[:, half] * c.d_model**0.5).to(bias.dtype)
    return model


def hold(run, p):
    """Takes the mean key of a batch off the weights of a run and off their averages: one vector for both, and for
    all processes."""
    sums = sums_of_keys(run.model, p, torch.bfloat16 if run.amp else torch.float32)
    means = torch.stack(list(sums.values())) / p.inputs.shape[:3].numel()
    run.team.mean_(means)
    for model in (run.model, run.slow):
        take_off(model, dict(zip(sums, means)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    model = tensors.load_checkpoint(args.model)
    keys = mean_keys(model)
    for i, mean in keys.items():
        sizes = mean[:, model.config.head_dim // 2 :].norm(dim=-1)
        print(f"layer {i}: mean key of each head " + ", ".join(f"{x:.1f}" for x in sizes.tolist()), flush=True)
    tensors.save_checkpoint(args.out, model.config, take_off(model, keys).state_dict(), torch.bfloat16)


if __name__ == "__main__":
    main()
