# SPDX-License-Identifier: Apache-2.0
"""A run of several processes, of which each leaves its weights and gradients: see test_nano2_run.py."""

import json
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "training"))

from toto_nano2 import tensors, train  # noqa: E402


class Watched(train.Run):
    """Keeps what the last step had from its own batch, and from all."""

    def __init__(self, *args):
        super().__init__(*args)
        Watched.made = self

    def gradients(self, prepared):
        super().gradients(prepared)
        self.own = self.sent.clone()

    def update(self):
        self.of_all = self.sent.clone()
        return super().update()


def main():
    out = pathlib.Path(sys.argv[1])
    recipe = json.loads((ROOT / "training" / "recipes" / "tiny2.json").read_text())
    train.Run = Watched
    train.train(recipe, out / "run", steps=4, graphs=True)
    run = Watched.made
    state = {f"model.{k}": v for k, v in run.model.state_dict().items()}
    state |= {f"slow.{k}": v for k, v in run.slow.state_dict().items()}
    kept = {**state, "own gradients": run.own, "sent": run.of_all}
    tensors.write(out / f"rank{run.team.rank}.safetensors", kept)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
