# SPDX-License-Identifier: Apache-2.0
"""Writes what the training program computes for a context as a golden case for `toto verify`."""

import pathlib
import shutil

import torch
from safetensors.torch import save_file

from . import checkpoint, inference
from .model import Toto

PARTS = ("df", "loc", "scale", "probs")


def parameters(prefix, mixture):
    return {f"{prefix}.{part}": getattr(mixture, part) for part in PARTS}


@torch.no_grad()
def expected(model: Toto, series, valid, ids, horizon: int, samples: int, seed: int) -> dict:
    patch = model.config.patch_size
    x, v, i = inference.pad_left(series, valid, ids, patch)
    start, keep = x.shape[-1], []
    mixture, _, _ = inference.step(model, x, v, i, start, None, keep)
    found = {f"prefill.layer{n:02d}": hidden for n, hidden in enumerate(keep)}
    found["prefill.loc"], found["prefill.scale"] = model.statistics(x, v)
    found.update(parameters("prefill.dist", mixture))
    for mode in ("cached", "uncached"):
        found[f"mean.{mode}"] = inference.forecast_mean(
            model, series, valid, ids, horizon, mode == "cached"
        )
    rounds = -(-horizon // patch)
    drawn = inference.forecast_samples(model, series, valid, ids, rounds * patch, samples, seed)
    drawn = drawn.flatten(0, 1)
    found["forced.samples"] = drawn
    x, v, i = (t.repeat(samples, 1, 1) for t in (x, v, i))
    cache = inference.Cache()
    for n, values in enumerate(drawn.split(patch, -1)):
        mixture, loc, scale = inference.step(model, x, v, i, start, cache)
        found.update(parameters(f"forced.step{n:02d}", mixture))
        found[f"forced.step{n:02d}.affine_loc"] = loc
        found[f"forced.step{n:02d}.affine_scale"] = scale
        x, v, i = inference.extend(x, v, i, values)
    return found


def write_case(folder: pathlib.Path, model_folder: pathlib.Path, context, horizon: int,
               samples: int = 2, seed: int = 0) -> None:
    """`context` is (series, valid, ids), each (B,V,T)."""
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(model_folder / name, folder / name)
    series, valid, ids = context
    inputs = {"series": series, "padding_mask": valid.to(torch.uint8), "id_mask": ids.to(torch.int32)}
    save_file({k: t.contiguous() for k, t in inputs.items()}, folder / "inputs.safetensors")
    found = expected(checkpoint.load(model_folder), series, valid, ids, horizon, samples, seed)
    save_file({k: t.contiguous() for k, t in found.items()}, folder / "expected.safetensors")
