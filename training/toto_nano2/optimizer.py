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

    def parameters(self):
        return [p for group in self.groups.values() for p in group]

    @torch.no_grad()
    def step(self, flat, lr, amp: bool):
        """`flat`: the gradients of `parameters()` end to end; `lr`: a tensor on their device."""
        sizes = [m.numel() for m in self.momentum.values()]
        for ((rows, columns), group), part in zip(self.groups.items(), flat.split(sizes)):
            m = self.momentum[rows, columns]
            g = part.view(m.shape)
            m.lerp_(g, 1 - MOMENTUM)
            g = g.lerp(m, MOMENTUM)
            # The effective matrix is W / sqrt(columns): so is its update.
            size = max(1, rows / columns) ** 0.5 * columns**0.5
            update = self.orthogonalised(g.bfloat16() if amp else g).float() * (lr * -size)
            parts = list(update.flatten(0, 1).split([p.shape[0] for p in group]))
            torch._foreach_mul_(group, 1 - lr * self.weight_decay)
            torch._foreach_add_(group, parts)

    def state(self):
        return {f"{r}x{c}": m for (r, c), m in self.momentum.items()}

    def load(self, state):
        for (r, c), m in self.momentum.items():
            m.copy_(state[f"{r}x{c}"])


class Adam:
    """`named`: (name, parameter); the head's last matrices, divided by their whole fan-in, take
    HEAD times the steps of the others. Everything lies end to end; the count of steps is a tensor,
    so that a step is the same kernels every time."""

    HEAD = 2.5

    def __init__(self, named, betas=(0.9, 0.95)):
        named = list(named)
        self.params, self.betas = [p for _, p in named], betas
        size = [self.HEAD if n.startswith("head.") else 1.0 for n, _ in named]
        self.size = torch.cat([torch.full_like(p.detach().flatten(), s) for s, p in zip(size, self.params)])
        self.first, self.second = torch.zeros_like(self.size), torch.zeros_like(self.size)
        self.steps = torch.zeros((), dtype=torch.float64, device=self.size.device)

    @property
    def count(self):
        return int(self.steps.item())

    def apart(self, flat):
        """Views of a flat tensor, of the shapes of the parameters."""
        parts = flat.split([p.numel() for p in self.params])
        return [part.view(p.shape) for part, p in zip(parts, self.params)]

    @torch.no_grad()
    def step(self, flat, lr):
        """`flat`: the gradients end to end; `lr`: a tensor on their device."""
        self.steps += 1
        a, b = self.betas
        self.first.lerp_(flat, 1 - a)
        self.second.mul_(b).addcmul_(flat, flat, value=1 - b)
        root = self.second.sqrt() / (1 - b**self.steps).sqrt().float() + 1e-10
        update = self.first / root * self.size * (-lr / (1 - a**self.steps).float())
        torch._foreach_add_(self.params, self.apart(update))

    def state(self):
        pairs = zip(self.apart(self.first), self.apart(self.second))
        return {f"{k}{i}": t for i, ab in enumerate(pairs) for k, t in zip("mv", ab)}

    def load(self, state, count):
        self.steps.fill_(count)
        for i, (a, b) in enumerate(zip(self.apart(self.first), self.apart(self.second))):
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
