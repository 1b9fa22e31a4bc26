# SPDX-License-Identifier: Apache-2.0
"""Muon for the hidden matrices, AdamW for what reads, writes and biases; both in unit scale."""

import torch

from toto_nano.optimizer import orthogonalised

MOMENTUM = 0.95
PARTS = {"in_proj.weight": 3, "fc1.weight": 2}  # matrices that are several in one


class Muon:
    """Matrices of one shape are orthogonalised together."""

    def __init__(self, named, weight_decay, compiled=False):
        self.weight_decay, self.groups = weight_decay, {}
        self.orthogonalised = torch.compile(orthogonalised, dynamic=False) if compiled else orthogonalised
        for name, p in named:
            parts = next((k for end, k in PARTS.items() if name.endswith(end)), 1)
            shape = (p.shape[0] // parts, p.shape[1])
            self.groups.setdefault(shape, []).append(p)
        self.momentum = {
            shape: torch.zeros(sum(p.numel() for p in group) // (shape[0] * shape[1]), *shape,
                               device=group[0].device)
            for shape, group in self.groups.items()
        }  # fmt: skip

    @torch.no_grad()
    def step(self, lr: float, amp: bool):
        for (rows, columns), group in self.groups.items():
            g = torch.cat([p.grad for p in group]).view(-1, rows, columns)
            m = self.momentum[rows, columns]
            m.lerp_(g, 1 - MOMENTUM)
            g = g.lerp(m, MOMENTUM)
            # The effective matrix is W / sqrt(columns): so is its update.
            size = lr * max(1, rows / columns) ** 0.5 * columns**0.5
            update = self.orthogonalised(g.bfloat16() if amp else g).float()
            parts = list(update.flatten(0, 1).split([p.shape[0] for p in group]))
            torch._foreach_mul_(group, 1 - lr * self.weight_decay)
            torch._foreach_add_(group, parts, alpha=-size)

    def state(self):
        return {f"{r}x{c}": m for (r, c), m in self.momentum.items()}

    def load(self, state):
        for (r, c), m in self.momentum.items():
            m.copy_(state[f"{r}x{c}"])


class Adam:
    """`named`: (name, parameter); the head's last matrices, divided by their whole fan-in, take
    HEAD times the steps of the others."""

    HEAD = 2.5

    def __init__(self, named, betas=(0.9, 0.95)):
        named = list(named)
        self.params, self.betas, self.count = [p for _, p in named], betas, 0
        self.size = [self.HEAD if n.startswith("head.") else 1.0 for n, _ in named]
        self.first = [torch.zeros_like(p) for p in self.params]
        self.second = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, lr: float):
        self.count += 1
        a, b = self.betas
        grads = [p.grad for p in self.params]
        torch._foreach_lerp_(self.first, grads, 1 - a)
        torch._foreach_mul_(self.second, b)
        torch._foreach_addcmul_(self.second, grads, grads, 1 - b)
        root = torch._foreach_sqrt(self.second)
        torch._foreach_div_(root, (1 - b**self.count) ** 0.5)
        torch._foreach_add_(root, 1e-10)
        sizes = [-lr * size / (1 - a**self.count) for size in self.size]
        torch._foreach_addcdiv_(self.params, self.first, root, sizes)

    def state(self):
        pairs = zip(self.first, self.second)
        return {f"{k}{i}": t for i, ab in enumerate(pairs) for k, t in zip("mv", ab)}

    def load(self, state, count):
        self.count = count
        for i, (a, b) in enumerate(zip(self.first, self.second)):
            a.copy_(state[f"m{i}"])
            b.copy_(state[f"v{i}"])


def split(model):
    """(named matrices for Muon, named parameters for Adam)"""
    def hidden(name):
        inner = name.startswith("layers.") or name.endswith(("patch_proj.linear2.weight",
                                                             "head.linear1.weight"))
        return inner and name.endswith("weight")

    named = list(model.named_parameters())
    return [(n, p) for n, p in named if hidden(n)], [(n, p) for n, p in named if not hidden(n)]
