# SPDX-License-Identifier: Apache-2.0
"""A network that forecasts as the mean of several does, with shares that follow the length of the history.

    training/guide RUN GUIDE OUT --steps 300
    training/guide RUN GUIDE OUT --seconds 240 --tokens 30720 --workers 14
    training/guide RUN GUIDE OUT --shares 0.4,0.4    # a mean of both, whatever the history
    training/guide RUN GUIDE OUT --shares 0.4,0.3 --also OTHER 0,0.2 --flip 0,0.15 --seconds 700 --compile
    torchrun --nproc-per-node 4 training/guide RUN GUIDE OUT --seconds 240 --tokens 30720 --workers 12

RUN and GUIDE are checkpoints, such as two moments of one run: while the learning rate falls, a network learns the
families ever more exactly, and real series of a few patches are unlike them (LOG.md). The weights of RUN are trained
for some steps towards a mean of its own quantiles and those of GUIDE. `--shares` says how much of it is of GUIDE: at
tokens that know of at most `short` values, and at those that know of at least `long`. By default that is all of it, and
nothing. `--also` says it of a further checkpoint, `--flip` of forecasts of -y, turned back.
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
    """A run whose loss is the distance to a mean of the quantiles of several networks, in bands of the target.

    `shares`: how much of the guide is in the target, at `short` and at `long` values; `also`: (checkpoint, shares) of
    more of them, with patches of the same size; the rest is of `weights`. `flip`: likewise, how much of it all is of
    forecasts of -y, turned back. `dtype`: what the networks of the target compute in.
    """

    def __init__(self, weights, guide, begin=None, recipe=RECIPE, device="cpu", short=SHORT, long=LONG, shares=(1, 0),
                 also=(), flip=(0, 0), compiled=False, dtype=torch.float32):  # fmt: skip
        team = Team(device)  # before anything goes to a device: it says which
        self.keeper, self.guide, *others = (
            tensors.load_checkpoint(w).to(device).requires_grad_(False) for w in (weights, guide, *(w for w, _ in also))
        )
        self.also = list(zip(others, (s for _, s in also)))
        self.short, self.long, self.shares, self.flip, self.dtype = short, long, shares, flip, dtype
        super().__init__(recipe | {"model": vars(self.keeper.config)}, device, compiled, team)
        self.begin_from(begin or weights)

    def quantiles(self, model, p, dtype=torch.float32):
        """(B, V, N, P, 9) in arcsinh space."""
        return model(p.inputs, p.time_mask, p.variate_mask, dtype, self.losses.parts).float()

    def turned(self, model, p, dtype):
        """The quantiles of -y, as quantiles of y."""
        y, flags = p.inputs.chunk(2, -1)
        return -self.quantiles(model, dataclasses.replace(p, inputs=torch.cat((-y, flags), -1)), dtype).flip(-1)

    def target(self, p, ramp):
        """What the quantiles should be, (B, V, N, P, 9); ramp (B, V, N) is 1 for short histories, 0 for long ones."""
        def at(shares):
            return (shares[1] + (shares[0] - shares[1]) * ramp)[..., None, None]

        parts = [(self.guide, at(self.shares)), *((m, at(s)) for m, s in self.also)]
        parts.append((self.keeper, 1 - sum(share for _, share in parts)))
        target = sum(share * self.quantiles(m, p, self.dtype) for m, share in parts)
        if any(self.flip):
            target = torch.lerp(target, sum(share * self.turned(m, p, self.dtype) for m, share in parts), at(self.flip))
        return target

    def distances(self, p):
        """(B, V, N) each: the distance of tokens; 1 up to `short` values, 0 from `long` on; which tokens count."""
        seen = known(p)
        ramp = ((self.long - seen) / (self.long - self.short)).clamp(0, 1)
        with torch.no_grad():
            target = self.target(p, ramp)
            band = (target[..., -1:] - target[..., :1]).mean(-2, keepdim=True).clamp(min=NARROW)
        off = self.quantiles(self.model, p) / band
        off = smooth_l1_loss(off, target / band, beta=0.1, reduction="none").mean((-1, -2))
        return off, ramp, seen >= LEAST

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
    parser.add_argument("guide", type=pathlib.Path, help="checkpoint whose forecasts it takes, by default of short histories")
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
    parser.add_argument("--also", nargs=2, action="append", default=[], metavar=("CHECKPOINT", "SHARES"),
                        help="a further guide and its shares; may come again")  # fmt: skip
    parser.add_argument("--flip", default="0,0", help="share of forecasts of -y in the target, likewise")
    parser.add_argument("--workers", type=int, default=0, help="processes that make series")
    parser.add_argument("--bfloat16", action="store_true", help="networks of the target in bfloat16; their keys centred (training/centre)")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    if args.steps and args.seconds:
        parser.error("give --steps or --seconds")
    if not args.short < args.long:
        parser.error("--short: less than --long")

    def two(option, text):
        try:
            short, long = map(float, text.split(","))
        except ValueError:
            parser.error(f"--{option}: two numbers, such as 0.4,0.3")
        return short, long

    shares, flip = two("shares", args.shares), two("flip", args.flip)
    also = [(pathlib.Path(folder), two("also", text)) for folder, text in args.also]
    if any(sum(of) > 1 + 1e-9 for of in zip(shares, *(s for _, s in also))):
        parser.error("--shares and --also: more than 1 together")
    if args.device == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)  # builds a plan for every shape
    torch.set_float32_matmul_precision("high")
    steps = None if args.seconds else args.steps or 300
    recipe = RECIPE | (ON_GPU if args.device == "cuda" else {}) | {"seed": args.seed, "tokens_per_step": args.tokens}
    if args.compile:  # of each part as many forms as there are sizes of networks, with and without gradients
        torch._dynamo.config.cache_size_limit = 64
    dtype = torch.bfloat16 if args.bfloat16 else torch.float32
    run = Guided(args.run, args.guide, args.begin, recipe, args.device, short=args.short, long=args.long, shares=shares,
                 also=also, flip=flip, compiled=args.compile, dtype=dtype)  # fmt: skip
    model = guided(run, pool_of(run, args.workers), args.peak, steps, args.seconds)
    if run.team.first:
        tensors.save_checkpoint(args.out, model.config, model.state_dict(), torch.bfloat16)


if __name__ == "__main__":
    main()
