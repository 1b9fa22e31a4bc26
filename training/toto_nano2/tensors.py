# SPDX-License-Identifier: Apache-2.0
"""Reads and writes safetensors files and checkpoint folders with nothing but PyTorch."""

import json
import pathlib
import struct

import torch

from .model import Config, Toto2, own, published

TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F64": torch.float64, "U8": torch.uint8,
         "I32": torch.int32, "I64": torch.int64}  # fmt: skip
NAMES = {v: k for k, v in TYPES.items()}


def write(path: pathlib.Path, tensors: dict) -> None:
    header, at, parts = {}, 0, []
    for name, t in tensors.items():
        t = t.detach().cpu().clone(memory_format=torch.contiguous_format)
        raw = t.reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape),
                        "data_offsets": [at, at + len(raw)]}  # fmt: skip
        at += len(raw)
        parts.append(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read(path: pathlib.Path) -> dict:
    raw = path.read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    out = {}
    for name, e in header.items():
        first, last = e["data_offsets"]
        data = bytearray(raw[8 + size + first : 8 + size + last])
        dtype = TYPES[e["dtype"]]
        out[name] = torch.frombuffer(data, dtype=dtype).reshape(e["shape"])
    return out


def save_weights(path: pathlib.Path, state: dict, dtype) -> None:
    """The weights under the published names; those of the branches stay float32, as they are exact."""
    tensors = {
        name: t.float() if name.endswith("_tau") else t.to(dtype)
        for name, t in published(state).items()
    }
    write(path, tensors)


# How the models of this program are forecast with where nothing is said (docs/cli.md, What a model names).
GENERATION = {"paths": "coherent", "tails": "normal"}


def save_description(folder: pathlib.Path, config: Config) -> None:
    """What lies beside the weights."""
    for name, what in ("config.json", config.to_json()), ("generation_config.json", GENERATION):
        (folder / name).write_text(json.dumps(what, indent=2, sort_keys=True) + "\n")


def save_checkpoint(folder: pathlib.Path, config: Config, state: dict, dtype) -> None:
    """A folder in the format of Toto 2.0."""
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(folder / "model.safetensors", state, dtype)
    save_description(folder, config)


def load_checkpoint(folder: pathlib.Path) -> Toto2:
    model = Toto2(Config.from_json(json.loads((folder / "config.json").read_text())))
    tensors = own(read(folder / "model.safetensors"))
    model.load_state_dict({name: t.float() for name, t in tensors.items()})
    return model.eval()
