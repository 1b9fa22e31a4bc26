# SPDX-License-Identifier: Apache-2.0
"""Trains a recipe (training/recipes/*.json) from its seed.

    training/train training/recipes/nano.json --out RUN

The data of a step depend on the seed and the step's number alone and the learning rate is
constant until the final decay, so a run can be stopped, resumed (--resume) and lengthened, and
ends with the weights of an unbroken run.
"""

import argparse
import copy
import csv
import json
import pathlib
import random
import time

import torch

from . import checkpoint, synthetic
from .model import Config, Toto
from .noise import Draw
from .optimizer import Muon

DEV_SEED = 1 << 40  # the development series come from seeds that training never reaches
NOISE_SEED = 1 << 41


class Data:
    """Batch number i, for any i: its shape and its content follow from (seed, i)."""

    def __init__(self, recipe, device):
        self.recipe = recipe
        self.generator = torch.Generator(device)

    def batch(self, index, shape=None, seed=None) -> synthetic.Batch:
        seed = self.recipe["seed"] * 1_000_000_007 + index if seed is None else seed + index
        shapes = self.recipe["shapes"]
        if shape is None:
            shape = random.Random(seed).choices(shapes, [s["weight"] for s in shapes])[0]
        self.generator.manual_seed(seed)
        groups = max(1, self.recipe["tokens_per_step"] // (shape["variates"] * shape["patches"]))
        patch = self.recipe["model"]["patch_size"]
        draw = Draw(self.generator)
        batch = synthetic.batch(draw, groups, shape["variates"], shape["patches"] * patch, patch)
        self.generator.manual_seed(seed + NOISE_SEED)  # the noise of `losses`, wherever it is drawn
        return batch

    def stream(self, first, last, workers=0):
        """Batches first .. last-1 in order; with workers, other processes make them."""
        if workers == 0:
            yield from map(self.batch, range(first, last))
            return
        loader = torch.utils.data.DataLoader(
            Steps(self.recipe, self.generator.device, first, last),
            batch_size=None, num_workers=workers, prefetch_factor=4, multiprocessing_context="spawn",
        )  # fmt: skip
        for index, batch in enumerate(loader, first):
            self.generator.manual_seed(self.recipe["seed"] * 1_000_000_007 + index + NOISE_SEED)
            yield batch.to(self.generator.device)


class Steps(torch.utils.data.Dataset):
    """What a worker of Data.stream does; its batches travel through the memory of the CPU."""

    def __init__(self, recipe, device, first, last):
        self.recipe, self.device, self.first, self.last = recipe, device, first, last
        self.data = None  # a generator cannot be sent to another process

    def __len__(self):
        return self.last - self.first

    def __getitem__(self, i):
        torch.set_num_threads(1)
        self.data = self.data or Data(self.recipe, self.device)
        return self.data.batch(self.first + i).to("cpu")


def losses(likelihood, model: Toto, batch: synthetic.Batch, jitter: float, amp: bool, generator):
    """Negative log likelihood (B,V,S-1,P) of every next patch and which entries count.

    `jitter` is the deviation of the noise added to the targets, in scaled units: without it the
    likelihood of series that repeat themselves exactly has no bound.
    """
    patch = model.config.patch_size
    x = batch.x.unflatten(-1, (-1, patch))
    valid = batch.valid.unflatten(-1, (-1, patch))
    loc, scale = model.statistics(batch.x, batch.valid)
    scaled = (x - loc[..., None]) / scale[..., None]
    target = (x[:, :, 1:] - loc[:, :, :-1, None]) / scale[:, :, :-1, None]
    noise = torch.randn(target.shape, generator=generator, device=target.device)
    ids = batch.ids[..., None].expand(*x.shape[:3])
    nll = likelihood(model, scaled, ids, target + jitter * noise, amp)
    return nll, valid[:, :, 1:]


def likelihood(model, scaled, ids, target, amp):
    with torch.autocast(scaled.device.type, torch.bfloat16, enabled=amp):
        hidden = model.tokens(scaled[:, :, :-1], ids[:, :, :-1])
    return -model.mixture(hidden).log_prob(target)


def average(nll, valid):
    return (nll * valid).sum() / valid.sum().clamp(min=1)


def rate(recipe, step):
    """Warm-up, constant, then a linear decay to zero over the last part."""
    left = (recipe["steps"] - step) / max(1, recipe["decay_steps"])
    return min(1.0, (step + 1) / recipe["warmup_steps"], left)


class Run:
    def __init__(self, recipe, device):
        self.recipe, self.device = recipe, device
        torch.manual_seed(recipe["seed"])
        self.model = Toto(Config(**recipe["model"]))
        for layer in self.model.transformer.layers:  # every layer begins as the identity
            torch.nn.init.zeros_(layer.attention.wO.weight)
            torch.nn.init.zeros_(layer.mlp[0].w3.weight)
        self.model.to(device)
        self.ema = copy.deepcopy(self.model)
        self.muon = Muon(self.model.transformer.layers, recipe["weight_decay"])
        inner = {id(p) for p in self.muon.parameters()}
        rest = [p for p in self.model.parameters() if id(p) not in inner]
        self.adam = torch.optim.AdamW(rest, betas=(0.9, 0.95), weight_decay=0.0)
        self.step = 0

    def update(self, loss):
        r = self.recipe
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), r["clip"])
        factor = rate(r, self.step)
        for group in self.adam.param_groups:
            group["lr"] = r["adam_lr"] * factor
        self.adam.step()
        self.muon.step(r["muon_lr"] * factor)
        self.model.zero_grad(set_to_none=True)
        self.step += 1
        decay = min(r["ema"], self.step / (self.step + 10))
        with torch.no_grad():
            for slow, fast in zip(self.ema.parameters(), self.model.parameters()):
                slow.lerp_(fast, 1 - decay)

    def save(self, path):
        state = {
            "step": self.step,
            "model": self.model.state_dict(),
            "ema": self.ema.state_dict(),
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
        }
        torch.save(state, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)

    def load(self, path):
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.step = state["step"]
        for name in ("model", "ema", "muon", "adam"):
            getattr(self, name).load_state_dict(state[name])


@torch.no_grad()
def development_loss(run, data, jitter, amp, count):
    """Mean loss per shape over development batches, the same ones every time."""
    values = {}
    for s, shape in enumerate(run.recipe["shapes"]):
        total = 0.0
        for i in range(count):
            batch = data.batch(s * count + i, shape, DEV_SEED)
            total += average(*losses(likelihood, run.ema, batch, jitter, amp, data.generator)).item()
        values[f"dev_{shape['variates']}x{shape['patches']}"] = total / count
    return values


def train(recipe, out: pathlib.Path, device="cpu", resume=None, compiled=False, limit_s=None,
          until=None, workers=0):
    """Returns the averaged model; writes out/state.pt, out/curve.csv and the checkpoint."""
    out.mkdir(parents=True, exist_ok=True)
    run, data = Run(recipe, device), Data(recipe, device)
    if resume:
        run.load(resume)
    score = torch.compile(likelihood, dynamic=False) if compiled else likelihood
    jitter, amp, every = recipe["jitter"], recipe["bfloat16"], recipe["report_every"]
    started, recent = time.monotonic(), []
    last = until or recipe["steps"]
    development = Data(recipe, device)
    for batch in data.stream(run.step, last, workers):
        loss = average(*losses(score, run.model, batch, jitter, amp, data.generator))
        run.update(loss)
        recent.append(loss.detach())
        if run.step % every == 0 or run.step == last:
            row = {"step": run.step, "seconds": round(time.monotonic() - started, 1)}
            row["train"] = torch.stack(recent).mean().item()
            row.update(development_loss(run, development, jitter, amp, recipe["dev_batches"]))
            recent.clear()
            append_csv(out / "curve.csv", row)
            print(" ".join(f"{k} {v:.4g}" for k, v in row.items()), flush=True)
            run.save(out / "state.pt")
        if limit_s and time.monotonic() - started > limit_s:
            run.save(out / "state.pt")
            break
    checkpoint.save(run.ema, out / "checkpoint", torch.float32)
    return run.ema


def append_csv(path, row):
    fresh = not path.exists()
    with path.open("a", newline="") as f:
        writer = csv.DictWriter(f, list(row))
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--resume", type=pathlib.Path, help="a state.pt to go on from")
    parser.add_argument("--compile", action="store_true", help="torch.compile the loss")
    parser.add_argument("--workers", type=int, default=0, help="processes that make the series")
    parser.add_argument("--until", type=int, help="stop at this step, before the recipe's last")
    parser.add_argument("--limit", type=float, help="stop after so many seconds, resumable")
    args = parser.parse_args()
    recipe = json.loads(args.recipe.read_text())
    train(
        recipe, args.out, args.device, args.resume, args.compile, args.limit, args.until,
        args.workers,
    )


if __name__ == "__main__":
    main()
