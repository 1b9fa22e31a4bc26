# SPDX-License-Identifier: Apache-2.0
"""Bands of another width where the history is short: the head alone learns them.

    training/widths runs/nano2-c runs/wider --factors 1.35,1.12,1.06

Histories of less than 32 steps, of less than 64, and longer ones. The rest of the network stays as
it is; on synthetic series the head is fitted to its own quantiles, each moved away from the median
by the factor of its history. The factors are chosen on the development split.
"""

import argparse
import json
import pathlib

import torch

from . import batches, pool, tensors, widen
from .model import QUANTILES, read

BELOW = [32, 64]  # steps of history
POINTS = 6e6
ROUNDS = {"few": 6, "one": 4, "brief": 4, "short": 3, "middle": 3, "long": 3}
TOKENS = 9600  # of a batch of a round


def lengths(p, patch):
    """Steps observed up to each token, (B V, N); in a hidden span those before it."""
    flags = p.inputs[..., patch:] == 0
    return flags.sum(-1).cumsum(-1).flatten(0, 1)


def factors_of(steps, factors):
    out = torch.full(steps.shape, factors[-1])
    for bound, factor in reversed(list(zip(BELOW, factors))):
        out = torch.where(steps < bound, factor, out)
    return out


def gathered(model, ring_pool, seed, factors):
    """What the head reads at tokens that forecast, (T, D), and its factor (T,)."""
    patch = model.config.patch_size
    found = []
    for name, rounds in ROUNDS.items():
        shape = next(s for s in batches.SHAPES if s.name == ("one" if name == "few" else name))
        for i in range(rounds):
            r = batches.Random(torch.Generator().manual_seed(seed + 100 * i), torch.device("cpu"))
            r.shift = int(torch.randint(patch, (1,), generator=r.generator))
            r.rate = 2 + 3 * i
            few = name == "few"
            p = batches.draw(ring_pool, shape, TOKENS, r, patch, few=1.0 if few else 0.0)
            with torch.no_grad():
                x = model.stream(p.inputs, p.time_mask, p.variate_mask)
            steps = lengths(p, patch)
            steps = torch.where(torch.tensor(few), 1, steps).flatten()
            keep = torch.nn.functional.pad(p.counts.any(-1), (0, 1)).flatten()
            found.append((x[keep], factors_of(steps[keep], factors)))
    return torch.cat([x for x, _ in found]), torch.cat([f for _, f in found])


def quantiles(x, head, eps):
    return read(x, eps, torch.float32, *head.weights()).unflatten(-1, (-1, QUANTILES))


def fitted(model, x, factor, steps, rows=2048, rate=3e-3, seed=1):
    """The state of the model with a head that gives what the old one gives, wider by `factor`."""
    eps, names = model.config.norm_eps, [n for n, _ in model.named_parameters() if n.startswith("head.")]
    with torch.no_grad():
        old = torch.cat([quantiles(part, model.head, eps) for part in x.split(8192)])
        middle = old[..., QUANTILES // 2 : QUANTILES // 2 + 1]
        wanted = middle + factor[:, None, None] * (old - middle)
        spread = (wanted[..., -1:] - wanted[..., :1]).mean(1, keepdim=True).clamp(min=1e-3)
    model.load_state_dict(widen.widened(model.state_dict(), factor.median().item()))
    params = [p for n, p in model.named_parameters() if n in names]
    adam = torch.optim.Adam(params, lr=rate, betas=(0.9, 0.98))
    generator = torch.Generator().manual_seed(seed)
    for i in range(steps):
        at = torch.randint(len(x), (rows,), generator=generator)
        off = (quantiles(x[at], model.head, eps) - wanted[at]) / spread[at]
        adam.param_groups[0]["lr"] = rate * min(1, (i + 1) / 20) * (1 - i / steps)
        adam.zero_grad()
        off.abs().mean().backward()
        adam.step()
        if i % 50 == 0 or i + 1 == steps:
            print(f"step {i}: off by {off.abs().mean().item():.4f} of a band", flush=True)
    return model.state_dict()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--factors", default="1.35,1.12,1.06")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    factors = [float(f) for f in args.factors.split(",")]
    model = tensors.load_checkpoint(args.model)
    made = pool.Pool(args.seed * 10**9, POINTS, "cpu", 200_000)
    while not made.ready() or made.points < POINTS:
        made.fill_here()
    x, factor = gathered(model, made, args.seed, factors)
    print(f"{len(x)} tokens, with {[round((factor == f).float().mean().item(), 3) for f in factors]}", flush=True)
    state = fitted(model, x, factor, args.steps)
    tensors.save_checkpoint(args.out, model.config, state, torch.bfloat16)
    print(json.dumps({"factors": factors, "steps": args.steps}))


if __name__ == "__main__":
    main()
