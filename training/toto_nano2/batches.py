# SPDX-License-Identifier: Apache-2.0
"""What a step trains on: rows from the pool, changed on the device, with gaps and hidden spans."""

import dataclasses
import math

import torch

from . import prepare


@dataclasses.dataclass
class Shape:
    """Rows of `patches` and `variates` of a kind of the pool, for a share of the steps. Spans are
    up to `ahead` patches long and up to `apart` apart; a share of rows has `few` values only."""

    name: str
    kind: str
    patches: int
    variates: int
    weight: float
    ahead: int
    apart: int
    few: float = 0.0


SHAPES = [
    Shape("one", "shortest", 4, 1, 0.11, 3, 2, few=0.45),
    Shape("brief", "brief", 8, 1, 0.25, 2, 6),
    Shape("short", "short", 16, 1, 0.15, 8, 12),
    Shape("middle", "middle", 48, 1, 0.16, 16, 24),
    Shape("long", "long", 160, 1, 0.26, 32, 48),
    Shape("group", "group", 32, 4, 0.07, 12, 20),
]
RESAMPLED = 0.15  # of the rows are blocks of steps of longer series
MOSTLY = 0.1  # of a shape's rows: few values
LEAST_TOKENS = 1920  # steps have a multiple of this many tokens, whatever their shape


class Random:
    """Draws on the device; `shift` is the number of steps by which rows begin late, `rate` how many
    steps of a longer series become one."""

    def __init__(self, generator, device):
        self.generator, self.device, self.shift, self.rate = generator, device, 0, 1

    def uniform(self, *shape):
        return torch.rand(*shape, generator=self.generator, device=self.device)

    def log_uniform(self, low, high, *shape):
        return torch.exp(math.log(low) + (math.log(high) - math.log(low)) * self.uniform(*shape))

    def chance(self, p, *shape):
        return self.uniform(*shape) < p


def spans(r: Random, rows, patches, ahead, apart):
    """(rows, patches): 0 where seen, else the number of the hidden span."""
    count = patches // 2 + 1
    gap = r.log_uniform(1, apart + 1, rows, count).floor()
    length = r.log_uniform(1, ahead + 1, rows, count).floor()
    ends = torch.stack((gap, length), -1).flatten(1).cumsum(-1)
    place = torch.arange(patches, device=r.device, dtype=ends.dtype).expand(rows, patches)
    index = torch.searchsorted(ends, place.contiguous(), right=True)
    return torch.where(index % 2 == 1, index, 0)


def mixed(r: Random, x, other):
    """Some series become the sum of two."""
    def unit(y):
        y = y - y.mean(-1, keepdim=True)
        return y / (y.std(-1, keepdim=True) + 1e-6)

    share = r.log_uniform(0.05, 1, *x.shape[:2], 1)
    return torch.where(r.chance(0.12, *x.shape[:2], 1), unit(x) + share * unit(other), x)


def censored(r: Random, x):
    """Readings that stop at a wall, or come on a coarse grid."""
    shape = (*x.shape[:2], 1)
    spread, mean = x.std(-1, keepdim=True), x.mean(-1, keepdim=True)
    wall = mean + (0.3 + 1.7 * r.uniform(*shape)) * spread
    x = torch.where(r.chance(0.03, *shape), torch.minimum(x, wall), x)
    grid = spread * r.log_uniform(0.03, 1, *shape) + 1e-6
    return torch.where(r.chance(0.06, *shape), torch.round(x / grid) * grid, x)


def forget(r: Random, x, patch):
    """NaN where nothing is observed: before the history begins, in gaps, at random points."""
    b, v, t = x.shape
    step = torch.arange(t, device=r.device)
    begin = (r.uniform(b, 1, 1) * patch).floor() * r.chance(0.75, b, 1, 1)
    late = (r.uniform(b, v, 1) * 0.7 * t).floor() * r.chance(0.06, b, v, 1)
    lost = step < torch.maximum(begin, late)
    rate = r.log_uniform(0.005, 0.5, b, v, 1)
    lost |= r.chance(rate, b, v, t) & r.chance(0.05, b, v, 1)
    if r.device.type != "cpu" or b < 4096:
        gap = r.chance(1 / r.log_uniform(50, 2.0 * t, b, v, 1), b, v, t)
        last = torch.where(gap, step, -(10**6)).cummax(-1).values
        lost |= (step - last < r.log_uniform(1, t / 6, b, v, 1)) & r.chance(0.1, b, v, 1)
    return x.masked_fill(lost, torch.nan)


def cropped(r: Random, x, length):
    """Each series from a step of its own."""
    begin = (r.uniform(len(x), 1, 1) * (x.shape[-1] - length + 1)).long()
    index = begin + torch.arange(length, device=r.device)
    return x.gather(-1, index.expand(-1, x.shape[1], -1))


def resampled(r: Random, x, ring):
    """The first rows become means, or single steps, of blocks of steps of longer series."""
    rows, _, length = x.shape
    rate = min(r.rate, ring.shape[1] // length)
    count = int(RESAMPLED * rows)
    if rate < 2 or not count:
        return x
    fine = cropped(r, ring.sample(count, r.generator), rate * length).unflatten(-1, (length, rate))
    coarse = torch.where(r.chance(0.75, count, 1, 1), fine.mean(-1), fine[..., 0])
    return torch.cat((coarse, x[count:]))


def stuck(r: Random, x, hidden, patch):
    """Some rows repeat a value up to a hidden span: missing values that were filled by the last."""
    rows, _, t = x.shape
    soon = torch.nn.functional.pad((hidden[:, 1:] > 0) & (hidden[:, :-1] == 0), (0, 1))
    soon = soon & r.chance(0.04, rows, 1)
    long = (r.uniform(rows, hidden.shape[1]) * (patch - 1)).long() + 1
    step = torch.arange(t, device=r.device) % patch
    keep = (patch - 1 - long).repeat_interleave(patch, 1)
    over = (step - keep).clamp(min=0) * soon.repeat_interleave(patch, 1)
    index = torch.arange(t, device=r.device) - over
    return x.gather(-1, index[:, None].expand_as(x))


def raised(r: Random, x):
    """A level well above zero, as figures of business have it."""
    rows, v, _ = x.shape
    spread = x.std(-1, keepdim=True) + 1e-6
    above = x - x.amin(-1, keepdim=True) + spread * r.log_uniform(0.1, 40, rows, v, 1)
    above = torch.where(r.chance(0.06, rows, v, 1), -above, above)
    return torch.where(r.chance(0.75, rows, v, 1), above, x)


def one_patch(r: Random, whole, x, hidden, ahead, patch, share):
    """Some histories are shorter than a patch: as the format wants it, the zeros that fill the
    patch count as observed, and all that follows is to be forecast. They are cut from `whole`, the
    others stay `x`."""
    rows, _, t = x.shape
    few = r.chance(share, rows, 1, 1)
    step = torch.arange(t, device=r.device)
    begin = patch - (3 + r.uniform(rows, 1, 1) * (patch - 3)).floor()
    filled = torch.where(step < begin, 0.0, raised(r, whole))
    filled = filled.masked_fill(step >= (1 + ahead) * patch, torch.nan)
    number = torch.arange(hidden.shape[1], device=r.device)
    alone = ((number >= 1) & (number <= ahead)).long()
    return torch.where(few, filled, x), torch.where(few[:, 0], alone, hidden)


def draw(pool, shape: Shape, tokens, r: Random, patch=32, few=None) -> prepare.Prepared:
    """`few`: another share of rows with few values than the shape's."""
    few = shape.few if few is None else few
    rows = tokens // (shape.patches * shape.variates)
    ring = pool.rings[shape.kind]
    x = ring.sample(rows, r.generator)
    length = shape.patches * patch
    if x.shape[-1] > length:
        x = cropped(r, x, length)
    if shape.variates == 1:
        x = resampled(r, x, pool.rings["long"])
        x = mixed(r, x, x.roll(1, 0))
    x = torch.where(r.chance(0.12, rows, shape.variates, 1), -x, x)
    x = censored(r, x)
    if few < MOSTLY:  # the rows begin late: other steps share a patch
        x = torch.nn.functional.pad(x[..., : x.shape[-1] - r.shift], (r.shift, 0), value=torch.nan)
    hidden = spans(r, rows, shape.patches, shape.ahead, shape.apart)
    x = stuck(r, x, hidden, patch)
    whole, x = x, forget(r, x, patch)
    if few >= MOSTLY:
        x, hidden = one_patch(r, whole, x, hidden, shape.ahead, patch, few)
    strangers = None
    if shape.variates > 1:
        alone = torch.arange(shape.variates, device=r.device).expand(rows, -1)
        strangers = torch.where(r.chance(0.2, rows, 1), alone, 0)
    return prepare.prepare(x, hidden, patch, strangers)
