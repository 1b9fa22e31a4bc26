# SPDX-License-Identifier: Apache-2.0
"""What happens before the first step: compiling, the choice of attention, graphs, a profile."""

import time

import torch

from . import captured
from .batches import SHAPES, draw
from .losses import Losses
from .model import bias_of, fused


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
