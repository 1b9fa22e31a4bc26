# SPDX-License-Identifier: Apache-2.0
"""The classes of ``toto-2`` (Toto 2.0) by their names, arguments and shapes.

    from toto_cpp.compat.toto2 import Toto2GluonTSModel, Toto2GluonTSModelConfig, Toto2Model
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from .._errors import usage
from ..model import DECILES, Model
from ._like import Accepting, like, to_numpy

__all__ = ["Toto2GluonTSModel", "Toto2GluonTSModelConfig", "Toto2Model"]


class Toto2Model(Accepting):
    """A checkpoint of Toto 2.0."""

    def __init__(self, core: Model) -> None:
        if core.info.architecture != "toto-2.0":
            raise ValueError(f"{core.info.name} is {core.info.architecture}: use toto_cpp.compat.toto")
        self.core = core

    @classmethod
    def from_pretrained(cls, model_id: Any, *, map_location: str = "cpu", **options: Any) -> Toto2Model:
        """``model_id``: as ``toto_cpp.load``; other options are those of ``toto_cpp.load`` too."""
        for ignored in ("strict", "revision", "cache_dir", "force_download", "proxies", "resume_download", "token", "local_files_only"):
            options.pop(ignored, None)
        return cls(Model(model_id, **options))

    def forecast(self, inputs: dict[str, Any], horizon: int, **kwargs: Any) -> Any:
        """Quantiles [9, B, V, horizon] at 0.1 ... 0.9. ``inputs``: ``target`` and ``target_mask`` [B, V, T] (True where
        observed), ``series_ids`` [B, V]; and, known ahead, ``known_dynamic``, ``known_dynamic_mask``
        [B, E, T + horizon] and ``known_dynamic_series_ids`` [B, E]. Options: ``decode_block_size``,
        ``has_missing_values``, ``scaler_fallback_min_obs``, ``quantile_real_cap_k``."""
        options = {
            "decode_block_size": int(kwargs.pop("decode_block_size", None) or 0),
            "has_missing_values": bool(kwargs.pop("has_missing_values", True)),
            "scaler_fallback_min_obs": int(kwargs.pop("scaler_fallback_min_obs", 0)),
            "quantile_real_cap_k": float(kwargs.pop("quantile_real_cap_k", 0.0)),
        }
        if kwargs:
            raise TypeError(f"forecast() got an unexpected keyword argument {next(iter(kwargs))!r}")
        target = to_numpy(inputs["target"]).astype(np.float32, copy=False)
        outer = target.shape[:-2]
        batch = target.reshape((-1, *target.shape[-2:]))
        mask = to_numpy(inputs["target_mask"]).astype(bool, copy=False).reshape(batch.shape)
        batch = np.where(mask | ~np.isnan(batch), batch, np.float32(0))
        groups = to_numpy(inputs["series_ids"]).astype(np.int32, copy=False).reshape(batch.shape[:2])
        variates, steps = batch.shape[1:]
        exogenous, future = 0, None
        if inputs.get("known_dynamic") is not None:
            given = to_numpy(inputs["known_dynamic"]).astype(np.float32, copy=False)
            known = given.reshape((-1, *given.shape[-2:]))
            exogenous = known.shape[1]
            observed = np.ones(known.shape, bool)
            if inputs.get("known_dynamic_mask") is not None:
                observed = to_numpy(inputs["known_dynamic_mask"]).astype(bool, copy=False).reshape(known.shape)
            if not observed[..., steps : steps + horizon].all():
                raise usage(
                    "missing_covariate", "known_dynamic_mask has missing values in the horizon, which this version does not take",
                    "known_dynamic_mask", "give a value for every step of the horizon",
                )  # fmt: skip
            known = np.where(observed | ~np.isnan(known), known, np.float32(0))
            future = np.ascontiguousarray(known[..., steps : steps + horizon])
            batch = np.concatenate([batch, known[..., :steps]], axis=1)
            mask = np.concatenate([mask, observed[..., :steps]], axis=1)
            ids = inputs.get("known_dynamic_series_ids")
            own = np.zeros(known.shape[:2], np.int32) if ids is None else to_numpy(ids).astype(np.int32).reshape(known.shape[:2])
            groups = np.concatenate([groups, own], axis=1)
        found = self.core.forecast(
            batch, horizon, DECILES, mask=mask, groups=groups, exogenous=exogenous, future_exogenous=future,
            context=max(1, steps), **options,
        )  # fmt: skip
        quantiles = found.quantiles[:, :, :variates].reshape((len(DECILES), *outer, variates, horizon))
        return like(inputs["target"], quantiles)


@dataclass
class Toto2GluonTSModelConfig:
    """How a GluonTS predictor looks at series."""

    prediction_length: int
    context_length: int
    target_dim: int
    past_feat_dynamic_real_dim: int = 0
    feat_dynamic_real_dim: int = 0
    decode_block_size: int | None = None
    has_missing_values: bool = True
    quantiles: list[float] = field(default_factory=lambda: list(DECILES))
    imputation_internal: Literal["none", "ffill", "linear"] = "ffill"
    scaler_fallback_min_obs: int = 8
    quantile_real_cap_k: float = 1e4


class Toto2GluonTSModel:
    """Makes GluonTS predictors: ``Toto2GluonTSModel(model, config).create_predictor(batch_size=32)``."""

    def __init__(self, model: Any, config: Toto2GluonTSModelConfig) -> None:
        self.model = Toto2Model(model) if isinstance(model, Model) else model
        self.config = config

    def create_predictor(self, batch_size: int, device: str = "auto") -> Any:
        """A predictor of GluonTS whose forecasts are ``QuantileForecast``."""
        from .gluonts import Toto2Predictor

        return Toto2Predictor(self.model.core, self.config, batch_size)
