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

from .._options import DECILES
from ..model import Model
from .toto2 import Arguments, Toto2GluonTSModelConfig, decoding_options

_DECODING = ("decode_block_size", "has_missing_values", "scaler_fallback_min_obs", "quantile_real_cap_k")

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


def imputed(values: NDArray[np.float32], method: str) -> NDArray[np.float32]:
    """[V, T] with something in the place of NaN: the value before ("ffill"), a line between its neighbours ("linear")
    or 0 ("none"). What no value comes before is 0; what none comes after is the last one."""
    gaps = np.isnan(values)
    if not gaps.any():
        return values
    out = np.where(gaps, np.float32(0), values)
    if method == "none":
        return out
    steps = np.arange(values.shape[1])
    for row, gap in zip(out, gaps):
        seen = np.flatnonzero(~gap)
        if len(seen) == 0:
            continue
        if method == "linear":
            row[:] = np.interp(steps, seen, row[seen])
        else:
            row[:] = row[seen[np.maximum(np.searchsorted(seen, steps, side="right") - 1, 0)]]
        row[: seen[0]] = 0
    return out


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
                num_samples=num_samples or 1, samples=num_samples is not None, seed=self.seed, as_reference=True,
                decode="cached" if use_kv_cache else "uncached", context=self.context_length,
            )  # fmt: skip
            count += len(batch)
            for entry, one in zip(batch, found):
                samples = one.mean[None] if num_samples is None else one.samples  # [S, V, H]
                flat = np.asarray(entry["target"]).ndim == 1
                forecast = SampleForecast(
                    samples=samples[:, 0] if flat else np.moveaxis(samples, 1, 2), start_date=forecast_start(entry),
                    item_id=entry.get("item_id"), info=entry.get("info"),
                )  # fmt: skip
                forecast._mean = one.mean[0] if flat else one.mean.T  # not that of the samples, as the official one
                yield forecast


class Toto2Predictor(RepresentablePredictor):
    """Toto 2.0: quantiles. As the official one, it fills gaps, then pads and cuts the context to whole patches."""

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

    def predict(self, dataset: Any, num_samples: int | None = None, **options: Any) -> Iterator[QuantileForecast]:
        """``num_samples`` changes nothing: the forecasts are quantiles."""
        config = self.config
        levels = sorted({*DECILES, *config.quantiles})
        decoding = decoding_options(
            {name: getattr(config, name) for name in _DECODING}, self.core.info.patch_size
        )  # fmt: skip
        for batch in _batches(dataset, self.batch_size):
            entries = [self._inputs(entry) for entry in batch]
            inputs = {name: np.stack([one[name] for one in entries]) for name in entries[0]}
            given = Arguments(inputs, self.prediction_length, self.core.info.patch_size)
            found: Any = self.core.forecast(given.values, given.horizon, levels, **given.options, **decoding)
            for entry, one in zip(batch, found):
                flat = np.asarray(entry["target"]).ndim == 1
                width = 1 if flat else len(entry["target"])
                planes = np.stack([one.quantile(q) for q in config.quantiles])[:, :width, : self.prediction_length]
                yield QuantileForecast(
                    forecast_arrays=planes[:, 0] if flat else planes,  # [Q, V, H], as the official one
                    forecast_keys=[str(q) for q in config.quantiles], start_date=forecast_start(entry),
                    item_id=entry.get("item_id"), info=entry.get("info"),
                )  # fmt: skip

    def _inputs(self, entry: dict[str, Any]) -> dict[str, NDArray[Any]]:
        """One entry as the official model takes it."""
        config, steps, patch = self.config, self.past_length, self.core.info.patch_size
        target = _target(entry)
        length = target.shape[1]
        observed = ~np.isnan(target)
        target = imputed(target, config.imputation_internal)
        if config.past_feat_dynamic_real_dim > 0:
            past = np.atleast_2d(np.asarray(entry["past_feat_dynamic_real"], np.float32))[:, :length]
            target = np.concatenate([target, np.nan_to_num(past, nan=0.0)])
            observed = np.concatenate([observed, ~np.isnan(past)])
        out = {
            "target": _last(target, steps, 0),
            "target_mask": _last(observed, steps, 0),
            "series_ids": np.zeros(len(target), np.int32),
        }
        if config.feat_dynamic_real_dim > 0:
            ahead = np.atleast_2d(np.asarray(entry["feat_dynamic_real"], np.float32))
            coming = -(-self.prediction_length // patch) * patch
            known = [_last(ahead[:, :length], steps, 0), ahead[:, length : length + coming]]
            given = [_last(~np.isnan(ahead[:, :length]), steps, 0), ~np.isnan(known[1])]
            out["known_dynamic"] = np.nan_to_num(np.concatenate(known, axis=1), nan=0.0)
            out["known_dynamic_mask"] = np.concatenate(given, axis=1)
            out["known_dynamic_series_ids"] = np.zeros(len(ahead), np.int32)
        return out
