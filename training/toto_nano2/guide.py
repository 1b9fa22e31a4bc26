# SPDX-License-Identifier: Apache-2.0
"""Forecasts of short histories like another network's, those of longer ones as near as may be to what they were.

    training/guide RUN GUIDE OUT --steps 300

RUN and GUIDE are checkpoints of one shape, such as two moments of one run: while the learning rate falls, a network
learns the families ever more exactly, and real series of a few patches are unlike them (LOG.md). The weights of RUN
are trained for some steps towards the quantiles of GUIDE, at tokens that know of less than SHORT values, and towards
their own, at those that know of more than LONG. Series are single variates: the layer over variates is neither trained
nor held. No outcome is used, only synthetic series to compare on. The same arguments give the same weights on one
machine.
"""

import argparse
import pathlib

import torch
from torch.nn.functional import smooth_l1_loss

from . import tensors
from .batches import LEAST_TOKENS, SHAPES, Random, draw
from .clock import schedule
from .pool import Pool
from .run import Run
from .widths import lengths

SHORT, LONG = 64, 96  # observed values; between them the target goes from one to the other
LEAST = 3  # values that a token knows of before it counts
SHARES = {"one": 6, "brief": 4, "short": 3, "middle": 3, "long": 4}  # of the steps
NARROW = 0.01  # a band, in arcsinh space, is no narrower than this
RECIPE = {"seed": 11, "weight_decay": 0.0, "clip": 3.0, "ema": 0.98, "muon_lr": 0.02, "adam_lr": 0.02,
          "bfloat16": False}  # fmt: skip


def known(p):
    """(B, V, N): how many values were observed up to the end of each patch."""
    return lengths(p, p.inputs.shape[-1] // 2).view(p.inputs.shape[:3])


class Guided(Run):
    """A run whose loss is the distance to the quantiles of two networks, in bands of the target."""

    def __init__(self, weights, guide, begin=None):
        self.keeper, self.guide = tensors.load_checkpoint(weights), tensors.load_checkpoint(guide)
        super().__init__(RECIPE | {"model": vars(self.keeper.config)}, "cpu")
        self.begin_from(begin or weights)

    def quantiles(self, model, p):
        """(B, V, N, P, 9) in arcsinh space."""
        return model(p.inputs, p.time_mask, p.variate_mask, torch.float32, self.losses.parts)

    def distances(self, p):
        """(B, V, N) each: the distance of tokens, the share of GUIDE in their targets, and which of them count."""
        seen = known(p)
        share = ((LONG - seen) / (LONG - SHORT)).clamp(0, 1)
        with torch.no_grad():
            kept, other = (self.quantiles(m, p) for m in (self.keeper, self.guide))
            target = torch.lerp(kept, other, share[..., None, None])
            band = (target[..., -1:] - target[..., :1]).mean(-2, keepdim=True).clamp(min=NARROW)
        off = self.quantiles(self.model, p) / band
        off = smooth_l1_loss(off, target / band, beta=0.1, reduction="none").mean((-1, -2))
        return off, share, seen >= LEAST

    def loss_of(self, prepared):
        """Mean distance of tokens that count, and what is trained on."""
        distance, _, counts = self.distances(prepared)
        loss = distance * counts
        return loss.detach().sum() / counts.sum().clamp(min=1), loss.mean()


def guided(weights, guide, steps, peak, tokens, begin=None, seed=RECIPE["seed"], say=print):
    """The averaged weights after so many steps, as a model; `begin`: another checkpoint to begin from."""
    run = Guided(weights, guide, begin)
    pool = Pool(seed * 10**9, 4e6, "cpu", 65536)
    while not pool.ready():
        pool.fill_here()
    generator = torch.Generator()
    generator.manual_seed(seed)
    r = Random(generator, torch.device("cpu"))
    shapes = [s for s in SHAPES if s.name in SHARES]
    weight = torch.tensor([float(SHARES[s.name]) for s in shapes])
    patch = run.model.config.patch_size
    found = []
    for step in range(steps):
        pool.fill_here()
        shape = shapes[int(torch.multinomial(weight, 1, generator=generator))]
        r.shift = int(torch.randint(patch, (1,), generator=generator))
        r.rate = int(torch.randint(2, 21, (1,), generator=generator))
        mean, _ = run.train_on(draw(pool, shape, tokens, r, patch), peak * schedule(step / steps, 0.05, 0.95))
        found.append((shape.name, mean.item()))
        if (step + 1) % 25 == 0:
            names = dict.fromkeys(name for name, _ in found)
            means = {k: sum(d for n, d in found if n == k) / sum(n == k for n, _ in found) for k in names}
            say(f"step {step + 1}: distance " + ", ".join(f"{k} {v:.5f}" for k, v in means.items()), flush=True)
            found = []
    return run.slow


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=pathlib.Path, help="checkpoint that is trained")
    parser.add_argument("guide", type=pathlib.Path, help="checkpoint whose forecasts of short histories it takes")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--begin", type=pathlib.Path, help="checkpoint to begin from in place of RUN, to go on")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--peak", type=float, default=0.1, help="share of the learning rate of a run")
    parser.add_argument("--seed", type=int, default=RECIPE["seed"], help="of the series; another one to go on")
    parser.add_argument("--tokens", type=int, default=4 * LEAST_TOKENS, help="of a step")
    args = parser.parse_args()
    model = guided(args.run, args.guide, args.steps, args.peak, args.tokens, args.begin, args.seed)
    tensors.save_checkpoint(args.out, model.config, model.state_dict(), torch.bfloat16)


if __name__ == "__main__":
    main()
