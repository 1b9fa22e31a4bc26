# SPDX-License-Identifier: Apache-2.0
"""What tests of the trainer of the Toto 2.0 format share."""

import json
import pathlib
import socket

import torch

from toto_nano2 import batches, pool

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = json.loads((ROOT / "training" / "recipes" / "tiny2.json").read_text())
CPU = torch.device("cpu")


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def batch_of(shape, tokens=1920):
    made = pool.Pool(1, 1e6, "cpu", 65536)
    while not made.ready():
        made.fill_here()
    return batches.draw(made, shape, tokens, batches.Random(torch.Generator().manual_seed(1), CPU))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
