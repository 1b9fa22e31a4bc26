# SPDX-License-Identifier: Apache-2.0
"""Random building blocks of synthetic series: parameters, noises and slow curves.

Everything is drawn for n series of t steps at once from one torch.Generator, on its device, so a
batch is a function of the seed alone and a GPU generates faster than it trains.
"""

import math

import torch


class Draw:
    """Shorthands for random parameters of shape (n, 1) and arrays of shape (n, t)."""

    def __init__(self, generator: torch.Generator):
        self.generator = generator
        self.device = generator.device

    def uniform(self, n, low, high, t=1):
        return low + (high - low) * torch.rand(
            n, t, generator=self.generator, device=self.device
        )

    def log_uniform(self, n, low, high, t=1):
        return torch.exp(self.uniform(n, math.log(low), math.log(high), t))

    def normal(self, n, t=1):
        return torch.randn(n, t, generator=self.generator, device=self.device)

    def chance(self, n, p, t=1):
        return torch.rand(n, t, generator=self.generator, device=self.device) < p

    def integers(self, n, low, high, t=1):
        """low <= integer < high."""
        return torch.randint(low, high, (n, t), generator=self.generator, device=self.device)

    def pick(self, n, weights):
        """n indices with the given weights."""
        w = torch.tensor(weights, dtype=torch.float32, device=self.device)
        return torch.multinomial(w, n, replacement=True, generator=self.generator)

    def steps(self, t):
        return torch.arange(t, device=self.device, dtype=torch.float32)[None]


def by_kind(draw: Draw, n: int, t: int, kinds: dict):
    """Each series comes from one of the functions kind(draw, n, t), chosen by its weight."""
    choice = draw.pick(n, list(kinds.values()))
    out = torch.empty(n, t, device=draw.device)
    for i, kind in enumerate(kinds):
        rows = (choice == i).nonzero()[:, 0]
        if len(rows):
            out[rows] = kind(draw, len(rows), t)
    return out


def unit(x):
    """Zero mean and unit deviation; a constant series becomes zero."""
    x = x - x.mean(-1, keepdim=True)
    return x / (x.std(-1, keepdim=True, unbiased=False) + 1e-6)


def heavy(draw, n, t):
    """Student-T noise with 3 to 10 degrees of freedom per series, by Bailey's form."""
    df = draw.log_uniform(n, 3, 10)
    u = draw.uniform(n, 1e-6, 1, t)
    angle = torch.cos(2 * math.pi * draw.uniform(n, 0, 1, t))
    return torch.sqrt(df * (u ** (-2 / df) - 1)) * angle


def skewed(draw, n, t):
    """Centred exponential or log-normal noise."""
    sigma = draw.uniform(n, 0.2, 1.0)
    log_normal = torch.exp(sigma * draw.normal(n, t)) - torch.exp(sigma**2 / 2)
    exponential = -torch.log(draw.uniform(n, 1e-6, 1, t)) - 1
    return torch.where(draw.chance(n, 0.5), exponential, log_normal)


def flat(draw, n, t):
    return draw.uniform(n, -1.7, 1.7, t)


def gaussian(draw, n, t):
    return draw.normal(n, t)


def white(draw, n, t):
    return by_kind(draw, n, t, {gaussian: 6, heavy: 2, skewed: 1, flat: 0.5})


def convolve(x, kernel):
    """Causal convolution; x (n, 2t) loses its first half as warm-up, kernel (n, t)."""
    t = kernel.shape[-1]
    size = x.shape[-1] + t
    y = torch.fft.irfft(torch.fft.rfft(x, size) * torch.fft.rfft(kernel, size), size)
    return y[..., t : 2 * t]


def smooth(draw, n, t, length):
    """Noise with a Gaussian spectrum and correlation length `length` (n, 1), unit deviation."""
    size = 2 * t  # twice as long as needed, so that the end does not meet the beginning
    f = torch.fft.rfftfreq(size, device=draw.device)[None]
    shape = torch.exp(-0.5 * (2 * math.pi * f * length) ** 2)
    energy = shape.square().mean(-1, keepdim=True).sqrt()
    spectrum = torch.fft.rfft(draw.normal(n, size)) * shape / energy
    return torch.fft.irfft(spectrum, size)[:, :t]


def power_law(draw, n, t):
    """1/f^b noise, from white to smoother than a random walk."""
    size = 2 * t
    f = torch.fft.rfftfreq(size, device=draw.device)[None].clamp(min=1 / size)
    spectrum = torch.fft.rfft(white(draw, n, size)) * f ** (-draw.uniform(n, 0.1, 1.3))
    return unit(torch.fft.irfft(spectrum, size)[:, :t])


def relaxing(draw, n, t):
    """AR(1) with a time constant from one step to thousands; sometimes alternating, or ARMA."""
    r = torch.exp(-1 / draw.log_uniform(n, 0.4, 1000))
    r = torch.where(draw.chance(n, 0.08), -r.clamp(max=0.95), r)
    kernel = r.sign() ** draw.steps(t) * r.abs() ** draw.steps(t)
    moving = torch.where(draw.chance(n, 0.3), draw.uniform(n, -0.9, 0.9), 0 * r)
    x = white(draw, n, 2 * t)
    x = x + moving * torch.nn.functional.pad(x[:, :-1], (1, 0))
    return unit(convolve(x, kernel))


def ringing(draw, n, t):
    """AR(2) and ARMA with complex roots: noisy cycles."""
    k, period = draw.steps(t), draw.log_uniform(n, 2.2, max(8.0, t / 4))
    decay = torch.exp(-k / (period * draw.log_uniform(n, 0.4, 20)))
    angle = 2 * math.pi * (k / period + draw.uniform(n, -0.25, 0.25))
    return unit(convolve(white(draw, n, 2 * t), decay * torch.cos(angle)))


def walk(draw, n, t):
    """Random walk, sometimes with drift, rare large steps, or steps at few moments only."""
    steps = white(draw, n, t)
    jumps = heavy(draw, n, t) * draw.chance(n, draw.log_uniform(n, 0.002, 0.05), t) * 6
    steps = steps + torch.where(draw.chance(n, 0.15), jumps, 0 * jumps)
    sparse = draw.chance(n, draw.log_uniform(n, 0.01, 0.5), t)
    steps = torch.where(draw.chance(n, 0.1), steps * sparse, steps)
    drift = draw.normal(n) * draw.log_uniform(n, 0.003, 0.3)
    steps = steps + torch.where(draw.chance(n, 0.4), drift, 0 * drift)
    momentum = torch.where(draw.chance(n, 0.2), draw.uniform(n, -0.4, 0.8), torch.zeros(n, 1, device=draw.device))
    return unit(torch.cumsum(convolve_ar1(steps, momentum), -1))


def convolve_ar1(x, r):
    """AR(1) filter by a short kernel (24 terms are enough for |r| <= 0.8)."""
    k = torch.arange(24, device=x.device)
    kernel = r.sign() ** k * r.abs() ** k
    size = x.shape[-1] + 24
    return torch.fft.irfft(torch.fft.rfft(x, size) * torch.fft.rfft(kernel, size), size)[
        :, : x.shape[-1]
    ]


def wander(draw, n, t):
    """A smooth curve whose time scale is random."""
    return smooth(draw, n, t, draw.log_uniform(n, 4, 2.0 * t))


def moments(draw, n, t, gap):
    """True at random moments that are `gap` (n, 1) steps apart on average."""
    return draw.chance(n, 1 / gap, t)
