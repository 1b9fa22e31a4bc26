# SPDX-License-Identifier: Apache-2.0
"""The pools of a run, and batches for its steps."""

import torch

from .batches import LEAST_TOKENS, SHAPES, draw
from .pool import Pool

APART = 5 * 10**7  # chunks of series of one process before those of the next


def small(recipe):
    return recipe["pool_points"] < 1e8


def chunk_of(recipe):
    return 65536 if small(recipe) else 655360


def training_pool(recipe, device, first_chunk, workers, team):
    """What a process trains on; `workers` processes begin to fill it, or nobody does."""
    seed = recipe["seed"] * 10**9 + team.rank * APART + first_chunk
    pool = Pool(seed, recipe["pool_points"], device, chunk_of(recipe))
    if workers:
        pool.start(workers)
    return pool


def pools(recipe, device, first_chunk, workers, team):
    training = training_pool(recipe, device, first_chunk, workers, team)
    judged = Pool(10**15, 8e5 if small(recipe) else 2e7, device, chunk_of(recipe))
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
