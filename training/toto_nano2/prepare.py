# SPDX-License-Identifier: Apache-2.0
"""From raw series to what the network reads and what it is judged by.

A batch is (B, V, T) values with NaN where nothing was observed. Spans of whole patches are hidden
as a forecast hides its horizon: inside a span a token sees the observed past and its own span.
"""

import dataclasses

import torch

FLOOR = 1e-6
LARGEST = 10.0  # of a target in arcsinh space


@dataclasses.dataclass
class Prepared:
    inputs: torch.Tensor  # (B,V,N,2P)
    target: torch.Tensor  # (B,V,N-1,P) in arcsinh space of the patch before
    counts: torch.Tensor  # (B,V,N-1,P) bool
    time_mask: torch.Tensor  # (B V,1,N,N)
    variate_mask: torch.Tensor  # (B,N,1,V,V)
    loc: torch.Tensor  # (B,V,N)
    scale: torch.Tensor

    def parts(self, count):
        """As many batches, each of a share of the rows."""
        names = [f.name for f in dataclasses.fields(self)]
        pieces = zip(*(getattr(self, name).chunk(count) for name in names))
        return [Prepared(*piece) for piece in pieces]


def statistics(x, m, patch):
    """Mean and deviation of what was observed up to the end of each patch, (B,V,N) float32, and
    how much that was."""
    m64 = m.double()
    x64 = torch.where(m, x, 0).double()
    n = m64.cumsum(-1)
    mean = (x64 * m64).cumsum(-1) / n.clamp(min=1)
    before = torch.nn.functional.pad(mean[..., :-1], (1, 0))
    spread = (m64 * (x64 - before) * (x64 - mean)).cumsum(-1)
    last = slice(patch - 1, None, patch)
    n = n[..., last]
    scale = (spread[..., last] / (n.clamp(min=1) - 1).clamp(min=1)).clamp(min=0).sqrt()
    return mean[..., last].float(), scale.clamp(min=FLOOR).float(), n


def masks(seen, span):
    """seen (B,V,N): a patch with something observed; span (B,N): 0, or the number of a span."""
    b, v, n = seen.shape
    ours = span[:, None].expand(b, v, n).reshape(b * v, n)
    key = (seen.reshape(b * v, n) & (ours == 0))[:, None, :]
    inside = (ours > 0)[:, None, :] & (ours[:, None, :] == ours[:, :, None])
    causal = torch.ones(n, n, dtype=torch.bool, device=seen.device).tril()
    time = (causal & (key | inside)) | torch.eye(n, dtype=torch.bool, device=seen.device)
    there = (seen | (span > 0)[:, None]).transpose(1, 2)  # (B,N,V)
    variate = there[..., None, :] == there[..., None]
    return time[:, None], variate[:, :, None]


def prepare(x, span, patch, strangers=None) -> Prepared:
    """`strangers` (B,V): variates with different numbers do not see each other."""
    b, v, t = x.shape
    observed = ~x.isnan()
    x = torch.where(observed, x, 0.0)
    m = observed & (span == 0).repeat_interleave(patch, 1)[:, None]
    loc, scale, n = statistics(x, m, patch)
    values, flags = x.unflatten(-1, (-1, patch)), m.unflatten(-1, (-1, patch))
    u = torch.where(flags, torch.asinh((values - loc[..., None]) / scale[..., None]), 0.0)
    inputs = torch.cat((u, (~flags).float()), -1)
    target = torch.asinh((values[:, :, 1:] - loc[:, :, :-1, None]) / scale[:, :, :-1, None])
    flat = (scale[:, :, :-1] <= 2 * FLOOR)[..., None]
    target = target.clamp(-LARGEST, LARGEST)
    target = torch.where(flat, target.clamp(-1, 1), target)
    counts = observed.unflatten(-1, (-1, patch))[:, :, 1:] & (n[:, :, :-1, None] >= 3)
    time, variate = masks(flags.any(-1), span)
    if strangers is not None:
        variate = variate & (strangers[:, :, None] == strangers[:, None])[:, None, None]
    return Prepared(inputs, target, counts, time, variate, loc, scale)
