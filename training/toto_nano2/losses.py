# SPDX-License-Identifier: Apache-2.0
"""Pinball losses of tokens, and what each of them counts for."""

import torch

from .model import Parts, read

LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
BAND = 1.08  # loss over the nine levels of normal noise whose outer deciles lie one apart
FADES = 8  # patches over which the size of noise is remembered
NEAR = (1.4, 12), (1.0, 8), (0.7, 12)  # weights of the steps of a patch, where rows are short


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
