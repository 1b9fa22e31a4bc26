# SPDX-License-Identifier: Apache-2.0
"""Trains a model in the format of Toto 2.0 on synthetic series.

    training/train2 training/recipes/nano2.json --out RUN --steps 2000
    training/train2 training/recipes/nano2.json --out RUN --seconds 560 --total 1120
    training/train2 training/recipes/nano2-b.json --weights models/toto-nano-2 --out RUN --seconds 500

With --steps the learning rate follows the step and the same recipe gives the same weights. With
--seconds it follows the clock: a run stops by itself, and one that is resumed goes on where the
schedule of --total seconds stood.
"""

import argparse
import copy
import json
import pathlib
import time

import torch

from toto_nano.train import append_csv

from . import optimizer, tensors
from .batches import LEAST_TOKENS, SHAPES, Random, draw
from .model import Config, Parts, Toto2, bias_of, fused, read
from .pool import Pool

LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
STEP = 2.5  # loss over the nine levels of noise whose mean step is one
NEAR = (1.4, 12), (1.0, 8), (0.7, 12)  # weights of the steps of a patch, where rows are short
LARGEST_FILE = 15_000_000  # bytes of one file of a state


def read_and_judge(x, target, counts, eps, dtype, *weights):
    """Pinball loss in arcsinh space summed over the nine levels, mean over a patch: (T,).

    x (T, D); target and counts (T, P).
    """
    raw = read(x, eps, dtype, *weights).unflatten(-1, (-1, len(LEVELS)))
    off = target[..., None] - raw
    level = torch.tensor(LEVELS, device=x.device)
    pinball = torch.maximum(level * off, (level - 1) * off).sum(-1)
    return (pinball * counts).sum(-1) / counts.shape[-1]


def nearness(patch, device):
    return torch.cat([torch.full((count,), weight, device=device) for weight, count in NEAR])[:patch]


def pad_last(x):
    """The last token of a row has nothing to predict."""
    return torch.nn.functional.pad(x, (0, 0, 0, 1)).flatten(0, 2)


class Losses:
    def __init__(self, compiled):
        self.parts = Parts(compiled)
        self.judge = torch.compile(read_and_judge, dynamic=False) if compiled else read_and_judge

    def tokens(self, model, p, dtype):
        """Loss (B V, N) of every token and the share of its patch that counts."""
        x = model.stream(p.inputs, p.time_mask, p.variate_mask, dtype, self.parts)
        counts = pad_last(p.counts).to(torch.float32)
        if p.inputs.shape[2] <= 8:  # figures that are forecast for months or quarters, not for days
            counts = counts * nearness(counts.shape[-1], counts.device)
        loss = self.judge(x, pad_last(p.target), counts, model.config.norm_eps, dtype, *model.head.weights())
        n = p.inputs.shape[2]
        return loss.view(-1, n), counts.mean(-1).view(-1, n)


def weighted(loss, share, evenness, rough):
    """Mean over tokens. Quiet series count for more than their small errors would, as they do in a
    geometric mean over series: a row is divided, to the power `evenness`, by its own mean loss, or
    where it is too short to tell by the size of its steps, `rough`."""
    amount = share.sum(-1)
    mean = (loss.detach().sum(-1) / amount.clamp(min=0.1)).clamp(max=5)
    short = torch.maximum(STEP * rough.clamp(max=2), 0.2 * mean) + 0.01
    weight = torch.where(amount >= 10, mean + 0.02, short) ** -evenness
    typical = (weight * amount).sum() / amount.sum().clamp(min=1)
    weight = (weight / typical).clamp(0.1, 8)
    return (loss * weight[:, None]).sum() / share.sum().clamp(min=1)


def schedule(progress, warmup, decay):
    """Share of the learning rate: warm-up, constant, linear to zero over the last `decay`."""
    return max(0.0, min(1.0, progress / warmup + 0.01, (1 - progress) / decay))


class Run:
    def __init__(self, recipe, device, compiled=False):
        self.recipe, self.device = recipe, device
        torch.manual_seed(recipe["seed"])
        self.model = Toto2(Config(**recipe["model"])).to(device)
        self.slow = copy.deepcopy(self.model).requires_grad_(False)
        hidden, rest = optimizer.split(self.model)
        self.muon = optimizer.Muon(hidden, recipe["weight_decay"], compiled)
        self.adam = optimizer.Adam(rest)
        self.amp = recipe["bfloat16"]
        self.losses = Losses(compiled)
        self.step, self.elapsed, self.usual = 0, 0.0, None

    def train_on(self, prepared, rate):
        r = self.recipe
        dtype = torch.bfloat16 if self.amp else torch.float32
        loss, share = self.losses.tokens(self.model, prepared, dtype)
        total = weighted(loss, share, r["evenness"], prepared.rough.flatten())
        total.backward()
        params = list(self.model.parameters())
        for p in params:  # a batch of single variates leaves out what joins them
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        grads = [p.grad for p in params]
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
        # Clipped at a multiple of what is usual: in unit scale the head's factor makes norms small.
        usual = norm if self.usual is None else self.usual
        factor = (r["clip"] * usual / norm).clamp(max=1).nan_to_num(0, 0, 0)
        self.usual = usual.lerp((norm * factor).nan_to_num(0, 0, 0), 0.02)
        torch._foreach_mul_(grads, factor)
        for g in grads:
            g.nan_to_num_(0, 0, 0)
        self.adam.step(r["adam_lr"] * rate)
        self.muon.step(r["muon_lr"] * rate, self.amp)
        self.model.zero_grad(set_to_none=True)
        self.step += 1
        keep = min(r["ema"], self.step / (self.step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.slow.parameters()), params, 1 - keep)
        return (loss.detach().sum() / share.sum().clamp(min=1)), norm

    def save(self, folder, info, light=False):
        """Files of less than LARGEST_FILE bytes each; the averaged model also as a checkpoint.
        `light`: no state to go on from, but the last weights in last.safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        kept = torch.bfloat16 if self.recipe["bfloat16"] else torch.float32
        tensors.save_checkpoint(folder, self.slow.config, self.slow.state_dict(), kept)
        if light:
            tensors.save_weights(folder / "last.safetensors", self.slow.config, self.model.state_dict(), kept)
            return
        state = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        state |= {f"muon.{k}": v for k, v in self.muon.state().items()}
        state |= {f"adam.{k}": v for k, v in self.adam.state().items()}
        # A flat copy of the run: rounded to bfloat16 once per interruption where a run uses it.
        parts, size = [{}], 0
        for name, t in state.items():
            t = t.to(torch.float32 if name.startswith("adam.v") else kept)
            size += t.numel() * t.element_size()
            if size > LARGEST_FILE:
                parts.append({})
                size = t.numel() * t.element_size()
            parts[-1][name] = t
        for i, part in enumerate(parts):
            tensors.write(folder / f"state{i}.safetensors", part)
        info = {"step": self.step, "elapsed": self.elapsed, "adam_count": self.adam.count, **info}
        (folder / "state.json").write_text(json.dumps(info))

    def begin_from(self, folder):
        """The weights of a checkpoint, everything else as new."""
        state = tensors.load_checkpoint(folder).state_dict()
        self.model.load_state_dict(state)
        self.slow.load_state_dict(state)

    def load(self, folder):
        info = json.loads((folder / "state.json").read_text())
        state = {}
        for path in sorted(folder.glob("state*.safetensors")):
            state |= tensors.read(path)
        part = lambda k: {n.removeprefix(k): t for n, t in state.items() if n.startswith(k)}  # noqa: E731
        self.model.load_state_dict({k: t.float() for k, t in part("model.").items()})
        self.muon.load(part("muon."))
        self.adam.load(part("adam."), info["adam_count"])
        slow = tensors.load_checkpoint(folder)
        self.slow.load_state_dict(slow.state_dict())
        self.step, self.elapsed = info["step"], info["elapsed"]
        return info


@torch.no_grad()
def development_loss(run, pool, r, tokens):
    """Mean loss per point and level by shape, over series that training never sees."""
    r.generator.manual_seed(1)
    plain = Losses(False)
    row = {}
    for shape in SHAPES:
        p = draw(pool, shape, tokens, r, run.model.config.patch_size)
        loss, share = plain.tokens(run.slow, p, torch.float32)
        row[f"dev_{shape.name}"] = (loss.sum() / share.sum() / len(LEVELS)).item()
    return row


class Clock:
    """How far a run is: by its steps, or by the seconds of all its parts."""

    def __init__(self, run, steps, seconds, total, started):
        self.run, self.steps, self.seconds, self.total = run, steps, seconds, total
        self.started, self.before = started, run.elapsed

    def tick(self):
        self.run.elapsed = self.before + time.monotonic() - self.started

    def progress(self):
        return self.run.step / self.steps if self.steps else self.run.elapsed / self.total

    def over(self):
        if self.steps:
            return self.run.step >= self.steps
        return time.monotonic() - self.started >= self.seconds or self.run.elapsed >= self.total


def pools(recipe, device, first_chunk, workers):
    small = recipe["pool_points"] < 1e8
    points = recipe["pool_points"]
    chunk = 65536 if small else 655360
    training = Pool(recipe["seed"] * 10**9 + first_chunk, points, device, chunk)
    judged = Pool(10**15, 8e5 if small else 2e7, device, chunk)
    if workers:
        training.start(workers)
    while not judged.ready():
        judged.fill_here()
    return training, judged


class Feed:
    """Batches for the steps; those of several steps of a shape are drawn at once."""

    def __init__(self, pool, r, recipe, patch):
        self.pool, self.r, self.patch, self.order = pool, r, patch, torch.Generator()
        self.tokens = recipe["tokens_per_step"] // LEAST_TOKENS * LEAST_TOKENS
        self.together = recipe.get("together", 1)
        self.share = torch.tensor([s.weight for s in SHAPES])
        self.waiting = {s.name: [] for s in SHAPES}

    def next(self):
        shape = SHAPES[int(torch.multinomial(self.share, 1, generator=self.order))]
        waiting = self.waiting[shape.name]
        if not waiting:
            self.r.shift = int(torch.randint(32, (1,), generator=self.order)) % self.patch
            self.r.rate = int(torch.randint(2, 21, (1,), generator=self.order))
            many = draw(self.pool, shape, self.tokens * self.together, self.r, self.patch)
            waiting += many.parts(self.together)
        return waiting.pop()


def finish(device):
    if device == "cuda":
        torch.cuda.synchronize()


def cudnn(q, k, v, mask):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        return fused(q, k, v, mask)


def choose_attention(parts, config, tokens, device="cuda"):
    """The fastest of three ways for each length of sequence, by the clock; what errs is left out."""
    said = {}
    for shape in SHAPES:
        n = shape.patches
        rows = tokens // n
        mask = torch.ones(rows, 1, n, n, dtype=torch.bool, device=device).tril()
        bias = bias_of(mask, torch.bfloat16)
        if bias.shape[-1] in said:
            continue
        size = (bias.shape[0], bias.shape[-1], config.num_heads, config.head_dim)
        qkv = [torch.randn(size, device=device, dtype=torch.bfloat16).transpose(1, 2).requires_grad_() for _ in range(3)]
        times, first = {}, None
        ways = (fused, cudnn, parts.written_out) if bias.shape[-1] <= 64 else (fused, cudnn)
        for way in ways:  # the last needs compiling, which pays for short sequences at most
            try:
                for i in range(8):
                    if i == 3:
                        finish(device)
                        began = time.monotonic()
                    y = way(*qkv, bias)
                    grads = torch.autograd.grad(y, qkv, y.detach())
                finish(device)
                seconds = (time.monotonic() - began) / 5
                found = torch.cat([t[:64].float().flatten() for t in (y, *grads)])
                first = found if first is None else first
                if (found - first).abs().max() < 0.05 * first.abs().max():
                    times[way] = seconds
            except Exception as e:  # whatever a kernel refuses
                print(f"attention: {e!r}"[:300], flush=True)
        best = min(times, key=times.get)
        parts.attend[bias.shape[-1]] = best
        names = {fused: "fused", cudnn: "cudnn"}
        said[bias.shape[-1]] = {names.get(w, "written out"): round(1e3 * s, 3) for w, s in times.items()}
    return said


def profiled(run, feed, steps, device):
    """Where the time of some steps goes, by kernel. They train nothing: their rate is zero."""
    from torch.profiler import ProfilerActivity, profile

    step = run.step
    kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
    for _ in range(3):
        run.train_on(feed.next(), 0.0)
    with profile(activities=kinds) as found:
        begin = time.monotonic()
        for _ in range(steps):
            run.train_on(feed.next(), 0.0)
        finish(device)
        wall = time.monotonic() - begin
    run.step = step
    key = "self_device_time_total" if device == "cuda" else "self_cpu_time_total"
    table = found.key_averages().table(sort_by=key, row_limit=60, max_name_column_width=90)
    return f"{steps} steps, {1e3 * wall / steps:.2f} ms each\n{table}\n"


def warm_up(run, batch):
    """Compiles for every shape; goes on without where that fails."""
    try:
        for shape in SHAPES:
            loss, _ = run.losses.tokens(run.model, batch(shape), torch.bfloat16)
            loss.sum().backward()
    except Exception as e:  # whatever the compiler throws
        print(f"not compiled: {e!r}"[:2000], flush=True)
        run.losses = Losses(False)
    run.model.zero_grad(set_to_none=True)


def train(recipe, out, device="cpu", steps=None, seconds=None, total=None, resume=None,
          compiled=False, workers=0, save_every=60.0, weights=None, light=False, profile=0,
          plain=False):
    """Returns the averaged model; writes the state, a checkpoint and curve.csv to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    run = Run(recipe, device, compiled)
    chunks = run.load(resume).get("chunks", 0) if resume else 0
    if weights and not resume:
        run.begin_from(weights)
    if resume and (resume / "curve.csv").exists() and resume != out:
        (out / "curve.csv").write_text((resume / "curve.csv").read_text())
    if device == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)  # builds a plan for every shape
    pool, judged = pools(recipe, device, chunks, workers)
    generator = torch.Generator(device)
    generator.manual_seed(recipe["seed"] + run.step)
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
    recent, last_step, last_chunks = [], run.step, 0
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
        recent.append(torch.stack(run.train_on(prepared, rate)))
        if run.step % 32 == 0 and device != "cpu":
            torch.cuda.synchronize()  # the clock sees work that is done
        clock.tick()
        now = time.monotonic()
        if now - said > recipe["report_seconds"] or clock.over() or run.step == last_step + 1 == 1:
            loss, norm = torch.stack(recent).mean(0).tolist()
            now = time.monotonic()
            row = {"step": run.step, "seconds": round(run.elapsed, 1), "rate": round(rate, 4),
                   "train": loss / len(LEVELS), "norm": norm,
                   "tokens_per_s": (run.step - last_step) * tokens / max(1e-9, now - said),
                   "points_per_s": (pool.points - last_chunks) / max(1e-9, now - said)}  # fmt: skip
            row.update(development_loss(run, judged, Random(torch.Generator(device), r.device), min(tokens, 30720)))
            append_csv(out / "curve.csv", row)
            print(" ".join(f"{k} {v:.5g}" for k, v in row.items()), flush=True)
            recent, said, last_step, last_chunks = [], time.monotonic(), run.step, pool.points
        if now - saved > save_every:
            run.save(out, info(), light)
            saved = time.monotonic()
    clock.tick()
    run.save(out, info(), light)
    pool.stop()
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
    parser.add_argument("--profile", type=int, default=0, help="steps to profile before the run")
    parser.add_argument("--save-every", type=float, default=60, help="seconds")
    args = parser.parse_args()
    if (args.steps is None) == (args.seconds is None):
        parser.error("give --steps or --seconds")
    torch.set_float32_matmul_precision("high")
    recipe = json.loads(args.recipe.read_text())
    train(recipe, args.out, args.device, args.steps, args.seconds, args.total or args.seconds,
          args.resume, args.compile, args.workers, args.save_every, args.weights,
          args.light, args.profile, args.plain)


if __name__ == "__main__":
    main()
