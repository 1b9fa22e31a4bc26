# SPDX-License-Identifier: Apache-2.0
"""The pools of a run, and batches for its steps."""

import torch

from .batches import LEAST_TOKENS, SHAPES, draw
from .pool import Pool

APART = 5 * 10**7  # chunks of series of one process before those of the next


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

    def __init__(self, pool, r, recipe, patch, shapes=SHAPES):
        self.pool, self.r, self.patch, self.order = pool, r, patch, torch.Generator()
        self.tokens = recipe["tokens_per_step"] // LEAST_TOKENS * LEAST_TOKENS
        self.together = recipe.get("together", 1)
        self.shapes = shapes
        self.share = torch.tensor([s.weight for s in shapes])
        self.waiting = {s.name: [] for s in shapes}

    def next(self):
        shape = self.shapes[int(torch.multinomial(self.share, 1, generator=self.order))]
        waiting = self.waiting[shape.name]
        if not waiting:
            self.r.shift = int(torch.randint(32, (1,), generator=self.order)) % self.patch
            self.r.rate = int(torch.randint(2, 21, (1,), generator=self.order))
            many = draw(self.pool, shape, self.tokens * self.together, self.r, self.patch)
            waiting += many.parts(self.together)
        return waiting.pop()
