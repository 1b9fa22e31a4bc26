# SPDX-License-Identifier: Apache-2.0
"""Bands of another width where the history is short, for next to nothing elsewhere.

    training/widths runs/nano2-d runs/wider --factors 1.3,1.06,1 --outer 1.04

Factors of histories of less than 32 steps, of less than 64, and longer ones; `--outer` is one more, of the
two outermost deciles, or of the lower and the upper one. What all histories share goes into the head exactly
(see widen.py). The rest is learnt by a few hidden units of the last feed-forward layer, those that did least:
their gates open for short histories only, so that long ones keep their forecasts. All other weights stay as
they are. The series are synthetic; factors are chosen on the development splits and the probes.
"""

import argparse
import json
import pathlib

import torch
from torch.nn import functional as F

from . import batches, pool, tensors, widen
from .model import QUANTILES, Parts, add, product, read, rms

BELOW = [32, 64]  # steps of history
POINTS = 5e6
ROUNDS = {"few": 7, "one": 4, "brief": 5, "short": 4, "middle": 4, "long": 5}
TOKENS = 9600  # of a batch of a round
DRAWN = [384, 128, 512]  # tokens of a step, by length of history
WEIGHTS = [1.0, 0.5, 4.0]
RATES = [0.01, 0.01, 0.02]  # of gates, values and what they add
MEDIAN = 5.0  # weight of the median beside those of the other quantiles
MIDDLE = slice(QUANTILES // 2, QUANTILES // 2 + 1)


def lengths(p, patch):
    """Steps observed up to each token, (B V, N); in a hidden span those before it."""
    flags = p.inputs[..., patch:] == 0
    return flags.sum(-1).cumsum(-1).flatten(0, 1)


def class_of(steps):
    """0, 1, ...: the place in BELOW."""
    return sum((steps >= bound).long() for bound in BELOW)


def before_the_last(x, y, wo, bo, w1, w2, taus, eps, dtype):
    """In the place of `leave`: what the last feed-forward layer reads."""
    return add(x, product(y, wo, bo, dtype), taus[0])


def gathered(model, ring_pool, seed, rounds=ROUNDS, tokens=TOKENS):
    """What the last feed-forward layer reads at tokens that forecast, (T, D), and the class of the
    history of each, (T,). Histories of less than a patch are those that `few` makes, as programs pad them."""
    patch, parts = model.config.patch_size, Parts()
    parts.leave = before_the_last
    found = []
    for name, count in rounds.items():
        few = name == "few"
        shape = next(s for s in batches.SHAPES if s.name == ("one" if few else name))
        for i in range(count):
            r = batches.Random(torch.Generator().manual_seed(seed + 100 * i), torch.device("cpu"))
            r.shift = int(torch.randint(patch, (1,), generator=r.generator))
            r.rate = 2 + 3 * i
            p = batches.draw(ring_pool, shape, tokens, r, patch, few=1.0 if few else 0.0)
            with torch.no_grad():
                x = model.stream(p.inputs, p.time_mask, p.variate_mask, parts=parts)
            steps = lengths(p, patch).flatten()
            kind = torch.zeros_like(steps) if few else class_of(steps)
            keep = F.pad(p.counts.any(-1), (0, 1)).flatten() & (few | (kind > 0))
            found.append((x[keep], kind[keep]))
    return torch.cat([x for x, _ in found]), torch.cat([k for _, k in found])


def quantiles(x, head, eps):
    return read(x, eps, torch.float32, *head.weights()).unflatten(-1, (-1, QUANTILES))


class Last:
    """The last feed-forward layer as y = x / norm + (values * silu(gates)) W, without its least units
    (`base`) and with others in their place."""

    def __init__(self, model, x, units):
        layer, self.head, self.eps = model.layers[-1], model.head, model.config.norm_eps
        self.ffn, tau = layer.ffn, layer.taus[1]
        self.inner = self.ffn.fc2.weight.shape[1]
        self.near = 1 / torch.sqrt(1 + tau * tau)
        self.out = tau * self.near / self.inner**0.5
        some = rms(x[:: max(1, len(x) // 50_000)], self.eps)
        size = self.hidden(some).square().mean(0).sqrt() * self.ffn.fc2.weight.norm(dim=0)
        self.units = size.argsort()[:units]
        self.size = (size[self.units] / size.median()).tolist()

    def hidden(self, read_):
        value, gate = product(read_, self.ffn.fc1.weight, None, torch.float32).chunk(2, -1)
        return value * F.silu(gate)

    def both(self, x):
        """rms(x), what the head reads without the units, and with them as they were."""
        read_ = rms(x, self.eps)
        hidden = self.hidden(read_)
        whole = x * self.near + F.linear(hidden, self.ffn.fc2.weight * self.out)
        own = F.linear(hidden[:, self.units], self.ffn.fc2.weight[:, self.units] * self.out)
        return read_, whole - own, whole

    def with_units(self, read_, base, gates, values, added):
        return base + F.linear(F.linear(read_, values) * F.silu(F.linear(read_, gates)), added)

    def put(self, gates, values, added):
        """The units into the layer, in its own scale."""
        root = gates.shape[1] ** 0.5
        self.ffn.fc1.weight[self.units] = values * root
        self.ffn.fc1.weight[self.inner + self.units] = gates * root
        self.ffn.fc2.weight[:, self.units] = added / self.out


def first_gate(read_, kind, generator, steps=600, rate=0.05):
    """A direction that tells the shortest histories from the long ones."""
    ends = [(kind == k).nonzero()[:, 0] for k in (0, len(BELOW))]
    gate = torch.zeros(read_.shape[1], requires_grad=True)
    adam = torch.optim.Adam([gate], lr=rate)
    for i in range(steps):
        short, long = (read_[e[torch.randint(len(e), (512,), generator=generator)]] @ gate for e in ends)
        adam.param_groups[0]["lr"] = rate * (1 - i / steps)
        adam.zero_grad()
        (F.softplus(-short).mean() + F.softplus(long).mean()).backward()
        adam.step()
    return gate.detach()


def first_value(read_, kind):
    """A direction in which short histories are about one: there is no bias."""
    short = read_[kind == 0]
    short = short[:: max(1, len(short) // 20_000)]
    ridge = 0.3 * len(short) ** 0.5 * torch.eye(short.shape[1])
    one = torch.cat((torch.ones(len(short)), torch.zeros(short.shape[1])))
    return torch.linalg.lstsq(torch.cat((short, ridge)), one[:, None]).solution[:, 0]


def fitted(model, x, kind, factors, steps, units=5, seed=1):
    """The state of the model whose bands are those of its own head, wider by the factor of their class
    relative to that of the longest histories; the median stays."""
    for p in model.parameters():
        p.requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    last = Last(model, x, units)
    print(f"units of {', '.join(f'{s:.2g}' for s in last.size)} of the median's size", flush=True)
    relative = torch.tensor(factors)[kind] / factors[-1]
    read_, base, wanted = [], [], []
    for part, factor in zip(x.split(8192), relative.split(8192)):
        r, b, whole = last.both(part)
        old = quantiles(whole, model.head, last.eps)
        middle = old[..., MIDDLE]
        read_.append(r), base.append(b), wanted.append(middle + factor[:, None, None] * (old - middle))
    read_, base, wanted = map(torch.cat, (read_, base, wanted))
    spread = (wanted[..., -1:] - wanted[..., :1]).abs().mean(1, keepdim=True).clamp(min=1e-3)
    gate, value = first_gate(read_, kind, generator), first_value(read_, kind)
    noise = torch.randn(2, units, len(gate), generator=generator) / len(gate) ** 0.5
    noise[1, 0] = 0
    params = [gate + 0.1 * gate.norm() * noise[0], value + noise[1], torch.zeros(len(gate), units)]
    params = [p.requires_grad_(True) for p in params]
    adam = torch.optim.Adam([{"params": [p], "most": rate} for p, rate in zip(params, RATES)], betas=(0.9, 0.98))
    places = [(kind == k).nonzero()[:, 0] for k in range(len(factors))]
    weight = torch.cat([torch.full((n, 1, QUANTILES), w) for n, w in zip(DRAWN, WEIGHTS)])
    weight[..., MIDDLE] *= MEDIAN
    for i in range(steps):
        at = torch.cat([p[torch.randint(len(p), (n,), generator=generator)] for p, n in zip(places, DRAWN)])
        found = quantiles(last.with_units(read_[at], base[at], *params), model.head, last.eps)
        off = ((found - wanted[at]) / spread[at]).abs()
        for group in adam.param_groups:
            group["lr"] = group["most"] * min(1, (i + 1) / 30) * (1 - i / steps)
        adam.zero_grad()
        (weight * off).mean().backward()
        adam.step()
        if i % 100 == 0 or i + 1 == steps:
            said = ", ".join(f"{o.mean().item():.4f}" for o in off.split(DRAWN))
            print(f"step {i}: off by {said} of a band", flush=True)
    with torch.no_grad():
        last.put(*params)
    return model.state_dict()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--factors", default="1.3,1.06,1")
    parser.add_argument("--outer", type=widen.outermost, default=(1.0, 1.0), help="one more, of the outermost deciles, or LOWER,UPPER")
    parser.add_argument("--units", type=int, default=5)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    factors = [float(f) for f in args.factors.split(",")]
    if len(factors) != len(BELOW) + 1:
        parser.error(f"--factors: {len(BELOW) + 1} of them")
    model = tensors.load_checkpoint(args.model)
    model.load_state_dict(widen.widened(model.state_dict(), factors[-1], args.outer))
    made = pool.Pool(args.seed * 10**9, POINTS, "cpu", 200_000)
    while not made.ready() or made.points < POINTS:
        made.fill_here()
    x, kind = gathered(model, made, args.seed)
    print(f"{len(x)} tokens, by history {torch.bincount(kind).tolist()}", flush=True)
    state = fitted(model, x, kind, factors, args.steps, args.units)
    tensors.save_checkpoint(args.out, model.config, state, torch.bfloat16)
    print(json.dumps({"factors": factors, "outer": args.outer, "units": args.units, "steps": args.steps}))


if __name__ == "__main__":
    main()
