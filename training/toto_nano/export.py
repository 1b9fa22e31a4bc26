# SPDX-License-Identifier: Apache-2.0
"""Exports a trained checkpoint in the format of the published Toto 1.0 models.

    training/export RUN/checkpoint models/toto-nano --type bf16
"""

import argparse
import pathlib

import torch

from . import checkpoint

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--type", choices=TYPES, default="bf16", help="storage of the weights")
    args = parser.parse_args()
    checkpoint.save(checkpoint.load(args.source), args.target, TYPES[args.type])


if __name__ == "__main__":
    main()
