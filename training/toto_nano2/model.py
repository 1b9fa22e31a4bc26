# SPDX-License-Identifier: Apache-2.0
"""The network of the Toto 2.0 format in PyTorch, under the tensor names of its checkpoints.

Patches of values in arcsinh space and their missing flags go in; nine quantiles of the next patch
come out at every position. Weights are kept in unit scale (u-muP): a product is divided by the
root of its fan-in, the head's last ones by the fan-in itself.
"""

import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F

QUANTILES = 9
SILU_GAIN = math.exp(0.8 * math.log(math.sqrt(2 / (1 - 1 / math.pi))) + 0.2 * math.log(2))


@dataclasses.dataclass
class Config:
    d_model: int = 256
    num_layers: int = 6
    num_heads: int = 4
    d_ff: int = 688
    patch_size: int = 32
    layer_group_size: int = 6
    num_variate_layers_per_group: int = 1
    norm_eps: float = 1e-4
    residual_mult: float = 0.75
    residual_attn_ratio: float = 5.136215466577748

    @property
    def head_dim(self):
        return self.d_model // self.num_heads

    def to_json(self) -> dict:
        return {
            **dataclasses.asdict(self),
            "qk_dim": self.head_dim, "v_dim": self.head_dim,
            "num_groups": self.num_heads, "heads_per_group": 1, "num_output_patches": 1,
            "attn_bias": True, "mlp_bias": False, "qk_norm": False, "qk_norm_include_weight": False,
            "norm_include_weight": False, "per_dim_scale": True, "use_xpos": True,
            "variate_layer_first": False, "pre_norm": True, "dropout_p": 0.0,
            "trained_with_covariates": False,
        }  # fmt: skip

    @staticmethod
    def from_json(raw: dict) -> "Config":
        return Config(**{f.name: raw[f.name] for f in dataclasses.fields(Config)})

    def tau(self, branch: int) -> float:
        """The weight of residual branch number `branch`: attention if even, else feed-forward."""
        r = self.residual_attn_ratio
        mlp = self.residual_mult * math.sqrt(2 / (1 + r * r))
        attention = r * mlp
        own = attention if branch % 2 == 0 else mlp
        before = (branch + 1) // 2 * attention**2 + branch // 2 * mlp**2
        return own / math.sqrt(self.num_layers + before)


class Linear(nn.Module):
    """(W x + b) / sqrt(fan-in), W of unit variance; the product itself is a function below."""

    def __init__(self, inputs, outputs, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs))
        if bias:
            self.bias = nn.Parameter(torch.zeros(outputs))


class ResidualMlp(nn.Module):
    def __init__(self, inputs, inner, outputs):
        super().__init__()
        self.linear1 = Linear(inputs, inner)
        self.linear2 = Linear(inner, outputs)
        self.skip_proj = Linear(inputs, outputs)

    def weights(self):
        parts = (self.linear1, self.linear2, self.skip_proj)
        return [t for part in parts for t in (part.weight, part.bias)]


def rms(x, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def rotary_tables(positions, head_dim):
    """(tokens, 1, W) for W = half a head: cosine, sine and the xPos factor of queries, for tokens
    at these positions. Only differences of positions matter, so any centre will do."""
    width = head_dim // 2
    i = torch.arange(width // 2, dtype=torch.float64, device=positions.device)
    theta = 10000.0 ** (-2 * i / width)
    base = (2 * i + 0.4 * width) / (1.4 * width)
    t = positions.double()[:, None]
    power = base ** ((t - t.max() // 2) / 256)
    tables = (torch.cos(t * theta), torch.sin(t * theta), power)
    return [x.repeat_interleave(2, -1).float()[:, None] for x in tables]


def tables_of(n, rows, head_dim, device):
    """The same for rows of n tokens one after another."""
    return [t.repeat(rows, 1, 1) for t in rotary_tables(torch.arange(n, device=device), head_dim)]


def no_rotation(tokens, head_dim, device):
    one = torch.ones(tokens, 1, head_dim // 2, device=device)
    return [one, 0 * one, one]


def rotate(x, cos, sin, power):
    """Turns interleaved pairs of the first half of each head; the rest passes."""
    width = cos.shape[-1]
    first, rest = x[..., :width].float(), x[..., width:]
    pairs = first.unflatten(-1, (-1, 2))
    turned = torch.stack((-pairs[..., 1], pairs[..., 0]), -1).flatten(-2)
    return torch.cat((((first * cos + turned * sin) * power).to(x.dtype), rest), -1)


def product(x, w, b, dtype):
    """A linear map in unit scale; see Linear."""
    factor = float(w.shape[1]) ** -0.5
    bias = None if b is None else (b * factor).to(dtype)
    return F.linear(x.to(dtype), (w * factor).to(dtype), bias)


def add(x, y, tau):
    norm = torch.sqrt(1 + tau * tau)
    return x * (1 / norm) + y.float() * (tau / norm)


def enter(x, w, b, pds, cos, sin, power, eps, heads, dtype):
    """Tokens (T, D) to rotated queries and keys and to values, each (T, heads, width). Without
    tables the values alone: a single variate has nobody else to look at."""
    if cos is None:
        last = slice(2 * x.shape[-1], None)
        return None, None, product(rms(x, eps), w[last], b[last], dtype).unflatten(-1, (heads, -1))
    qkv = product(rms(x, eps), w, b, dtype).unflatten(-1, (3, heads, -1))
    q, k, v = qkv.unbind(1)
    q = q * (F.softplus(pds) / math.log(2)).to(dtype)
    return rotate(q, cos, sin, power), rotate(k, cos, sin, 1 / power), v


def leave(x, y, wo, bo, w1, w2, taus, eps, dtype):
    """What attention found (T, D) and the feed-forward layer, added to the stream."""
    x = add(x, product(y, wo, bo, dtype), taus[0])
    value, gate = product(rms(x, eps), w1, None, dtype).chunk(2, -1)
    return add(x, product(value * F.silu(gate), w2, None, dtype), taus[1])


def turn(x, y, left, entered, eps, heads, dtype):
    """The end of a layer and the beginning of the next, so that a compiler sees both."""
    x = leave(x, y, *left, eps, dtype)
    return x, *enter(x, *entered, eps, heads, dtype)


class PerDimScale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.per_dim_scale = nn.Parameter(torch.zeros(width))


class Attention(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.in_proj = Linear(c.d_model, 3 * c.d_model)
        self.out_proj = Linear(c.d_model, c.d_model)
        self._pds = PerDimScale(c.head_dim)


class FeedForward(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.fc1 = Linear(c.d_model, 2 * c.d_ff, bias=False)
        self.fc2 = Linear(c.d_ff, c.d_model, bias=False)


class Layer(nn.Module):
    def __init__(self, c: Config, index: int):
        super().__init__()
        group = c.layer_group_size
        self.variate = index % group >= group - c.num_variate_layers_per_group
        taus = torch.tensor([c.tau(2 * index), c.tau(2 * index + 1)])
        self.register_buffer("taus", taus)
        self.attn = Attention(c)
        self.ffn = FeedForward(c)

    def entering(self, tables):
        a = self.attn
        return a.in_proj.weight, a.in_proj.bias, a._pds.per_dim_scale, *tables

    def leaving(self):
        a, f = self.attn, self.ffn
        return a.out_proj.weight, a.out_proj.bias, f.fc1.weight, f.fc2.weight, self.taus


TOGETHER = 64  # tokens of short sequences that one tile of an attention kernel holds


def bias_of(mask, dtype):
    """mask (B, 1, N, N) as what is added to logits. In bfloat16 several short sequences become one
    that is blind between its parts, (B/k, 1, kN, kN): fast, but summed in another order."""
    rows, n = mask.shape[0], mask.shape[-1]
    k = math.gcd(max(1, TOGETHER // n), rows) if dtype == torch.bfloat16 else 1
    whole = torch.full((rows // k, k, n, k, n), -torch.inf, dtype=dtype, device=mask.device)
    own = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)
    whole.diagonal(dim1=1, dim2=3).copy_(own.view(rows // k, k, n, n).permute(0, 2, 3, 1))
    return whole.view(rows // k, 1, k * n, k * n)


def fused(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1 / q.shape[-1])


def written_out(q, k, v, mask):
    logits = (q @ k.mT).float() / q.shape[-1] + mask
    return logits.softmax(-1).to(v.dtype) @ v


def over_time(q, k, v, mask, attend=fused):
    """(T, heads, width) of sequences of N tokens; mask (T/N, 1, N, N), added to the logits."""
    n = mask.shape[-1]
    q, k, v = (t.unflatten(0, (-1, n)).transpose(1, 2) for t in (q, k, v))
    return attend(q, k, v, mask).transpose(1, 2).flatten(0, 1).flatten(1)


def over_variates(q, k, v, mask):
    """Tokens lie as (B, V, N); mask (B, N, 1, V, V)."""
    b, n, _, count, _ = mask.shape
    if count == 1:
        return v.flatten(1)
    q, k, v = (t.unflatten(0, (b, count, n)).permute(0, 2, 3, 1, 4) for t in (q, k, v))
    logits = (q @ k.mT).float() / q.shape[-1]
    y = logits.masked_fill(~mask, -torch.inf).softmax(-1).to(v.dtype) @ v
    return y.permute(0, 3, 1, 2, 4).flatten(0, 2).flatten(1)


class Parts:
    """The parts of a pass that touch every number; torch.compile may replace them."""

    def __init__(self, compiled=False):
        use = (lambda f: torch.compile(f, dynamic=False)) if compiled else (lambda f: f)
        self.enter, self.turn, self.leave = use(enter), use(turn), use(leave)
        self.embed, self.read = use(residual_mlp), use(read)
        self.written_out = use(written_out)
        self.attend = {}  # by the length of a sequence, where another way was found faster
        self.kept = {} if compiled else None  # tables of positions: batches have few shapes

    def tables(self, n, rows, variates, head_dim, device):
        """Rotations along time, and none for the layers across variates where there are several."""
        key = n, rows, variates, head_dim
        if self.kept is not None and key in self.kept:
            return self.kept[key]
        still = no_rotation(n * rows, head_dim, device) if variates > 1 else [None] * 3
        made = tables_of(n, rows, head_dim, device), still
        if self.kept is not None:
            self.kept[key] = made
        return made


def residual_mlp(x, w1, b1, w2, b2, ws, bs, power, dtype=torch.float32, first=torch.float32):
    """Two ways, one through a hidden layer; the last products over fan-in to this power."""
    inner = F.silu(product(x, w1, b1, first).float()) * SILU_GAIN
    far, near = float(w2.shape[1]) ** -power, float(ws.shape[1]) ** -power
    deep = F.linear(inner.to(dtype), (w2 * far).to(dtype), (b2 * far).to(dtype)).float()
    return (deep + F.linear(x, ws * near, bs * near)) * math.sqrt(0.5)


def read(x, eps, dtype, *weights):
    return residual_mlp(rms(x, eps), *weights, 1.0, dtype, dtype)


class Toto2(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = c = config
        self.patch_proj = ResidualMlp(2 * c.patch_size, 4 * c.d_model, c.d_model)
        self.layers = nn.ModuleList(Layer(c, i) for i in range(c.num_layers))
        self.head = ResidualMlp(c.d_model, 4 * c.d_model, QUANTILES * c.patch_size)

    def stream(self, inputs, time_mask, variate_mask, dtype=torch.float32, parts=Parts()):
        """inputs (B, V, N, 2P) to what the head reads, (B V N, D)."""
        c, (b, v, n, _) = self.config, inputs.shape
        x = parts.embed(inputs.flatten(0, 2), *self.patch_proj.weights(), 0.5, dtype)
        turned, still = parts.tables(n, b * v, v, c.head_dim, x.device)
        bias = bias_of(time_mask, dtype)
        entering = [layer.entering(still if layer.variate else turned) for layer in self.layers]
        q, k, value = parts.enter(x, *entering[0], c.norm_eps, c.num_heads, dtype)
        for i, layer in enumerate(self.layers):
            if layer.variate:
                y = over_variates(q, k, value, variate_mask)
            else:
                y = over_time(q, k, value, bias, parts.attend.get(bias.shape[-1], fused))
            if i + 1 == len(self.layers):
                return parts.leave(x, y, *layer.leaving(), c.norm_eps, dtype)
            x, q, k, value = parts.turn(
                x, y, layer.leaving(), entering[i + 1], c.norm_eps, c.num_heads, dtype
            )

    def forward(self, inputs, time_mask, variate_mask, dtype=torch.float32, parts=Parts()):
        """Quantiles of the next patch (B, V, N, P, 9), in arcsinh space.

        time_mask (B V, 1, N, N), variate_mask (B, N, 1, V, V): True where a token may look.
        """
        x = self.stream(inputs, time_mask, variate_mask, dtype, parts)
        raw = parts.read(x, self.config.norm_eps, dtype, *self.head.weights())
        return raw.view(*inputs.shape[:3], self.config.patch_size, QUANTILES)


NAMES = (("layers.", "transformer.layers."), ("head.", "output_head.param_projection.proj."))


TAUS, BRANCHES = ".taus", (".attn_tau", ".mlp_tau")


def published(state: dict) -> dict:
    """The state under the names of a checkpoint, with the weights of the residual branches."""
    out, taus = {}, {}
    for name, tensor in state.items():
        for ours, theirs in NAMES:
            if name.startswith(ours):
                name = theirs + name.removeprefix(ours)
        if name.endswith(TAUS):
            taus |= {name.removesuffix(TAUS) + kind: t for kind, t in zip(BRANCHES, tensor.unbind())}
        else:
            out[name] = tensor
    return out | taus


def own(tensors: dict) -> dict:
    out, taus = {}, {}
    for name, tensor in tensors.items():
        for ours, theirs in NAMES:
            if name.startswith(theirs):
                name = ours + name.removeprefix(theirs)
        if name.endswith(BRANCHES):
            layer, kind = name.rsplit(".", 1)
            taus.setdefault(layer + TAUS, {})[kind] = tensor
        else:
            out[name] = tensor
    return out | {name: torch.stack([of[kind[1:]] for kind in BRANCHES]) for name, of in taus.items()}
