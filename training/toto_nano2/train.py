# SPDX-License-Identifier: Apache-2.0
"""Trains a model in the format of Toto 2.0 on synthetic series.

    training/train2 training/recipes/nano2.json --out RUN --steps 2000
    training/train2 training/recipes/nano2.json --out RUN --seconds 560 --total 1120
    training/train2 training/recipes/nano2-b.json --weights models/NAME --out RUN --seconds 500
    training/train2 training/recipes/nano2-d.json --weights runs/narrow --out RUN --seconds 500 --compile --graphs
    torchrun --nproc-per-node 4 training/train2 training/recipes/mini2.json --out RUN --seconds 560 --compile --graphs

With --steps the learning rate follows the step and the same recipe gives the same weights. With
--seconds it follows the clock: a run stops by itself, and one that is resumed goes on where the
schedule of --total seconds stood.
"""

import argparse
import json
import pathlib
import time

import torch

from toto_nano.train import append_csv

from . import centre
from .batches import LEAST_TOKENS, SHAPES, Random, draw
from .clock import Clock, schedule
from .feed import APART, Feed, pools
from .losses import LEVELS, Losses
from .run import Run
from .startup import captured_steps, choose_attention, profiled, warm_up
from .team import TOGETHER, Team


@torch.no_grad()
def development_loss(run, pool, r, tokens):
    """Mean loss per point and level by shape, over series that training never sees."""
    r.generator.manual_seed(1)
    plain = Losses(False)
    row = {}
    for shape in SHAPES:
        p = draw(pool, shape, tokens, r, run.model.config.patch_size)
        loss, share, _ = plain.tokens(run.slow, p, torch.float32)
        row[f"dev_{shape.name}"] = (loss.sum() / share.sum() / len(LEVELS)).item()
    return row


def summary(rows):
    """Mean loss and norm of steps (n, 2), and how many had gradients that are not finite: those move no
    weight, and a shape that loses all of its steps is forgotten."""
    finite = rows.isfinite().all(-1)
    loss, norm = rows[finite].mean(0).tolist()
    return loss, norm, int((~finite).sum())


def train(recipe, out, device="cpu", steps=None, seconds=None, total=None, resume=None,
          compiled=False, workers=0, save_every=60.0, weights=None, light=False, profile=0,
          plain=False, graphs=False):
    """Returns the averaged model; writes the state, a checkpoint and curve.csv to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    team = Team(device)
    if device == "cuda":  # what is recorded must not touch the default stream
        torch.cuda.set_stream(torch.cuda.Stream())
    run = Run(recipe, device, compiled, team)
    chunks = run.load(resume).get("chunks", 0) if resume else 0
    if weights and not resume:
        run.begin_from(weights)
    if team.first and resume and (resume / "curve.csv").exists() and resume != out:
        (out / "curve.csv").write_text((resume / "curve.csv").read_text())
    if device == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)  # builds a plan for every shape
    pool, judged = pools(recipe, device, chunks, workers, team)
    generator = torch.Generator(device)
    generator.manual_seed(recipe["seed"] + run.step + team.rank * APART)
    r = Random(generator, torch.device(device))
    tokens = recipe["tokens_per_step"] // LEAST_TOKENS * LEAST_TOKENS
    if workers:
        pool.begin_on_device(recipe["device_points"])
        pool.wait()
    while not workers and not pool.ready():
        pool.fill_here()
    if workers:
        print(f"series after {time.monotonic() - began:.1f} s", flush=True)
    if compiled:
        if device == "cuda" and not plain:
            print(f"attention: {choose_attention(run.losses.parts, run.model.config, tokens)}", flush=True)
        warm_up(run, lambda s: draw(pool, s, tokens, r))
        print(f"compiled after {time.monotonic() - began:.1f} s", flush=True)
    if graphs:
        made = captured_steps(run, pool, r, tokens)
        run.captured = made if team.all(made) else None
        print(f"recorded after {time.monotonic() - began:.1f} s: {'graphs' if run.captured else 'plain steps'}", flush=True)
    feed = Feed(pool, r, recipe, run.model.config.patch_size)
    if profile:
        feed.order.manual_seed(0)
        try:
            (out / "profile.txt").write_text(profiled(run, feed, profile, device))
        except Exception as e:  # whatever the profiler throws: the run matters more
            print(f"not profiled: {e!r}"[:1000], flush=True)
        print(f"profiled after {time.monotonic() - began:.1f} s", flush=True)
    clock = Clock(run, steps, seconds, total, began)
    said = saved = time.monotonic()
    recent, last_step, last_chunks, watch = [], run.step, 0, True
    info = lambda: {"chunks": chunks + pool.chunks}  # noqa: E731
    while not clock.over():
        if workers:
            pool.fill_on_device(recipe["device_share"])
        else:
            while pool.chunks < run.step // recipe["reuse"]:
                pool.fill_here()
        feed.order.manual_seed(recipe["seed"] * 10**6 + run.step)
        prepared = feed.next()
        rate = recipe.get("peak", 1.0) * schedule(clock.progress(), recipe["warmup"], recipe["decay"])
        watch = run.captured and (watch or run.step == 20)
        expected = run.loss_of(prepared)[0] if watch else None
        if watch:
            team.mean_(expected)
        recent.append(torch.stack(run.train_on(prepared, rate)))
        if watch:
            run.trust(expected, recent[-1][0])
            watch = False
        if run.step % 32 == 0 and device != "cpu":
            torch.cuda.synchronize()  # the clock sees work that is done
        if recipe.get("hold") and run.step % recipe["hold"] == 0:
            centre.hold(run, prepared)
        if run.step % TOGETHER == 0:
            team.spread(run.everything())
        clock.tick()
        if not team.first:
            recent = []
            continue
        now = time.monotonic()
        if now - said > recipe["report_seconds"] or clock.over() or run.step == last_step + 1 == 1:
            loss, norm, lost = summary(torch.stack(recent))
            now = time.monotonic()
            row = {"step": run.step, "seconds": round(run.elapsed, 1), "rate": round(rate, 4),
                   "train": loss / len(LEVELS), "norm": norm, "lost": lost,
                   "tokens_per_s": (run.step - last_step) * tokens / max(1e-9, now - said),
                   "points_per_s": (pool.points - last_chunks) / max(1e-9, now - said)}  # fmt: skip
            row.update(development_loss(run, judged, Random(torch.Generator(device), r.device), min(tokens, 30720)))
            append_csv(out / "curve.csv", row)
            print(" ".join(f"{k} {v:.5g}" for k, v in row.items()), flush=True)
            recent, said, last_step, last_chunks = [], time.monotonic(), run.step, pool.points
            watch = team.size == 1  # several look together, at the beginning
        if now - saved > save_every:
            run.save(out, info(), light)
            saved = time.monotonic()
    clock.tick()
    if team.first:
        run.save(out, info(), light)
    pool.stop()
    team.leave()
    return run.slow


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recipe", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, help="so many in all, the same weights every time")
    parser.add_argument("--seconds", type=float, help="stop after so many; the start counts")
    parser.add_argument("--total", type=float, help="seconds of all parts of the run together")
    parser.add_argument("--resume", type=pathlib.Path, help="folder of an earlier part")
    parser.add_argument("--weights", type=pathlib.Path, help="checkpoint to begin from")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--workers", type=int, default=0, help="processes that make series")
    parser.add_argument("--light", action="store_true", help="keep no state to go on from")
    parser.add_argument("--plain", action="store_true", help="attention without a choice by the clock")
    parser.add_argument("--graphs", action="store_true", help="steps as CUDA graphs, where they prove right")
    parser.add_argument("--profile", type=int, default=0, help="steps to profile before the run")
    parser.add_argument("--save-every", type=float, default=60, help="seconds")
    args = parser.parse_args()
    if (args.steps is None) == (args.seconds is None):
        parser.error("give --steps or --seconds")
    torch.set_float32_matmul_precision("high")
    recipe = json.loads(args.recipe.read_text())
    train(recipe, args.out, args.device, args.steps, args.seconds, args.total or args.seconds,
          args.resume, args.compile, args.workers, args.save_every, args.weights,
          args.light, args.profile, args.plain, args.graphs)


if __name__ == "__main__":
    main()
