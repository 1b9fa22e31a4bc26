# SPDX-License-Identifier: Apache-2.0
"""Bands of another width: a factor on how far the quantiles lie from the median, in the weights.

    training/widen runs/nano2-b runs/wider --factor 1.12 --outer 1.04

In arcsinh space a quantile's distance from the median is a difference of two rows of the head's last
matrices, so the factor becomes part of them. `--outer` is one more factor, of the two outermost
deciles, or of the lower and the upper one: 1,1.04. All are chosen on the development split and the probes.
"""

import argparse
import json
import pathlib

import torch

from . import tensors
from .model import QUANTILES

PARTS = [f"head.{part}.{kind}" for part in ("linear2", "skip_proj") for kind in ("weight", "bias")]


def outermost(text):
    """The factors of the lower and the upper decile: one number for both, or two."""
    found = [float(f) for f in text.split(",")]
    if len(found) > 2:
        raise ValueError(text)
    return found[0], found[-1]


def widened(state, factor, outer=(1.0, 1.0)):
    """The state with each quantile `factor` times as far from the median as it was, the first and the
    last `outer` times that."""
    factors = torch.full((QUANTILES,), float(factor))
    factors[[0, -1]] *= torch.tensor(outer)
    out = dict(state)
    for name in PARTS:
        rows = state[name].float().unflatten(0, (-1, QUANTILES))
        middle = rows[:, QUANTILES // 2 : QUANTILES // 2 + 1]
        own = factors.view(QUANTILES, *[1] * (rows.dim() - 2))
        out[name] = (middle + own * (rows - middle)).flatten(0, 1)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--factor", type=float, required=True)
    parser.add_argument("--outer", type=outermost, default=(1.0, 1.0), help="one more, of the outermost deciles, or LOWER,UPPER")
    args = parser.parse_args()
    model = tensors.load_checkpoint(args.model)
    kept = tensors.read(args.model / "model.safetensors")
    kind = next(t.dtype for name, t in kept.items() if not name.endswith("_tau"))
    tensors.save_checkpoint(args.out, model.config, widened(model.state_dict(), args.factor, args.outer), kind)
    print(json.dumps({"factor": args.factor, "outer": args.outer, "dtype": str(kind)}))


if __name__ == "__main__":
    main()
