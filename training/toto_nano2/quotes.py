# SPDX-License-Identifier: Apache-2.0
"""Prices whose best forecast is the last one, and the multifractal noise of markets and networks."""

import torch

from toto_nano.noise import heavy, moments, smooth, unit


def cascade(draw, n, t):
    """Multiplicative volatility on many scales, mean near one: a lognormal cascade."""
    log = torch.zeros(n, t, device=draw.device)
    strength = draw.uniform(n, 0.05, 0.35)
    scale = float(t)
    while scale > 4:
        log = log + smooth(draw, n, t, torch.full((n, 1), scale / 4, device=draw.device)) * strength
        scale /= 4
    return torch.exp(log)


def clusters(draw, n, t):
    """Volatility that answers to shocks: as GARCH, by an average of the squares of earlier ones."""
    shock = heavy(draw, n, t)
    fade = torch.exp(-(draw.steps(t) + 1) / draw.log_uniform(n, 3, 120))
    fade = fade / fade.sum(-1, keepdim=True)
    size = 2 * t
    past = torch.fft.irfft(torch.fft.rfft(shock.square(), size) * torch.fft.rfft(fade, size), size)[:, :t]
    past = torch.nn.functional.pad(past[:, :-1], (1, 0)).clamp(0, 50)
    return shock * torch.sqrt(0.3 + draw.uniform(n, 0, 0.9) * past)


def quotes(draw, n, t):
    """Prices without drift: fat tails, clusters of volatility, gaps between sessions, a grid."""
    return traded(draw, n, t, torch.where(draw.chance(n, 0.3), draw.normal(n) * 0.02, 0.0))


def assets(draw, n, t):
    """The same for what pays for its risk: a drift of some hundredths of a step's deviation, as
    yearly Sharpe ratios of 0.3 to 0.8 make it by the day, and steps that return a little."""
    drift = 0.035 + 0.015 * draw.normal(n)
    return traded(draw, n, t, drift, -0.06 * draw.uniform(n, 0, 1))


def traded(draw, n, t, drift, returns=0.0):
    """`drift` in deviations of a step; `returns`: how much of a step the next one takes up."""
    kind = draw.pick(n, [2, 2, 1])[:, None]
    plain = heavy(draw, n, t)
    rough = plain * cascade(draw, n, t)
    shock = torch.where(kind == 0, clusters(draw, n, t), torch.where(kind == 1, rough, plain))
    session = draw.log_uniform(n, 6, 100).round()
    place = draw.steps(t) % session
    busy = 1 + draw.uniform(n, 0, 1) * (2 * place / session - 1).square()
    busy = busy + draw.uniform(n, 0, 6) * (place == 0)
    shock = shock * torch.where(draw.chance(n, 0.2), busy, 1.0)
    shock = shock / (shock.std(-1, keepdim=True) + 1e-6)
    shock = shock + returns * torch.nn.functional.pad(shock[:, :-1], (1, 0))
    log = ((shock + drift) * draw.log_uniform(n, 0.0005, 0.03)).cumsum(-1).clamp(-6, 6)
    y = torch.exp(log)
    grid = y.std(-1, keepdim=True) * draw.log_uniform(n, 0.002, 0.1) + 1e-9
    return torch.where(draw.chance(n, 0.2), torch.round(y / grid) * grid, y)


def multifractal(draw, n, t):
    """Noise or its sum under a cascade: traffic, turbulence, rain."""
    y = heavy(draw, n, t) * cascade(draw, n, t)
    quiet = moments(draw, n, t, draw.log_uniform(n, 2, 20)) * cascade(draw, n, t)
    kind = draw.pick(n, [2, 1, 1])[:, None]
    return torch.where(kind == 0, y, torch.where(kind == 1, unit(y.cumsum(-1)), quiet))
