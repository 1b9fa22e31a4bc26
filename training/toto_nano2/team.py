# SPDX-License-Identifier: Apache-2.0
"""One run on several GPUs: a process each, which share gradients and the clock.

    torchrun --nproc-per-node 4 training/train2 RECIPE --out RUN --seconds 560 --compile --graphs

Every process draws batches of its own, of the same shapes in the same order; the mean of their
gradients is what each applies to its copy of the weights. So a step is one of the batch of all.
"""

import os

import torch
import torch.distributed as dist

TOGETHER = 512  # steps after which the first process hands out its weights again


class Team:
    """`rank` of `size`; alone where nothing says otherwise."""

    def __init__(self, device="cpu"):
        self.rank = int(os.environ.get("RANK", 0))
        self.size = int(os.environ.get("WORLD_SIZE", 1))
        if self.size == 1:
            return
        if device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        if not dist.is_initialized():
            dist.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo")

    @property
    def first(self):
        return self.rank == 0

    def mean_(self, flat):
        """The mean over the processes, in the place of a tensor."""
        if self.size > 1:
            dist.all_reduce(flat)
            flat /= self.size

    def of_first(self, numbers):
        """What the first process has, as a list of float64."""
        if self.size == 1:
            return numbers
        sent = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(sent, 0)
        return sent.tolist()

    def all(self, what):
        """Whether it holds in every process."""
        if self.size == 1:
            return bool(what)
        held = torch.tensor(float(bool(what)))
        dist.all_reduce(held, dist.ReduceOp.MIN)
        return held.item() > 0

    def spread(self, tensors):
        """The tensors of the first process for all: they should be equal, but nothing makes them."""
        for t in tensors if self.size > 1 else ():
            dist.broadcast(t.detach(), 0)

    def leave(self):
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()
