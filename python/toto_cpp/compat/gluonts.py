# SPDX-License-Identifier: Apache-2.0
"""Predictors of GluonTS over both generations: ``predict(dataset)`` gives its own forecast objects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from gluonts.dataset.util import forecast_start
from gluonts.model.forecast import QuantileForecast, SampleForecast
from gluonts.model.predictor import RepresentablePredictor
from numpy.typing import NDArray

from ..model import DECILES, Model
from .toto2 import Toto2GluonTSModelConfig

__all__ = ["Multivariate", "Toto2Predictor", "TotoPredictor"]


def _batches(dataset: Iterable[Any], size: int) -> Iterator[list[Any]]:
    entries = iter(dataset)
    while batch := list(islice(entries, size)):
        yield batch


def _target(entry: dict[str, Any]) -> NDArray[np.float32]:
    return np.atleast_2d(np.asarray(entry["target"], np.float32))


def _last(values: NDArray[Any], steps: int, fill: float) -> NDArray[Any]:
    """[V, steps]: the last ones, padded on the left."""
    kept = values[:, -steps:]
    return np.pad(kept, ((0, 0), (steps - kept.shape[1], 0)), constant_values=fill)


def _core_of(model: Any) -> Model:
    return model if isinstance(model, Model) else model.core


@dataclass(frozen=True)
class Multivariate:
    """How many series are computed together."""

    code: ClassVar[str] = "M"
    batch_size: int = 16


class TotoPredictor(RepresentablePredictor):
    """Toto 1.0: samples. As the official one: the last ``context_length`` steps, padded with zeros that count as not
    observed; missing values are zeros that do; keys are recomputed for each patch unless ``use_kv_cache``."""

    def __init__(self, model: Any, prediction_length: int, context_length: int, mode: Multivariate = Multivariate()) -> None:
        super().__init__(prediction_length=prediction_length)
        self.core = _core_of(model)
        self.context_length = context_length
        self.mode = mode
        self.seed: int | None = None

    @classmethod
    def create_for_eval(
        cls,
        model: Any,
        prediction_length: int,
        context_length: int,
        mode: Multivariate = Multivariate(batch_size=1),
        samples_per_batch: int = 10,
    ) -> TotoPredictor:
        """``samples_per_batch`` changes nothing here."""
        return cls(model, prediction_length, context_length, mode)

    def predict(
        self, dataset: Any, num_samples: int | None = None, use_kv_cache: bool = False, eval: bool = True
    ) -> Iterator[SampleForecast]:
        """``num_samples`` None: one trajectory of means."""
        count = 0
        for batch in _batches(dataset, self.mode.batch_size):
            targets = [np.nan_to_num(_target(entry), nan=0.0) for entry in batch]
            masks = [_last(np.ones(t.shape, bool), self.context_length, 0) for t in targets]
            found = self.core.forecast(
                [_last(t, self.context_length, 0) for t in targets], self.prediction_length, (0.5,), mask=masks,
                ids=[str(count + i) for i in range(len(batch))], mean_only=num_samples is None,
                num_samples=num_samples or 1, samples=num_samples is not None, seed=self.seed,
                decode="cached" if use_kv_cache else "uncached", context=self.context_length,
            )  # fmt: skip
            count += len(batch)
            for entry, one in zip(batch, found):
                samples = one.mean[None] if num_samples is None else one.samples  # [S, V, H]
                flat = np.asarray(entry["target"]).ndim == 1
                yield SampleForecast(
                    samples=samples[:, 0] if flat else np.moveaxis(samples, 1, 2), start_date=forecast_start(entry),
                    item_id=entry.get("item_id"), info=entry.get("info"),
                )  # fmt: skip


class Toto2Predictor(RepresentablePredictor):
    """Toto 2.0: quantiles. As the official one, it pads and cuts the context to whole patches."""

    def __init__(self, model: Any, config: Toto2GluonTSModelConfig, batch_size: int = 32) -> None:
        super().__init__(prediction_length=config.prediction_length)
        self.core = _core_of(model)
        self.config = config
        self.batch_size = batch_size

    @property
    def past_length(self) -> int:
        """Steps of context, whole patches: the horizon takes its share of ``context_length``."""
        patch: int = self.core.info.patch_size
        left = self.config.context_length - (math.ceil(self.prediction_length / patch) - 1) * patch
        return int(max(patch, left // patch * patch))

    def predict(self, dataset: Any, **options: Any) -> Iterator[QuantileForecast]:
        config, steps, horizon = self.config, self.past_length, self.prediction_length
        levels = sorted({*DECILES, *config.quantiles})
        for batch in _batches(dataset, self.batch_size):
            inputs, masks, known, widths = [], [], [], []
            for entry in batch:
                target = _target(entry)
                widths.append(len(target))
                if config.past_feat_dynamic_real_dim > 0:
                    past = np.atleast_2d(np.asarray(entry["past_feat_dynamic_real"], np.float32))
                    target = np.concatenate([target, past[:, -target.shape[1] :]])
                masks.append(_last(~np.isnan(target), steps, 0))
                inputs.append(_last(target, steps, 0))
                if config.feat_dynamic_real_dim > 0:
                    ahead = np.atleast_2d(np.asarray(entry["feat_dynamic_real"], np.float32))
                    known.append(_last(ahead[:, : target.shape[1] + horizon], steps + horizon, 0))
            found = self.core.forecast(
                inputs, horizon, levels, mask=masks, covariates=known or None,
                missing="linear" if config.imputation_internal == "linear" else "ffill",
                decode_block_size=config.decode_block_size or 0, has_missing_values=config.has_missing_values,
                scaler_fallback_min_obs=config.scaler_fallback_min_obs, quantile_real_cap_k=config.quantile_real_cap_k,
                context=steps,
            )  # fmt: skip
            for entry, one, width in zip(batch, found, widths):
                planes = np.stack([one.quantile(q) for q in config.quantiles])[:, :width]  # [Q, V, H]
                flat = np.asarray(entry["target"]).ndim == 1
                yield QuantileForecast(
                    forecast_arrays=planes[:, 0] if flat else np.moveaxis(planes, 1, 2),
                    forecast_keys=[str(q) for q in config.quantiles], start_date=forecast_start(entry),
                    item_id=entry.get("item_id"), info=entry.get("info"),
                )  # fmt: skip
