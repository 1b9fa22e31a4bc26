# SPDX-License-Identifier: Apache-2.0
"""Groups of variates from a random causal graph: each follows those before it, later and bent."""

import torch

from toto_nano.noise import unit


def respond(draw, x, lag, memory):
    """x (n, t) as its effect: `lag` (n, 1) steps later, smeared by an exponential memory."""
    t = x.shape[-1]
    fade = torch.exp(-draw.steps(t) / memory)
    fade = fade / fade.sum(-1, keepdim=True)
    smeared = torch.fft.irfft(torch.fft.rfft(x, 2 * t) * torch.fft.rfft(fade, 2 * t), 2 * t)[:, :t]
    return smeared.gather(1, (torch.arange(t, device=x.device)[None] - lag).clamp(min=0))


def bent(draw, x):
    """Some effects are one-sided, saturate, or begin at a threshold."""
    kind = draw.pick(len(x), [4, 1, 1, 1])[:, None]
    at = draw.normal(len(x)) * 0.7
    curves = (x, torch.relu(x - at), torch.tanh(2 * (x - at)), (x > at).float())
    return torch.where(kind == 0, curves[0], torch.where(kind == 1, curves[1], torch.where(kind == 2, curves[2], curves[3])))


def caused(draw, b, v, t, of):
    """(b, v, t): `of` makes what each has of its own; edges run from earlier to later nodes, and the
    nodes are shuffled at the end."""
    own = unit(of(draw, b * v, t)).view(b, v, t)
    nodes = [own[:, 0]]
    for k in range(1, v):
        y = own[:, k] * draw.log_uniform(b, 0.05, 1.5)
        for before in nodes:
            lag = draw.log_uniform(b, 1, 200).floor() * draw.chance(b, 0.75)
            effect = unit(bent(draw, unit(respond(draw, before, lag.long(), draw.log_uniform(b, 0.3, 60)))))
            y = y + effect * draw.normal(b) * draw.chance(b, 0.6)
        nodes.append(unit(y))
    order = draw.uniform(b, 0, 1, v).argsort(-1)
    return torch.stack(nodes, 1).gather(1, order[..., None].expand(b, v, t))
