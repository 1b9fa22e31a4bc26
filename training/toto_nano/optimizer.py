# SPDX-License-Identifier: Apache-2.0
"""Muon for the matrices inside the layers, AdamW for everything else."""

import torch

MUON_MOMENTUM = 0.95


def orthogonalised(g: torch.Tensor) -> torch.Tensor:
    """The nearest semi-orthogonal matrices of g (n, rows, columns), roughly: five Newton-Schulz
    steps of the quintic that moves every singular value close to one."""
    x = g / (g.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.mT if tall else x


class Muon:
    """Treats q, k, v and the two halves of w12 as matrices of their own."""

    def __init__(self, layers, weight_decay):
        width = layers[0].attention.wO.weight.shape[0]
        hidden = layers[0].mlp[0].w3.weight.shape[1]
        self.weight_decay = weight_decay
        self.groups = {}
        for layer in layers:
            for p in (layer.attention.wQKV.weight, layer.attention.wO.weight):
                self.groups.setdefault((width, width), []).append(p)
            self.groups.setdefault((hidden, width), []).append(layer.mlp[0].w12.weight)
            self.groups.setdefault((width, hidden), []).append(layer.mlp[0].w3.weight)
        self.momentum = {
            shape: torch.zeros(
                sum(p.shape[0] for p in group) // shape[0], *shape, device=group[0].device
            )
            for shape, group in self.groups.items()
        }

    def parameters(self):
        return [p for group in self.groups.values() for p in group]

    @torch.no_grad()
    def step(self, lr: float):
        for (rows, columns), group in self.groups.items():
            g = torch.cat([p.grad for p in group]).view(-1, rows, columns)
            m = self.momentum[rows, columns]
            m.lerp_(g, 1 - MUON_MOMENTUM)
            update = orthogonalised(g.lerp(m, MUON_MOMENTUM)) * max(1, rows / columns) ** 0.5
            for p, u in zip(group, update.flatten(0, 1).split([p.shape[0] for p in group])):
                p.mul_(1 - lr * self.weight_decay).sub_(u, alpha=lr)

    def state_dict(self):
        return self.momentum

    def load_state_dict(self, state):
        self.momentum = state
