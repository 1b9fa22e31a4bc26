# SPDX-License-Identifier: Apache-2.0
"""Toto 1.0 with a mixture-of-Student-T head, written for training.

Tensor names and row orders are those of the published checkpoints, so exporting is a rename of
nothing. Shapes: B series groups, V variates, S patches (tokens), P steps per patch, D width.
"""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn

from . import scaler

XPOS_BASE = 512


@dataclasses.dataclass(frozen=True)
class Config:
    patch_size: int
    embed_dim: int
    num_layers: int
    num_heads: int
    mlp_hidden_dim: int
    spacewise_every_n_layers: int
    k_components: int
    spacewise_first: bool = False
    stabilize_with_global: bool = True
    scale_factor_exponent: float = 10.0

    def is_space_layer(self, index: int) -> bool:
        n = self.spacewise_every_n_layers
        if n < 0:
            return False
        return index % n == (0 if self.spacewise_first else n - 1)


@dataclasses.dataclass
class Mixture:
    """Parameters (..., P, K) of the patch that follows each token, in scaled units."""

    df: torch.Tensor
    loc: torch.Tensor
    scale: torch.Tensor
    logits: torch.Tensor

    @property
    def probs(self) -> torch.Tensor:
        p = torch.softmax(self.logits, -1)
        return p / p.sum(-1, keepdim=True)

    def log_prob(self, y: torch.Tensor) -> torch.Tensor:
        """Log density of y (..., P)."""
        z = (y.unsqueeze(-1) - self.loc) / self.scale
        component = (
            log_gamma_ratio(self.df / 2)
            - 0.5 * torch.log(math.pi * self.df)
            - torch.log(self.scale)
            - 0.5 * (self.df + 1) * torch.log1p(z * z / self.df)
        )
        return torch.logsumexp(torch.log_softmax(self.logits, -1) + component, -1)


def log_gamma_ratio(x: torch.Tensor) -> torch.Tensor:
    """lgamma(x + 1/2) - lgamma(x) for x >= 1, to 3e-6.

    The asymptotic series at x + 1; several times cheaper than lgamma and its derivative.
    """
    y = 1 / (x + 1)
    y2 = y * y
    series = y * (-1 / 8 + y2 * (1 / 192 + y2 * (-1 / 640 + y2 * (17 / 14336))))
    return 0.5 * torch.log(x + 1) + series - torch.log((x + 0.5) / x)


class Rms(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.float()
        return x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-8) * self.scale


def xpos_tables(width: int, first: int, count: int, device) -> tuple[torch.Tensor, ...]:
    """cos, sin and the xPos factor (count, width) of the tokens first .. first+count-1.

    Angles go by interleaved pairs, xPos factors by halves: the published models are like that.
    """
    i = torch.arange(0, width, 2, device=device, dtype=torch.float32)
    position = torch.arange(first, first + count, device=device, dtype=torch.float32)
    angle = position[:, None] * (1.0 / (10000 ** (i / width)))
    angle = angle.repeat_interleave(2, -1)
    base = (i + 0.4 * width) / (1.4 * width)
    power = (position - (first + count - 1) // 2) / XPOS_BASE
    factor = (base ** power[:, None]).repeat(1, 2)
    return angle.cos(), angle.sin(), factor


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    pairs = x.unflatten(-1, (-1, 2))
    turned = torch.stack((-pairs[..., 1], pairs[..., 0]), -1).flatten(-2)
    return x * cos + turned * sin


class Attention(nn.Module):
    def __init__(self, config: Config, space: bool):
        super().__init__()
        self.heads = config.num_heads
        self.space = space
        width = config.embed_dim
        self.wQKV = nn.Linear(width, 3 * width)
        self.wO = nn.Linear(width, width)

    def forward(self, x, tables, same_group, cache):
        """x (B,V,S,D); tables as of xpos_tables; same_group (B,S,1,V,V) bool, None for V = 1."""
        b, v, s, width = x.shape
        qkv = self.wQKV(x).unflatten(-1, (3, width // self.heads, self.heads))
        q, k, value = qkv.movedim(-3, 0).transpose(-1, -2)  # each (B,V,S,H,d)
        if self.space:
            q, k, value = (t.permute(0, 2, 3, 1, 4) for t in (q, k, value))  # (B,S,H,V,d)
            if v == 1:
                y = value
            else:
                y = F.scaled_dot_product_attention(q, k, value, attn_mask=same_group)
            y = y.permute(0, 3, 1, 2, 4)
        else:
            cos, sin, factor = tables
            q, k, value = (t.transpose(2, 3).flatten(0, 1) for t in (q, k, value))  # (BV,H,S,d)
            q = (rotate(q.float(), cos, sin) * factor).to(value.dtype)
            k = (rotate(k.float(), cos, sin) * (1 / factor)).to(value.dtype)
            if cache is not None:
                k, value = cache.append(self, k, value)
            y = F.scaled_dot_product_attention(q, k, value, is_causal=s > 1)
            y = y.unflatten(0, (b, v)).transpose(2, 3)
        return self.wO(y.reshape(b, v, s, width))


class Mlp(nn.Module):
    """Gated MLP; the first half of w12 is the gate."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.w12 = nn.Linear(width, 2 * hidden)
        self.w3 = nn.Linear(hidden, width)

    def forward(self, x):
        gate, value = self.w12(x).chunk(2, -1)
        return self.w3(F.silu(gate) * value)


class Layer(nn.Module):
    def __init__(self, config: Config, index: int):
        super().__init__()
        self.norm1 = Rms(config.embed_dim)
        self.norm2 = Rms(config.embed_dim)
        self.attention = Attention(config, config.is_space_layer(index))
        self.mlp = nn.ModuleList([Mlp(config.embed_dim, config.mlp_hidden_dim)])

    def forward(self, x, tables, same_group, cache=None):
        x = x + self.attention(self.norm1(x), tables, same_group, cache)
        return x + self.mlp[0](self.norm2(x))


class Head(nn.Module):
    """The four projections of the mixture; applied through `mixture` below."""

    def __init__(self, width: int, k: int):
        super().__init__()
        self.df = nn.Linear(width, k)
        self.loc_proj = nn.Linear(width, k)
        self.scale_proj = nn.Linear(width, k)
        self.mixture_weights = nn.Linear(width, k)

    def stacked(self) -> tuple[torch.Tensor, torch.Tensor]:
        parts = (self.df, self.loc_proj, self.scale_proj, self.mixture_weights)
        return torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])


class PatchEmbed(nn.Module):
    def __init__(self, patch: int, width: int):
        super().__init__()
        self.projection = nn.Linear(patch, width)


class Transformer(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.layers = nn.ModuleList([Layer(config, i) for i in range(config.num_layers)])


class Toto(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        width, patch = config.embed_dim, config.patch_size
        self.patch_embed = PatchEmbed(patch, width)
        self.transformer = Transformer(config)
        self.unembed = nn.Linear(width, patch * width)
        self.output_distribution = Head(width, config.k_components)

    def statistics(self, x, valid, prefix=None):
        c = self.config
        return scaler.patch_statistics(
            x, valid, c.patch_size, prefix or x.shape[-1], c.stabilize_with_global,
            c.scale_factor_exponent,
        )

    def tokens(self, scaled, ids, cache=None, keep=None):
        """Hidden state (B,V,S,D) of scaled patches (B,V,S,P) with group ids (B,V,S).

        `cache` (see inference.py) makes positions continue; `keep` collects each layer's output.
        """
        first = cache.length if cache is not None else 0
        width = self.config.embed_dim // self.config.num_heads
        tables = xpos_tables(width, first, scaled.shape[2], scaled.device)
        same_group = None
        if scaled.shape[1] > 1:
            by_token = ids.transpose(1, 2)
            same_group = (by_token.unsqueeze(-1) == by_token.unsqueeze(-2)).unsqueeze(2)
        with torch.autocast(scaled.device.type, enabled=False):  # the last value must pass exactly
            x = self.patch_embed.projection(scaled)
        for layer in self.transformer.layers:
            x = layer(x, tables, same_group, cache)
            if keep is not None:
                keep.append(x)
        return x

    def mixture(self, x) -> Mixture:
        """unembed and the head are linear after linear: fold them, then apply once."""
        width, patch = self.config.embed_dim, self.config.patch_size
        weight, bias = self.output_distribution.stacked()  # (4K,D), (4K)
        with torch.autocast(x.device.type, enabled=False):
            folded = weight @ self.unembed.weight.view(patch, width, width)  # (P,4K,D)
            offset = self.unembed.bias.view(patch, width) @ weight.T + bias  # (P,4K)
            raw = F.linear(x.float(), folded.flatten(0, 1), offset.flatten())
        df, loc, scale, logits = raw.unflatten(-1, (patch, 4, -1)).unbind(-2)
        eps = torch.finfo(torch.float32).eps
        return Mixture(
            2 + F.softplus(df).clamp(min=eps), loc, F.softplus(scale).clamp(min=eps), logits
        )
