# SPDX-License-Identifier: Apache-2.0
"""The classes of ``toto-ts`` (Toto 1.0) by their names, arguments and shapes.

    from toto_cpp.compat.toto import MaskedTimeseries, Toto, TotoForecaster

Draws are addressed by a seed (``Toto.seed``, 0 at first), not by torch's generator: the same call gives the same
samples. Where the inputs are tensors of torch, so are the results; else they are NumPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..model import Model
from ._like import Accepting, like, to_numpy

__all__ = ["Forecast", "MaskedTimeseries", "Toto", "TotoForecaster"]


class MaskedTimeseries(NamedTuple):
    """[V, T] or [B, V, T]; ``padding_mask`` is True where observed; ``id_mask`` holds group ids."""

    series: Any
    padding_mask: Any
    id_mask: Any
    timestamp_seconds: Any
    time_interval_seconds: Any
    num_exogenous_variables: int = 0

    def to(self, device: Any) -> MaskedTimeseries:
        """The same series: what is computed where is chosen by ``toto_cpp.load``."""
        return self


@dataclass(frozen=True)
class Forecast:
    """``mean`` [B, V, H]; ``samples`` [B, V, H, S], None in mean mode."""

    mean: Any
    samples: Any = None

    def quantile(self, q: Any) -> Any:
        """[B, V, H]: of the samples, linear between neighbours; [Q, B, V, H] for several levels."""
        assert self.samples is not None, "samples must be provided to compute quantiles"
        levels = to_numpy(q).astype(np.float64)
        found = np.quantile(to_numpy(self.samples), levels, axis=-1).astype(np.float32)
        return like(self.samples, found)

    @property
    def median(self) -> Any:
        return self.quantile(0.5)

    @property
    def std(self) -> Any:
        """With divisor S - 1."""
        assert self.samples is not None, "samples must be provided to compute standard deviation"
        return like(self.samples, to_numpy(self.samples).std(axis=-1, ddof=1))


class Toto(Accepting):
    """A checkpoint of Toto 1.0. ``model`` is what ``TotoForecaster`` takes."""

    def __init__(self, core: Model) -> None:
        if core.info.architecture != "toto-1.0":
            raise ValueError(f"{core.info.name} is {core.info.architecture}: use toto_cpp.compat.toto2")
        self.core = core
        self.seed = 0  #: of the draws of forecasts to come

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *, map_location: str = "cpu", **options: Any) -> Toto:
        """``pretrained_model_name_or_path``: as ``toto_cpp.load``; other options are those of ``toto_cpp.load`` too."""
        for ignored in ("strict", "revision", "cache_dir", "force_download", "proxies", "resume_download", "token", "local_files_only"):
            options.pop(ignored, None)
        return cls(Model(pretrained_model_name_or_path, **options))

    @property
    def model(self) -> Toto:
        return self


class TotoForecaster:
    """Forecasts with a ``Toto`` (or a ``toto_cpp.Model``)."""

    def __init__(self, model: Any) -> None:
        self.model = Toto(model) if isinstance(model, Model) else model

    def forecast(
        self,
        inputs: MaskedTimeseries,
        prediction_length: int,
        num_samples: int | None = None,
        samples_per_batch: int = 10,
        use_kv_cache: bool = True,
        future_exogenous_variables: Any = None,
    ) -> Forecast:
        """``num_samples`` None: one trajectory of means. Else so many samples, and their mean; it must be divisible by
        ``samples_per_batch``, which changes nothing else. The last ``inputs.num_exogenous_variables`` variates are
        covariates, and ``future_exogenous_variables`` [B, E, H] what is known of them."""
        if num_samples is not None:
            assert num_samples % samples_per_batch == 0, "num_samples must be divisible by samples_per_batch"
        series = to_numpy(inputs.series).astype(np.float32, copy=False)
        single = series.ndim == 2
        batch = series[None] if single else series
        mask = np.broadcast_to(to_numpy(inputs.padding_mask), series.shape).reshape(batch.shape)
        ids = np.broadcast_to(to_numpy(inputs.id_mask), series.shape).reshape(batch.shape)
        exogenous = int(inputs.num_exogenous_variables)
        future = None
        if future_exogenous_variables is not None:
            future = to_numpy(future_exogenous_variables).astype(np.float32, copy=False)
            future = future[None] if future.ndim == 2 else future
            expected = (len(batch), exogenous, prediction_length)
            assert future.shape == expected, f"expected future_exogenous_variables of {expected}, found {future.shape}"
        found = self.model.core.forecast(
            batch, prediction_length, (0.5,), mask=mask, groups=_whole(ids), exogenous=exogenous, future_exogenous=future,
            mean_only=num_samples is None, num_samples=num_samples or 1, samples=num_samples is not None,
            seed=self.model.seed, as_reference=True, decode="cached" if use_kv_cache else "uncached", context=max(1, batch.shape[-1]),
        )  # fmt: skip
        mean = found.mean
        samples = None if num_samples is None else np.ascontiguousarray(np.moveaxis(found.samples, 0, -1))
        return Forecast(like(inputs.series, mean), None if samples is None else like(inputs.series, samples))


def _whole(ids: Any) -> Any:
    """Ids of any number as int32 that are equal where they were."""
    if ids.dtype.kind in "iub":
        return ids.astype(np.int32)
    return np.unique(ids, return_inverse=True)[1].reshape(ids.shape).astype(np.int32)
