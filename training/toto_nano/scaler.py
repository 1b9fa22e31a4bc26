# SPDX-License-Identifier: Apache-2.0
"""The causal patch scaler of Toto 1.0: each patch is standardised with the statistics of
everything seen up to its own last step."""

import torch

FLOOR = 0.1  # added to the variance, inside the square root


def running_statistics(x: torch.Tensor, valid: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Running mean and standard deviation in float64; x and valid are (..., T)."""
    x = x.double()
    w = valid.double()
    count = torch.cumsum(w, -1).clamp(min=1)
    mean = torch.cumsum(w * x, -1) / count
    previous = torch.nn.functional.pad(mean[..., :-1], (1, 0))
    m2 = torch.cumsum((x - previous) * (x - mean) * w, -1)
    return mean, torch.sqrt(m2 / (count - 1).clamp(min=1) + FLOOR)


def global_scale(x: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Population standard deviation of the whole context, (..., 1)."""
    x = x.double()
    w = valid.double()
    count = w.sum(-1, keepdim=True).clamp(min=1)
    mean = torch.nan_to_num((w * x / count).sum(-1, keepdim=True))
    return torch.sqrt((((x - mean) * w) ** 2 / count).sum(-1, keepdim=True) + FLOOR)


def patch_statistics(
    x: torch.Tensor,
    valid: torch.Tensor,
    patch: int,
    prefix: int,
    stabilize: bool,
    exponent: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """loc and scale of every patch, float32 (..., T / patch).

    `prefix` is the length of the padded context; generated steps do not enter the clamp.
    """
    mean, scale = running_statistics(x, valid)
    if stabilize:
        whole = global_scale(x[..., :prefix], valid[..., :prefix])
        low = torch.clamp(whole * 10.0**-exponent, min=FLOOR)
        scale = torch.minimum(torch.maximum(scale, low), whole * 10.0**exponent)
    last = slice(patch - 1, None, patch)
    return mean[..., last].float(), scale[..., last].float()
