# SPDX-License-Identifier: Apache-2.0
"""Bands of another width: a factor on how far the quantiles lie from the median, in the weights.

    training/widen runs/nano2-b runs/wider --factor 1.12

In arcsinh space a quantile's distance from the median is a difference of two rows of the head's last
matrices, so the factor becomes part of them. It is chosen on the development split.
"""

import argparse
import json
import pathlib

from . import tensors
from .model import QUANTILES

PARTS = [f"head.{part}.{kind}" for part in ("linear2", "skip_proj") for kind in ("weight", "bias")]


def widened(state, factor):
    """The state with each quantile `factor` times as far from the median as it was."""
    out = dict(state)
    for name in PARTS:
        rows = state[name].float().unflatten(0, (-1, QUANTILES))
        middle = rows[:, QUANTILES // 2 : QUANTILES // 2 + 1]
        out[name] = (middle + factor * (rows - middle)).flatten(0, 1)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--factor", type=float, required=True)
    args = parser.parse_args()
    model = tensors.load_checkpoint(args.model)
    kept = tensors.read(args.model / "model.safetensors")
    kind = next(t.dtype for name, t in kept.items() if not name.endswith("_tau"))
    tensors.save_checkpoint(args.out, model.config, widened(model.state_dict(), args.factor), kind)
    print(json.dumps({"factor": args.factor, "dtype": str(kind)}))


if __name__ == "__main__":
    main()
