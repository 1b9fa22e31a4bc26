# SPDX-License-Identifier: Apache-2.0
"""Trains a model in the format of Toto 2.0 on synthetic series.

    training/train2 training/recipes/nano2.json --out RUN --steps 2000
    training/train2 training/recipes/nano2.json --out RUN --seconds 560 --total 1120
    training/train2 training/recipes/nano2-b.json --weights models/toto-nano-2 --out RUN --seconds 500
    training/train2 training/recipes/nano2-d.json --weights runs/narrow --out RUN --seconds 500 --compile --graphs
    torchrun --nproc-per-node 4 training/train2 training/recipes/mini2.json --out RUN --seconds 560 --compile --graphs

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

from . import captured, optimizer, tensors
from .batches import LEAST_TOKENS, SHAPES, Random, draw
from .model import TAUS, Config, Parts, Toto2, bias_of, fused, read
from .pool import Pool
from .team import TOGETHER, Team

LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
BAND = 1.08  # loss over the nine levels of normal noise whose outer deciles lie one apart
FADES = 8  # patches over which the size of noise is remembered
NEAR = (1.4, 12), (1.0, 8), (0.7, 12)  # weights of the steps of a patch, where rows are short
LARGEST_FILE = 15_000_000  # bytes of one file of a state
AGREE = 16  # steps between two looks at the clock of the first process
APART = 5 * 10**7  # chunks of series of one process before those of the next


def read_and_judge(x, target, counts, level, eps, dtype, *weights):
    """Pinball loss in arcsinh space summed over the nine levels, mean over a patch: (T,); and how far
    the outer levels lie apart, without a gradient.

    x (T, D); target and counts (T, P); level (9,).
    """
    raw = read(x, eps, dtype, *weights).unflatten(-1, (-1, len(LEVELS)))
    off = target[..., None] - raw
    pinball = torch.maximum(level * off, (level - 1) * off).sum(-1)
    band = (raw[..., -1] - raw[..., 0]).detach().mean(-1)
    return (pinball * counts).sum(-1) / counts.shape[-1], band


def nearness(patch, device):
    return torch.cat([torch.full((count,), weight, device=device) for weight, count in NEAR])[:patch]


def pad_last(x):
    """The last token of a row has nothing to predict."""
    return torch.nn.functional.pad(x, (0, 0, 0, 1)).flatten(0, 2)


class Losses:
    def __init__(self, compiled):
        self.parts = Parts(compiled)
        self.judge = torch.compile(read_and_judge, dynamic=False) if compiled else read_and_judge
        self.level = None

    def tokens(self, model, p, dtype):
        """Loss (B V, N) of every token, the share of its patch that counts and the width of bands that
        it could know of."""
        x = model.stream(p.inputs, p.time_mask, p.variate_mask, dtype, self.parts)
        counts = pad_last(p.counts).to(torch.float32)
        if p.inputs.shape[2] <= 8:  # figures that are forecast for months or quarters, not for days
            counts = counts * nearness(counts.shape[-1], counts.device)
        if self.level is None:
            self.level = torch.tensor(LEVELS, device=x.device)
        loss, band = self.judge(
            x, pad_last(p.target), counts, self.level, model.config.norm_eps, dtype, *model.head.weights()
        )
        n = p.inputs.shape[2]
        seen = (p.inputs[..., counts.shape[-1] :] == 0).any(-1).view(-1, n)
        return loss.view(-1, n), counts.mean(-1).view(-1, n), remembered(band.view(-1, n), seen)


def remembered(band, seen):
    """(rows, N): the mean of the bands up to each token, of patches that were seen; it fades."""
    age = torch.arange(band.shape[-1], device=band.device)
    age = age[:, None] - age
    keep = torch.where(age >= 0, torch.exp(-age / FADES), 0.0)
    seen = seen.to(band.dtype)
    amount = seen @ keep.mT
    mean = (seen * band.clamp(0, 5)) @ keep.mT / amount.clamp(min=1e-12)
    return torch.where(amount > 1e-9, mean, band.clamp(0, 5))


def weighted(loss, share, evenness, band):
    """Mean over tokens. Quiet series count for more than their small errors would, as they do in a
    geometric mean over series: a token is divided, to the power `evenness`, by the loss that its band
    lets expect. The band comes from what lies before the forecast. Weights by what came after would
    favour rows that happened to stay calm, and make bands too narrow."""
    weight = (BAND * band + 0.02) ** -evenness
    typical = (weight * share).sum() / share.sum().clamp(min=1)
    weight = (weight / typical).clamp(0.1, 10)
    return (loss * weight).sum() / share.sum().clamp(min=1)


def schedule(progress, warmup, decay):
    """Share of the learning rate: warm-up, constant, linear to zero over the last `decay`."""
    return max(0.0, min(1.0, progress / warmup + 0.01, (1 - progress) / decay))


class Run:
    def __init__(self, recipe, device, compiled=False, team=None):
        self.recipe, self.device, self.team = recipe, device, team or Team(device)
        torch.manual_seed(recipe["seed"])
        self.model = Toto2(Config(**recipe["model"])).to(device)
        self.slow = copy.deepcopy(self.model).requires_grad_(False)
        hidden, rest = optimizer.split(self.model)
        self.muon = optimizer.Muon(hidden, recipe["weight_decay"], compiled)
        self.adam = optimizer.Adam(rest)
        self.amp = recipe["bfloat16"]
        self.losses = Losses(compiled)
        self.step, self.elapsed = 0, 0.0
        self.usual = torch.zeros((), device=device)  # norm, once there is one
        self.rate = torch.zeros((), device=device)
        params = self.muon.parameters() + self.adam.params
        self.sent = torch.zeros(sum(p.numel() for p in params) + 1, device=device)  # gradients and loss
        self.captured = None

    def everything(self):
        """All that a step changes."""
        parts = [*self.model.parameters(), *self.slow.parameters(), *self.muon.momentum.values()]
        return [*parts, self.adam.first, self.adam.second, self.adam.steps, self.usual]

    def train_on(self, prepared, rate):
        self.rate.fill_(rate)
        self.step += 1
        return self.captured.step(prepared) if self.captured else self.whole_step(prepared)

    def trust(self, expected, found):
        """Plain steps from now on, where a graph's loss is not what the weights give."""
        off = abs(found.item() / max(expected.item(), 1e-9) - 1)
        if not off < captured.CLOSE:
            print(f"step {self.step}: the graph's loss is off by {off:.3g}: plain steps", flush=True)
            self.captured = None

    def loss_of(self, prepared):
        """Mean loss of a batch and what is trained on."""
        dtype = torch.bfloat16 if self.amp else torch.float32
        loss, share, band = self.losses.tokens(self.model, prepared, dtype)
        mean = loss.detach().sum() / share.sum().clamp(min=1)
        return mean, weighted(loss, share, self.recipe["evenness"], band)

    def whole_step(self, prepared):
        """Everything on the device, the same kernels whatever the numbers: see captured.py."""
        self.gradients(prepared)
        self.team.mean_(self.sent)
        return self.update()

    def gradients(self, prepared):
        """The gradients of a batch, end to end, and its loss, into `sent`."""
        mean, total = self.loss_of(prepared)
        total.backward()
        params = self.muon.parameters() + self.adam.params
        with torch.no_grad():  # a batch of single variates leaves out what joins them
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in params]
            torch.cat([*(g.flatten() for g in grads), mean.view(1)], out=self.sent)
        self.model.zero_grad(set_to_none=True)

    def update(self):
        """A step along what is in `sent`. Returns loss and norm."""
        r = self.recipe
        with torch.no_grad():
            flat, mean = self.sent[:-1], self.sent[-1].clone()
            norm = torch.linalg.vector_norm(flat)
            # Clipped at a multiple of what is usual: in unit scale the head's factor makes norms small.
            usual = torch.where(self.usual > 0, self.usual, norm)
            factor = (r["clip"] * usual / norm).clamp(max=1).nan_to_num(0, 0, 0)
            finite = norm.isfinite()  # a step that is lost leaves weights and norm as they are
            rate = torch.where(finite, self.rate, 0.0)
            self.usual.copy_(torch.where(finite, usual.lerp(norm * factor, 0.02).nan_to_num(0, 0, 0), self.usual))
            flat = (flat * factor).nan_to_num(0, 0, 0)
            hidden, rest = flat.split([sum(m.numel() for m in self.muon.momentum.values()), self.adam.size.numel()])
            self.adam.step(rest, r["adam_lr"] * rate)
            self.muon.step(hidden, r["muon_lr"] * rate, self.amp)
            steps = self.adam.steps
            keep = (steps / (steps + 10)).clamp(max=r["ema"])
            slow, now = list(self.slow.parameters()), list(self.model.parameters())
            change = torch._foreach_sub(now, slow)
            torch._foreach_mul_(change, (1 - keep).float())
            torch._foreach_add_(slow, change)
        return mean, norm

    def save(self, folder, info, light=False):
        """Files of less than LARGEST_FILE bytes each; the averaged model also as a checkpoint.
        `light`: no state to go on from, but the last weights in last.safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        kept = torch.bfloat16 if self.recipe["bfloat16"] else torch.float32
        tensors.save_checkpoint(folder, self.slow.config, self.slow.state_dict(), kept)
        if light:
            tensors.save_weights(folder / "last.safetensors", self.model.state_dict(), kept)
            return
        state = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        state |= {f"muon.{k}": v for k, v in self.muon.state().items()}
        state |= {f"adam.{k}": v for k, v in self.adam.state().items()}
        # A flat copy of the run: rounded to bfloat16 once per interruption where a run uses it.
        parts, size = [{}], 0
        for name, t in state.items():
            t = t.to(torch.float32 if name.startswith("adam.v") or name.endswith(TAUS) else kept)
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
        taus = {k: t for k, t in self.model.state_dict().items() if k.endswith(TAUS)}  # older states lack them
        self.model.load_state_dict(taus | {k: t.float() for k, t in part("model.").items()})
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
        loss, share, _ = plain.tokens(run.slow, p, torch.float32)
        row[f"dev_{shape.name}"] = (loss.sum() / share.sum() / len(LEVELS)).item()
    return row


class Clock:
    """How far a run is: by its steps, or by the seconds of all its parts. Several processes go by the
    first one's clock, and look at it every AGREE steps."""

    def __init__(self, run, steps, seconds, total, started):
        self.run, self.steps, self.seconds, self.total = run, steps, seconds, total
        self.started, self.before = started, run.elapsed
        self.every = AGREE if run.team.size > 1 else 1

    def tick(self):
        if self.run.step % self.every == 0:
            elapsed = self.before + time.monotonic() - self.started
            self.run.elapsed = self.run.team.of_first([elapsed])[0]

    def progress(self):
        return self.run.step / self.steps if self.steps else self.run.elapsed / self.total

    def over(self):
        if self.steps:
            return self.run.step >= self.steps
        return self.run.elapsed - self.before >= self.seconds or self.run.elapsed >= self.total


def pools(recipe, device, first_chunk, workers, team):
    small = recipe["pool_points"] < 1e8
    points = recipe["pool_points"]
    chunk = 65536 if small else 655360
    training = Pool(recipe["seed"] * 10**9 + team.rank * APART + first_chunk, points, device, chunk)
    judged = Pool(10**15, 8e5 if small else 2e7, device, chunk)
    if workers:
        training.start(workers)
    while team.first and not judged.ready():
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


def summary(rows):
    """Mean loss and norm of steps (n, 2), and how many had gradients that are not finite: those move no
    weight, and a shape that loses all of its steps is forgotten."""
    finite = rows.isfinite().all(-1)
    loss, norm = rows[finite].mean(0).tolist()
    return loss, norm, int((~finite).sum())


def finish(device):
    if device == "cuda":
        torch.cuda.synchronize()


def choose_attention(parts, config, tokens, device="cuda"):
    """The faster of two ways for each length of sequence, by the clock; what errs is left out. cuDNN's
    kernels are not among them: their gradients were sometimes not finite."""
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
        ways = (fused, parts.written_out) if bias.shape[-1] <= 64 else (fused,)
        for way in ways:  # the second needs compiling, which pays for short sequences at most
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
        said[bias.shape[-1]] = {"fused" if w is fused else "written out": round(1e3 * s, 3) for w, s in times.items()}
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


def captured_steps(run, pool, r, tokens):
    """Graphs of the steps of every shape, or None; the pool waits while one is recorded."""
    def record(*what):
        with pool.busy:
            return captured.recorded(*what)

    batches = (draw(pool, s, tokens, r, run.model.config.patch_size) for s in SHAPES)
    return captured.Captured.make(run, batches, lambda text: print(text, flush=True), record)


def warm_up(run, batch):
    """Compiles for every shape; goes on without where that fails."""
    try:
        for shape in SHAPES:
            run.loss_of(batch(shape))[1].backward()
    except Exception as e:  # whatever the compiler throws
        print(f"not compiled: {e!r}"[:2000], flush=True)
        run.losses = Losses(False)
    run.model.zero_grad(set_to_none=True)


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
