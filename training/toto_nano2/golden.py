# SPDX-License-Identifier: Apache-2.0
"""Writes what the training program computes for a context as a golden case for `toto verify`."""

import json
import pathlib
import shutil

import torch

from . import inference, tensors


def write_case(folder: pathlib.Path, model_folder: pathlib.Path, context, horizon: int) -> None:
    """`context` is (series, valid, ids), each (B,V,T)."""
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(model_folder / name, folder / name)
    series, valid, ids = context
    model = tensors.load_checkpoint(model_folder)
    quantiles, parts = inference.forecast(model, series, valid.bool(), ids[..., 0], horizon)
    padded, mask = inference.pad_left(series, valid.bool(), model.config.patch_size)
    inputs = {"target": padded, "target_mask": mask.to(torch.uint8),
              "series_ids": ids[..., 0].to(torch.int32)}  # fmt: skip
    tensors.write(folder / "inputs.safetensors", inputs)
    found = {"all.quantiles": quantiles}
    found |= {f"all.block00.{name}": t for name, t in parts.items()}
    tensors.write(folder / "expected.safetensors", found)
    call = {"name": "all", "horizon": horizon, "decode_block_size": None, "trace": "stats",
            "has_missing_values": True, "scaler_fallback_min_obs": 0, "quantile_real_cap_k": 0.0}
    (folder / "case.json").write_text(json.dumps({"generation": 2, "calls": [call]}))
