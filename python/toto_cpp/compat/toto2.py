# SPDX-License-Identifier: Apache-2.0
"""The classes of ``toto-2`` (Toto 2.0) by their names, arguments and shapes.

    from toto_cpp.compat.toto2 import Toto2GluonTSModel, Toto2GluonTSModelConfig, Toto2Model
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError
from .._options import DECILES
from ..model import Model
from ._like import Accepting, like, to_numpy

__all__ = ["Toto2GluonTSModel", "Toto2GluonTSModelConfig", "Toto2Model"]


class TensorError(UsageError, RuntimeError):
    """Arrays that the official code refuses with an error of einops or torch, which are ``RuntimeError``."""


class Toto2Model(Accepting):
    """A checkpoint of Toto 2.0."""

    def __init__(self, core: Model) -> None:
        if core.info.architecture != "toto-2.0":
            raise ValueError(f"{core.info.name} is {core.info.architecture}: use toto_cpp.compat.toto")
        self.core = core

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: Any,
        *,
        force_download: bool = False,
        resume_download: bool | None = None,
        proxies: Any = None,
        token: Any = None,
        cache_dir: Any = None,
        local_files_only: bool = False,
        revision: str | None = None,
        map_location: str = "cpu",
        strict: bool = True,
        **options: Any,
    ) -> Toto2Model:
        """``pretrained_model_name_or_path``: as ``toto_cpp.load``; ``options`` are those of ``toto_cpp.load``. What
        stands between them is accepted and changes nothing: nothing is downloaded."""
        return cls(Model(pretrained_model_name_or_path, **options))

    def forecast(self, inputs: dict[str, Any], horizon: int, **kwargs: Any) -> Any:
        """Quantiles [9, B, V, horizon] at 0.1 ... 0.9. ``inputs``: ``target`` and ``target_mask`` [B, V, T] (True where
        observed), T whole patches, ``series_ids`` [B, V]; and, known ahead, ``known_dynamic``, ``known_dynamic_mask``
        [B, E, n] and ``known_dynamic_series_ids`` [B, E], for n steps from the first of the context on; what is
        masked, and what lies after n, is missing. B may be left out. Options: ``decode_block_size``,
        ``has_missing_values``, ``scaler_fallback_min_obs``, ``quantile_real_cap_k``. As in the official code, a mask
        of numbers or a context of a part of a patch is an error, and a horizon of nothing gives nothing."""
        options = decoding_options(kwargs, self.core.info.patch_size)
        if kwargs:
            warnings.warn(f"forecast() takes no {next(iter(kwargs))!r} and ignores it", stacklevel=2)
        target = to_numpy(inputs["target"])
        variates, outer = target.shape[-2], target.shape[:-2]
        if horizon <= 0:
            return like(inputs["target"], np.zeros((len(DECILES), *outer, variates, 0), np.float32))
        given = Arguments(inputs, horizon, self.core.info.patch_size)
        found = self.core.forecast(given.values, given.horizon, DECILES, **given.options, **options)
        quantiles = found.quantiles[:, :, :variates, :horizon].reshape((len(DECILES), *outer, variates, horizon))
        return like(inputs["target"], quantiles)


def decoding_options(kwargs: dict[str, Any], patch: int) -> dict[str, Any]:
    """Takes its own out of ``kwargs``; None and 0 are what is left out."""
    block = int(kwargs.pop("decode_block_size", 0) or 0)
    if block > 0 and block % patch != 0:
        raise AssertionError(f"decode_block_size ({block}) must be divisible by patch_size ({patch})")
    return {
        "decode_block_size": max(block, 0),
        "has_missing_values": bool(kwargs.pop("has_missing_values", True)),
        "scaler_fallback_min_obs": int(kwargs.pop("scaler_fallback_min_obs", 0) or 0),
        "quantile_real_cap_k": float(kwargs.pop("quantile_real_cap_k", 0.0) or 0.0),
    }


def _mask(given: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = to_numpy(given)
    if mask.dtype.kind == "f":
        raise TensorError(f"expected a mask of booleans, found {mask.dtype}", code="invalid_input", status=2, where="mask")
    found: NDArray[np.bool_] = mask.astype(bool, copy=False).reshape(shape)
    return found


class Arguments:
    """The inputs of the official model as those of ``Model.forecast``."""

    def __init__(self, inputs: dict[str, Any], horizon: int, patch: int) -> None:
        target = to_numpy(inputs["target"]).astype(np.float32, copy=False)
        values = target.reshape((-1, *target.shape[-2:]))
        steps = values.shape[-1]
        if steps == 0 or steps % patch != 0:
            raise TensorError(
                f"expected a context of whole patches of {patch} steps, found {steps} steps", code="invalid_input", status=2,
                where="target", remedy="pad it on the left, with a mask of False",
            )  # fmt: skip
        mask = _mask(inputs["target_mask"], values.shape)
        values = np.where(mask | ~np.isnan(values), values, np.float32(0))
        groups = to_numpy(inputs["series_ids"]).astype(np.int32, copy=False).reshape(values.shape[:2])
        self.horizon = horizon
        self.options: dict[str, Any] = {"context": steps, "as_reference": True}
        if inputs.get("known_dynamic") is not None:
            given = to_numpy(inputs["known_dynamic"]).astype(np.float32, copy=False)
            given = given.reshape((-1, *given.shape[-2:]))
            observed = _mask(inputs["known_dynamic_mask"], given.shape)
            own = to_numpy(inputs["known_dynamic_series_ids"]).astype(np.int32, copy=False).reshape(given.shape[:2])
            whole = -(-horizon // patch) * patch
            if given.shape[-1] > steps + whole:
                raise TensorError(
                    f"expected at most {steps + whole} steps, found {given.shape[-1]}", code="invalid_covariates", status=2,
                    where="known_dynamic", remedy="give those of the context and of the horizon",
                )  # fmt: skip
            if given.shape[-1] > steps + horizon:  # the model looks at all of the last patch
                self.horizon = whole
            short = ((0, 0), (0, 0), (0, max(0, steps + self.horizon - given.shape[-1])))
            known, observed = np.pad(given, short), np.pad(observed, short)
            known = np.where(observed | ~np.isnan(known), known, np.float32(0))
            values = np.concatenate([values, known[..., :steps]], axis=1)
            mask = np.concatenate([mask, observed[..., :steps]], axis=1)
            groups = np.concatenate([groups, own], axis=1)
            ahead, seen = np.ascontiguousarray(known[..., steps:]), observed[..., steps:]
            self.options.update(exogenous=known.shape[1], future_exogenous=ahead, future_mask=seen)
        self.values = values
        self.options.update(mask=mask, groups=groups)


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
