# SPDX-License-Identifier: Apache-2.0
"""Reads and writes checkpoints in the format of the published Toto 1.0 models."""

import json
import pathlib

import torch
from safetensors.torch import load_file, save_file

from .model import Config, Toto

SCALER = "<class 'model.scaler.CausalPatchStdMeanScaler'>"
HEAD = "<class 'model.distribution.MixtureOfStudentTsOutput'>"
UNFUSED = {".mlp.0.weight": ".mlp.0.w12.weight", ".mlp.0.bias": ".mlp.0.w12.bias",
           ".mlp.2.weight": ".mlp.0.w3.weight", ".mlp.2.bias": ".mlp.0.w3.bias"}


def to_json(config: Config) -> dict:
    return {
        "patch_size": config.patch_size,
        "stride": config.patch_size,
        "embed_dim": config.embed_dim,
        "num_layers": config.num_layers,
        "num_heads": config.num_heads,
        "mlp_hidden_dim": config.mlp_hidden_dim,
        "dropout": 0.0,
        "spacewise_every_n_layers": config.spacewise_every_n_layers,
        "spacewise_first": config.spacewise_first,
        "scaler_cls": SCALER,
        "output_distribution_classes": [HEAD],
        "output_distribution_kwargs": {"k_components": config.k_components},
        "use_memory_efficient_attention": False,
        "stabilize_with_global": config.stabilize_with_global,
        "scale_factor_exponent": config.scale_factor_exponent,
    }


def from_json(raw: dict) -> Config:
    if raw["scaler_cls"] != SCALER or raw["output_distribution_classes"][0] != HEAD:
        raise ValueError("only the causal patch scaler and the Student-T mixture are trained here")
    return Config(
        patch_size=raw["patch_size"],
        embed_dim=raw["embed_dim"],
        num_layers=raw["num_layers"],
        num_heads=raw["num_heads"],
        mlp_hidden_dim=raw["mlp_hidden_dim"],
        spacewise_every_n_layers=raw["spacewise_every_n_layers"],
        spacewise_first=raw.get("spacewise_first", True),
        k_components=raw["output_distribution_kwargs"]["k_components"],
        stabilize_with_global=raw.get("stabilize_with_global", True),
        scale_factor_exponent=raw.get("scale_factor_exponent", 10.0),
    )


def save(model: Toto, folder: pathlib.Path, dtype: torch.dtype) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        "model." + name: t.detach().cpu().to(dtype).contiguous()
        for name, t in model.state_dict().items()
    }
    path = folder / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)  # the writer makes it private
    text = json.dumps(to_json(model.config), indent=2) + "\n"
    (folder / "config.json").write_text(text)


def load(folder: pathlib.Path) -> Toto:
    model = Toto(from_json(json.loads((folder / "config.json").read_text())))
    tensors = {}
    for name, t in load_file(folder / "model.safetensors").items():
        name = name.removeprefix("model.")
        for old, new in UNFUSED.items():
            if name.endswith(old):
                name = name.removesuffix(old) + new
        if "rotary_emb" not in name:
            tensors[name] = t.float()
    model.load_state_dict(tensors)
    return model.eval()
