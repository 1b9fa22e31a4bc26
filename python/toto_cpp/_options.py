# SPDX-License-Identifier: Apache-2.0
"""Options of a forecast: their names and types. Defaults and checks are those of the module (src/options.cpp)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _core

if TYPE_CHECKING:
    from typing_extensions import Unpack

Progress = Callable[[int, int], "bool | None"]
DECILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class ForecastOptions(TypedDict, total=False):
    """Options of every call that forecasts, each with its default. ``Model.forecast`` says more."""

    num_samples: int  #: 256: trajectories for the steps that are not exact
    samples: bool  #: False: keep the trajectories
    parameters: bool  #: False: keep the mixture
    mean_only: bool  #: False: one trajectory of means, nothing is drawn
    seed: int | None  #: None: TOTO_SEED, else 0
    decode: Literal["cached", "uncached"]
    quantiles_from: Literal["auto", "samples"]
    paths: Literal["auto", "independent", "coherent"]  #: "auto": as the model names
    align: Literal["pad", "trim"]
    tails: Literal["auto", "clamp", "exponential", "normal"]  #: "auto": as the model names; of Toto 2.0, beyond its quantiles 0.1 and 0.9
    missing: Literal["ffill", "linear", "zero", "seasonal", "model", "error"]  #: what stands for NaN
    season: int  #: 0: steps of a season, for missing="seasonal"
    views: str  #: "": other looks that are forecast as well and averaged: "flip,log,season,context/2"
    context: int  #: 4096: the last so many steps are looked at
    decode_block_size: int  #: 0; this and the next three: Toto 2.0, as in the official code
    has_missing_values: bool  #: True
    scaler_fallback_min_obs: int  #: 0
    quantile_real_cap_k: float  #: 0
    across_missing: bool  #: True: a missing end is forecast across
    input_scale: float  #: 0: a power of two for each variate
    clamp: float  #: 4: ranges of the context within which sampled steps stay; 0: free
    minimum: float | None  #: None: no bound of the results
    maximum: float | None
    integer: bool  #: False: medians, quantiles and samples are whole numbers
    as_reference: bool  #: False: as the official code, without the five above and value_offset
    covariates_by: Literal["auto", "model", "regress"]
    value_offset: bool  #: True: values of float64 that float32 has too few digits for keep theirs


class CallOptions(ForecastOptions, total=False):
    """The same, and what belongs to the series of one call."""

    ids: Any
    mask: Any
    groups: Any
    covariates: Any
    exogenous: int
    future_exogenous: Any
    future_mask: Any
    progress: Progress | None


def make_options(horizon: int, quantiles: Sequence[float] = DECILES, **options: Unpack[ForecastOptions]) -> _core.Options:
    """Checks what can be checked before a forecast. Raises TypeError for an option that there is not."""
    unknown = options.keys() - ForecastOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"there is no option {min(unknown)!r}; there are {', '.join(sorted(ForecastOptions.__annotations__))}")
    return _core.Options(horizon, quantiles, **options)
