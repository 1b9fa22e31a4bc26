# SPDX-License-Identifier: Apache-2.0
"""A trained network in the size and the format that it is to have.

    training/trim runs/mini2 runs/small --hidden 928
    training/trim runs/small runs/whole --fill

Hidden units of the feed-forward layers go, one at a time, where the layer's output on synthetic series
suffers least; the others take over by least squares (the update of the optimal brain surgeon, Hassibi
and Stork 1993, with the Gram matrix of the hidden units in the place of the Hessian). The format wants
whole groups of layers: with --fill layers that do nothing complete the last one, their weights and tau 0.
"""

import argparse
import dataclasses
import json
import pathlib

import torch

from . import batches, model, pool, tensors

POINTS = 6e6
TOKENS = {"one": 5760, "brief": 5760, "short": 5760, "middle": 5760, "long": 9600, "group": 3840}
RIDGE = 1e-6  # of the mean square of a hidden unit


def grams(net, ring_pool, seed):
    """Mean products of the hidden units of each layer over tokens, a list of (d_ff, d_ff) float64."""
    c = net.config
    found = [torch.zeros(c.d_ff, c.d_ff, dtype=torch.float64) for _ in net.layers]
    layer_of = {id(layer.ffn.fc2.weight): i for i, layer in enumerate(net.layers)}
    whole = model.product

    def watched(x, w, b, dtype):
        if id(w) in layer_of:
            found[layer_of[id(w)]] += (x.mT @ x).double()
        return whole(x, w, b, dtype)

    model.product = watched
    try:
        with torch.no_grad():
            for name, tokens in TOKENS.items():
                shape = next(s for s in batches.SHAPES if s.name == name)
                r = batches.Random(torch.Generator().manual_seed(seed), torch.device("cpu"))
                r.shift, r.rate = 7, 5
                p = batches.draw(ring_pool, shape, tokens, r, c.patch_size)
                net.stream(p.inputs, p.time_mask, p.variate_mask)
    finally:
        model.product = whole
    return [g / sum(TOKENS.values()) for g in found]


def fewer(weight, gram, count):
    """weight (D, F) as it is with `count` of its columns used, and which; the share of the mean square
    of its output that is lost."""
    w, f = weight.double().clone(), gram.shape[0]
    inverse = torch.linalg.inv(gram + torch.eye(f, dtype=torch.float64) * RIDGE * gram.diagonal().mean())
    alive = torch.ones(f, dtype=torch.bool)
    for _ in range(f - count):
        cost = (w.square().sum(0) / inverse.diagonal()).masked_fill(~alive, torch.inf)
        j = int(cost.argmin())
        alive[j] = False
        column = inverse[:, j] / inverse[j, j]
        w -= torch.outer(w[:, j].clone(), column)
        inverse -= torch.outer(column, inverse[j].clone())
        inverse[j, j] = 1.0
        w[:, ~alive] = 0
    change = w - weight.double()
    size = lambda x: torch.einsum("oi,ij,oj->", x, gram, x)  # noqa: E731
    return w[:, alive].float(), alive, (size(change) / size(weight.double()).clamp(min=1e-30)).item()


def trimmed(net, hidden, ring_pool, seed=5):
    """A network with `hidden` units; `net` stays as it is."""
    config = dataclasses.replace(net.config, d_ff=hidden)
    state, lost = dict(net.state_dict()), []
    for i, gram in enumerate(grams(net, ring_pool, seed)):
        names = [f"layers.{i}.ffn.{part}.weight" for part in ("fc1", "fc2")]
        values, gates = state[names[0]].chunk(2)
        kept, alive, share = fewer(state[names[1]], gram, hidden)
        state[names[0]] = torch.cat((values[alive], gates[alive]))
        state[names[1]] = kept * (hidden / net.config.d_ff) ** 0.5  # products are over the root of fan-in
        lost.append(share)
    out = model.Toto2(config)
    out.load_state_dict(state)
    return out.eval(), lost


def whole_groups(config, weights):
    """Configuration and published weights with layers that do nothing up to a whole group."""
    count, group = config.num_layers, config.layer_group_size
    number = -(-count // group) * group
    out, last = dict(weights), f"transformer.layers.{count - 1}."
    for i in range(count, number):
        for name, t in weights.items():
            if name.startswith(last):
                out[f"transformer.layers.{i}.{name.removeprefix(last)}"] = torch.zeros_like(t)
    return dataclasses.replace(config, num_layers=number), out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--hidden", type=int, help="units of a feed-forward layer that stay")
    parser.add_argument("--fill", action="store_true", help="whole groups of layers")
    parser.add_argument("--seed", type=int, default=78)
    args = parser.parse_args()
    net, said = tensors.load_checkpoint(args.model), {}
    if args.hidden:
        made = pool.Pool(args.seed * 10**9, POINTS, "cpu", 200_000)
        while not made.ready() or made.points < POINTS:
            made.fill_here()
        net, lost = trimmed(net, args.hidden, made)
        said["lost"] = [float(f"{share:.2g}") for share in lost]
    config, weights = net.config, model.published(net.state_dict())
    if args.fill:
        config, weights = whole_groups(config, weights)
    kept = {n: t if n.endswith("_tau") else t.bfloat16() for n, t in weights.items()}
    args.out.mkdir(parents=True, exist_ok=True)
    tensors.write(args.out / "model.safetensors", kept)
    tensors.save_description(args.out, config)
    said["weights"] = sum(t.numel() for t in kept.values())
    print(json.dumps(said))


if __name__ == "__main__":
    main()
