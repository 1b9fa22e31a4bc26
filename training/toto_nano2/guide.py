# SPDX-License-Identifier: Apache-2.0
"""Forecasts of short histories like another network's, those of longer ones as near as may be to what they were.

    training/guide RUN GUIDE OUT --steps 300
    training/guide RUN GUIDE OUT --seconds 240 --tokens 30720 --workers 14
    training/guide RUN GUIDE OUT --shares 0.4,0.4    # a mean of both, whatever the history
    torchrun --nproc-per-node 4 training/guide RUN GUIDE OUT --seconds 240 --tokens 30720 --workers 12

RUN and GUIDE are checkpoints of one shape, such as two moments of one run: while the learning rate falls, a network
learns the families ever more exactly, and real series of a few patches are unlike them (LOG.md). The weights of RUN
are trained for some steps towards the quantiles of GUIDE, at tokens that know of at most `short` values, and towards
their own, at those that know of at least `long`. `shares` says how much of GUIDE is in the target at either end.
Series are single variates: the layer over variates is neither trained nor held. No outcome is used, only synthetic
series to compare on. On a CPU, with --steps and without --workers, the same arguments give the same weights.
"""

import argparse
import dataclasses
import pathlib
import time

import torch
from torch.nn.functional import smooth_l1_loss

from . import tensors
from .batches import LEAST_TOKENS, SHAPES, Random
from .clock import Clock, schedule
from .feed import APART, Feed, training_pool
from .run import Run
from .team import TOGETHER, Team
from .widths import lengths

SHORT, LONG = 64, 96  # observed values; between them the target goes from one to the other
LEAST = 3  # values that a token knows of before it counts
SHARES = {"one": 6.0, "brief": 4.0, "short": 3.0, "middle": 3.0, "long": 4.0}  # of the steps
NARROW = 0.01  # a band, in arcsinh space, is no narrower than this
RECIPE = {"seed": 11, "weight_decay": 0.0, "clip": 3.0, "ema": 0.98, "muon_lr": 0.02, "adam_lr": 0.02,
          "bfloat16": False, "pool_points": 4e6}  # fmt: skip
ON_GPU = {"pool_points": 2e9}


def known(p):
    """(B, V, N): how many values were observed up to the end of each patch."""
    return lengths(p, p.inputs.shape[-1] // 2).view(p.inputs.shape[:3])


class Guided(Run):
    """A run whose loss is the distance to the quantiles of two networks, in bands of the target."""

    def __init__(self, weights, guide, begin=None, recipe=RECIPE, device="cpu", short=SHORT, long=LONG, shares=(1, 0)):
        team = Team(device)  # before anything goes to a device: it says which
        self.keeper, self.guide = (tensors.load_checkpoint(w).to(device) for w in (weights, guide))
        self.short, self.long, self.shares = short, long, shares
        super().__init__(recipe | {"model": vars(self.keeper.config)}, device, team=team)
        self.begin_from(begin or weights)

    def quantiles(self, model, p):
        """(B, V, N, P, 9) in arcsinh space."""
        return model(p.inputs, p.time_mask, p.variate_mask, torch.float32, self.losses.parts)

    def distances(self, p):
        """(B, V, N) each: the distance of tokens, the share of GUIDE in their targets, and which of them count."""
        seen = known(p)
        short, long = self.shares
        share = long + (short - long) * ((self.long - seen) / (self.long - self.short)).clamp(0, 1)
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


def pool_of(run, workers=0):
    """Series on the device, made by other processes or, where there are none, one chunk a step in this one."""
    pool = training_pool(run.recipe, run.device, 0, workers, run.team)
    if workers:
        pool.wait()
    while not pool.ready():
        pool.fill_here()
    return pool


def guided(run, pool, peak, steps=None, seconds=None, say=print):
    """The averaged weights after so many steps or seconds of a `Guided` run, as a model."""
    seed, device = run.recipe["seed"], torch.device(run.device)
    r = Random(torch.Generator(device).manual_seed(seed + run.team.rank * APART), device)
    shapes = [dataclasses.replace(s, weight=SHARES[s.name]) for s in SHAPES if s.name in SHARES]
    feed = Feed(pool, r, run.recipe, run.model.config.patch_size, shapes)
    feed.order.manual_seed(seed)  # the same shapes in every process
    clock = Clock(run, steps, seconds, seconds, time.monotonic())
    found = {}
    while not clock.over():
        if not pool.processes:
            pool.fill_here()
        prepared = feed.next()
        mean, _ = run.train_on(prepared, peak * schedule(clock.progress(), 0.05, 0.95))
        if run.team.first:
            found.setdefault(prepared.inputs.shape[2], []).append(mean)
        if run.step % TOGETHER == 0:
            run.team.spread(run.everything())
        if run.step % 25 == 0 and run.team.first:
            means = {n: torch.stack(d).mean().item() for n, d in sorted(found.items())}
            say(f"step {run.step}: distance " + ", ".join(f"{n} patches {v:.5f}" for n, v in means.items()), flush=True)
            found = {}
        clock.tick()
    pool.stop()
    run.team.leave()
    return run.slow


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=pathlib.Path, help="checkpoint that is trained")
    parser.add_argument("guide", type=pathlib.Path, help="checkpoint whose forecasts of short histories it takes")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--begin", type=pathlib.Path, help="checkpoint to begin from in place of RUN, to go on")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, help="so many; 300 without --seconds")
    parser.add_argument("--seconds", type=float, help="steps for so long; what comes before the first does not count")
    parser.add_argument("--peak", type=float, default=0.1, help="share of the learning rate of a run")
    parser.add_argument("--seed", type=int, default=RECIPE["seed"], help="of the series; another one to go on")
    parser.add_argument("--tokens", type=int, default=4 * LEAST_TOKENS, help="of a step, in each process")
    parser.add_argument("--short", type=float, default=SHORT, help="values up to which a history has the first of the shares")
    parser.add_argument("--long", type=float, default=LONG, help="values from which on it has the second")
    parser.add_argument("--shares", default="1,0", help="of the guide, for short and for long histories")
    parser.add_argument("--workers", type=int, default=0, help="processes that make series")
    args = parser.parse_args()
    if args.steps and args.seconds:
        parser.error("give --steps or --seconds")
    if not args.short < args.long:
        parser.error("--short: less than --long")
    shares = [float(s) for s in args.shares.split(",")]
    if len(shares) != 2:
        parser.error("--shares: two of them")
    torch.set_float32_matmul_precision("high")
    steps = None if args.seconds else args.steps or 300
    recipe = RECIPE | (ON_GPU if args.device == "cuda" else {}) | {"seed": args.seed, "tokens_per_step": args.tokens}
    run = Guided(args.run, args.guide, args.begin, recipe, args.device, args.short, args.long, shares)
    model = guided(run, pool_of(run, args.workers), args.peak, steps, args.seconds)
    if run.team.first:
        tensors.save_checkpoint(args.out, model.config, model.state_dict(), torch.bfloat16)


if __name__ == "__main__":
    main()
