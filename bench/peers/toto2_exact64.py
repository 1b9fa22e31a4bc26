#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds `quantiles64.exact` to golden folders of Toto 2.0: the official model in float64, without what it rounds to float32.

    bench/peers/toto2_exact64.py tests/data/golden/toto2-tiny-*

In float64 the official code (toto-2 2.0.0) still takes the mean squares of its norms in float32 (unit_scaling `rms`:
`x.float().pow(2).mean()`) and keeps cosines and sines of the rotary embedding in float32, as the vector library of the
machine gives them, an ulp off here and there. Both differ from machine to machine, so `quantiles64` is good to a few 1e-6
only. Here the mean squares are of float64, and the tables are cosines and sines in double of the official float32 angles,
rounded once. Nothing else is changed. Every other tensor of the file stays as it is. Also printed: how far the official
code as it is, on this machine, is from the `quantiles64` of the file.

Needs Python 3.12 with `toto-2` and torch (bench/peers/requirements-toto2.txt).
"""
import argparse
import dataclasses
import json
import pathlib

import numpy as np
import torch
import unit_scaling.functional
from safetensors.numpy import load_file, save_file
from toto2.configuration import Toto2ModelConfig
from toto2.model import RotaryProjection, Toto2Model

OFFICIAL_RMS = unit_scaling.functional.rms


def exact_rms(x, dims=None, keepdim=False, eps=0.0):
    return (x.pow(2).mean(dims, keepdim=keepdim) + eps).sqrt()


def hash_weights(path):
    """The weights that weights.json describes (docs/verification.md)."""
    listed = json.loads(path.read_text())
    weights = {}
    for i, name in enumerate(listed["tensor_order"]):
        shape = listed["shapes"][i]
        s = (1000 * listed["weight_seed"] + i + 1) * 0x9E3779B9 + np.arange(np.prod(shape, dtype=int), dtype=np.uint64) * 0x85EBCA6B
        s = (s & 0xFFFFFFFF).astype(np.uint32)
        s ^= s >> 16
        s *= np.uint32(0x7FEB352D)
        s ^= s >> 15
        s *= np.uint32(0x846CA68B)
        s ^= s >> 16
        weights[name] = (listed["base"][i] + listed["amp"][i] * (s / 2**32 - 0.5)).astype(np.float32).reshape(shape)
    return weights


def load(folder):
    raw = json.loads((folder / "config.json").read_text())
    known = {field.name for field in dataclasses.fields(Toto2ModelConfig)}
    model = Toto2Model(Toto2ModelConfig(**{name: value for name, value in raw.items() if name in known}))
    weights = {}
    for file in folder.glob("model*.safetensors"):
        weights |= load_file(file)
    weights = weights or hash_weights(folder / "weights.json")
    model.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(w)) for name, w in weights.items()}, strict=True)
    return model.double().eval()


def make_exact(model):
    unit_scaling.functional.rms = exact_rms
    for module in model.modules():
        if not isinstance(module, RotaryProjection):
            continue
        steps = torch.arange(len(module.cos), dtype=torch.float32)
        angles = (steps[:, None] * module.theta.float()).double().repeat_interleave(2, -1)
        module.cos = angles.cos().float().double()
        module.sin = angles.sin().float().double()


def read_inputs(folder):
    inputs = {}
    for name, values in load_file(folder / "inputs.safetensors").items():
        tensor = torch.from_numpy(values)
        inputs[name] = tensor.bool() if name.endswith("mask") else tensor.long() if name.endswith("ids") else tensor.double()
    return inputs


def forecast(model, inputs, call):
    options = {name: call[name] for name in
               ("decode_block_size", "has_missing_values", "scaler_fallback_min_obs", "quantile_real_cap_k")}
    found = model.forecast({name: tensor.clone() for name, tensor in inputs.items()}, call["horizon"], **options)
    return np.ascontiguousarray(found.numpy())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    for folder in parser.parse_args().folders:
        expected = load_file(folder / "expected.safetensors")
        calls = [c for c in json.loads((folder / "case.json").read_text())["calls"] if c["name"] + ".quantiles64" in expected]
        if not calls:
            continue
        inputs = read_inputs(folder)
        unit_scaling.functional.rms = OFFICIAL_RMS
        model = load(folder)
        as_it_is = [forecast(model, inputs, call) for call in calls]
        mask = inputs["target_mask"].clone()
        mask[..., -model.config.patch_size:] = True
        scale = model.scaler(inputs["target"], mask)[2][..., -1:].numpy()
        make_exact(model)
        for call, official in zip(calls, as_it_is):
            listed = expected[call["name"] + ".quantiles64"]
            error = np.max(np.abs(official - listed) / (scale + np.abs(listed)))
            print(f"{folder.name} {call['name']}: the official code here and the file differ by {error:.1e}")
            expected[call["name"] + ".quantiles64.exact"] = forecast(model, inputs, call)
        save_file(expected, folder / "expected.safetensors")


if __name__ == "__main__":
    main()
