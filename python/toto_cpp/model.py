# SPDX-License-Identifier: Apache-2.0
"""Models: load one, forecast with it."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, overload

from numpy.typing import NDArray

from . import _core
from ._errors import TotoError
from ._options import DECILES, CallOptions, ForecastOptions, Progress, make_options
from .forecast import Forecast, ForecastBatch, wrap

if TYPE_CHECKING:
    from typing_extensions import Unpack

_SETTINGS = {
    "preset", "mode", "kv_cache", "device", "backend", "precision", "threads", "seed", "plan_cache_dir", "plan_cache", "max_plans",
    "memory_limit", "log", "strict_counters", "deterministic_checks",
}  # fmt: skip


@dataclass(frozen=True)
class ModelInfo:
    """What a checkpoint is."""

    name: str  #: what was asked for: a Hub id, a path, or "toto-nano-2"
    folder: str
    weight_files: list[str]
    architecture: Literal["toto-1.0", "toto-2.0"]
    synthetic: bool  #: made-up weights: forecasts mean nothing
    patch_size: int  #: steps per token
    embed_dim: int
    num_layers: int
    num_heads: int
    mlp_hidden_dim: int
    scaler: str
    head: str
    components: int
    variate_labels: bool
    default_paths: Literal["independent", "coherent"]  #: what ``paths="auto"`` is
    default_tails: Literal["clamp", "exponential", "normal"]  #: what ``tails="auto"`` is
    parameters: int
    file_bytes: int
    stored_types: list[tuple[str, int]]
    warnings: list[str]


class Model:
    """A model in memory, with all that forecasts need. Safe to use from many threads: forecasts of one model take
    turns, and ``Service`` computes those of many threads together.

    After ``fork`` the child loads the model again when it first uses it. Pickling stores the path and the options,
    never weights; a process that unpickles several loads one.

    >>> import numpy as np, toto_cpp
    >>> with toto_cpp.load() as model:
    ...     model.forecast(np.sin(np.arange(512) / 8), 24).mean.shape
    (24,)
    """

    def __init__(self, model: str | PathLike[str] | None = None, **options: Any) -> None:
        """As ``toto_cpp.load``."""
        self._info: ModelInfo | None = None
        self._args = (None if model is None else fspath(model), dict(sorted(options.items())))
        flags = dict(options)
        flags = {name: value for name, value in flags.items() if value is not None}
        name, preset, seed = self._args[0], flags.pop("synthetic", None), int(flags.pop("synthetic_seed", 0))
        hub_cache, strict = flags.pop("hub_cache", None), bool(flags.pop("strict", False))
        unknown = sorted(flags.keys() - _SETTINGS)
        if unknown:
            raise TypeError(f"load() has no option {unknown[0]!r}; there are {', '.join(sorted(_SETTINGS))}")
        log = flags.get("log")
        if log is not None and not isinstance(log, str):
            flags["log"] = ",".join(log)
        self._core = _core.ModelHandle(name, preset, seed, None if hub_cache is None else fspath(hub_cache), strict, flags)

    @classmethod
    def load(cls, model: str | PathLike[str] | None = None, **options: Any) -> Model:
        """As ``toto_cpp.load``."""
        return cls(model, **options)

    @classmethod
    def synthesise(cls, preset: str, seed: int = 0, **options: Any) -> Model:
        """Made-up weights of a published size, for tests and benchmarks: "toto-open-base-1.0", "toto-2.0-4m",
        "toto-2.0-22m", "toto-2.0-313m", "toto-2.0-1b" or "toto-2.0-2.5b". Its forecasts mean nothing."""
        return cls(None, synthetic=preset, synthetic_seed=seed, **options)

    @overload
    def forecast(
        self, inputs: Sequence[NDArray[Any]], horizon: int = ..., quantiles: Sequence[float] = ..., **options: Unpack[CallOptions]
    ) -> ForecastBatch: ...
    @overload
    def forecast(
        self, inputs: Any, horizon: int = ..., quantiles: Sequence[float] = ..., **options: Unpack[CallOptions]
    ) -> Forecast | ForecastBatch: ...
    def forecast(
        self,
        inputs: Any,
        horizon: int = 64,
        quantiles: Sequence[float] = DECILES,
        *,
        ids: Any = None,
        mask: Any = None,
        groups: Any = None,
        covariates: Any = None,
        exogenous: int = 0,
        future_exogenous: Any = None,
        future_mask: Any = None,
        progress: Progress | None = None,
        **options: Unpack[ForecastOptions],
    ) -> Forecast | ForecastBatch:
        """Forecasts one series or a batch.

        ``inputs``: [T] is one series; [V, T] is one series of V variates that are forecast jointly; [N, V, T], or a
        list of [T] and [V, T] of any lengths, is a batch. NumPy, lists of numbers, DLPack and buffers (torch, jax on
        the CPU), columns of pandas and polars. float32 in C order is used where it lies; NaN means missing.

        ``horizon``: steps, 1 to 100,000. ``quantiles``: levels between 0 and 1.

        ``ids``: names, one for each series of a batch; "0", "1", ... by default. Random numbers are addressed by
        (seed, id, variate, sample, step), so a series has the same forecast alone and in a batch.
        ``mask``: as the values, True where observed. ``groups``: [V] or [V, T] whole numbers; variates attend to
        each other within a group. ``covariates``: [E, T + horizon], known ahead. ``exogenous`` and
        ``future_exogenous`` [E, horizon]: the last E variates are covariates in the model's own form;
        ``future_mask``: as the latter, True where known (Toto 2.0). For a batch each of these is a list with one
        element for each series.

        ``progress``: called with units done and in all, some 50 times a second; returning False stops.
        ``num_samples``: trajectories (256) for the steps that are not exact; ``samples=True`` keeps them.
        ``parameters=True`` keeps the mixture. ``mean_only``: one trajectory of means, nothing is drawn.
        ``seed``: None is TOTO_SEED, else 0. ``decode``: "cached" (default) or "uncached". ``quantiles_from``: "auto" or
        "samples". ``paths``: "independent", or "coherent": the steps are drawn together; "auto": as the model names
        (``info.default_paths``). ``tails``: what Toto 2.0 gives beyond its quantiles 0.1 and 0.9: "clamp", these two, or
        "exponential" or "normal", which are assumptions; "auto" likewise. ``align``: "pad" or "trim". ``missing``: what stands for NaN: "ffill", "linear", "zero", "seasonal" (long gaps as ``season`` steps before
        and after), "model" (gaps of 4 steps or more as the model forecasts them) or "error". ``views``: "flip,log,season,context/2":
        other looks that are forecast as well, one pass each, and averaged in quantiles (no samples, no parameters). ``context``:
        the last so many steps (4096) are looked at, up to the last that is there. ``decode_block_size``,
        ``has_missing_values``, ``scaler_fallback_min_obs`` and ``quantile_real_cap_k`` are Toto 2.0's, as in the
        official code.

        ``across_missing``: a context without values at its end is forecast from its last one; the steps in between are
        left out. ``input_scale``: what the model sees is the series times this; 0: a power of two for each variate.
        ``clamp``: sampled steps stay within so many ranges (4) of the context; 0: free. ``minimum``, ``maximum``: of all
        results; ``integer``: medians, quantiles and samples are whole numbers. ``as_reference=True`` does without all of
        these, as the official code, and "auto" is then "independent" and "clamp".

        ``value_offset``: values of float64 that float32 has too few digits for (around 1e7, or prices with small moves) are
        forecast as differences from an exact offset, as the command line does, and results are float64 with it added;
        False: they are rounded. ``as_reference`` rounds them too.

        ``covariates_by``: "model": the model takes ``covariates``. "regress": a ridge regression takes their effect out of
        the series, the model forecasts the rest, and the effect is put back. "auto": as the model was trained.

        Returns ``Forecast``, or ``ForecastBatch`` for a batch. Raises TotoError with the codes of docs/errors.md,
        and KeyboardInterrupt on Ctrl-C.
        """
        chosen = make_options(horizon, quantiles, **options)
        return wrap(
            self._core.forecast(
                inputs, chosen, ids, mask, groups, covariates, exogenous, future_exogenous, future_mask, progress
            )
        )

    def warm_up(self, shapes: Sequence[tuple[int, ...]], **options: Unpack[ForecastOptions]) -> None:
        """Gets ready for shapes (context, horizon[, variates[, batch]]): their first forecast takes no longer than
        the others."""
        full: list[Any] = [(*shape, *(1, 1)[len(shape) - 2 :]) for shape in shapes]
        self._core.warm_up(full, make_options(full[0][1] if full else 64, **options))

    @property
    def info(self) -> ModelInfo:
        """What the checkpoint is."""
        if self._info is None:
            self._info = ModelInfo(**self._core.info())
        return self._info

    @property
    def settings(self) -> dict[str, tuple[str, str]]:
        """Every setting: its value and where it came from."""
        return dict(self._core.settings())

    @property
    def counters(self) -> dict[str, Any]:
        """What the machine did since the model was loaded."""
        return dict(json.loads(self._core.counters()))

    def close(self) -> None:
        """Frees the memory. Forecasts that were made stay valid; all else is the error ``closed``."""
        self._info = None
        self._core.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            info = self.info
        except (TotoError, AttributeError):
            return "<toto_cpp.Model, closed>"
        return f"<toto_cpp.Model {info.name!r}: {info.architecture}, {info.parameters / 1e6:.1f} M weights>"

    def __reduce__(self) -> Any:
        return _unpickle, self._args

    # Data frames: toto_cpp/frames.py.

    def predict_df(self, df: Any, future_df: Any = None, **options: Any) -> Any:
        """As ``toto_cpp.predict_df`` with this model."""
        from .frames import predict_df

        return predict_df(self, df, future_df, **options)

    def forecast_df(self, df: Any, h: int, **options: Any) -> Any:
        """As ``toto_cpp.forecast_df`` with this model."""
        from .frames import forecast_df

        return forecast_df(self, df, h, **options)

    def cross_validation(self, df: Any, h: int, **options: Any) -> Any:
        """As ``toto_cpp.cross_validation`` with this model."""
        from .frames import cross_validation

        return cross_validation(self, df, h, **options)

    def detect_anomalies(self, df: Any, **options: Any) -> Any:
        """As ``toto_cpp.detect_anomalies`` with this model."""
        from .frames import detect_anomalies

        return detect_anomalies(self, df, **options)


def load(model: str | PathLike[str] | None = None, **options: Any) -> Model:
    """Loads a model.

    ``model``: a folder, a ``.safetensors`` file with ``config.json`` beside it, or a Hub id that is in the local
    cache; None: TOTO_MODEL_ID, else toto-nano-2, which is part of this package. Nothing is downloaded.

    Options, each None by default: ``preset`` ("production", "development", "validation"), ``mode`` ("eager",
    "default", "reduce-overhead", "max-autotune"), ``kv_cache`` ("shared", "private"), ``device`` ("cpu", "cuda",
    "auto"), ``backend``, ``precision`` ("float32", "bfloat16", "tf32", "int8"), ``threads``, ``seed``,
    ``plan_cache_dir``, ``plan_cache`` ("prefer", "only",
    "never"), ``max_plans``, ``memory_limit`` (bytes), ``log`` (topics), ``strict_counters``,
    ``deterministic_checks``; ``hub_cache`` (folder), ``strict`` (unknown configuration keys are errors). What is
    left open is taken from TOTO_* variables (docs/settings.md). Messages go to the logger "toto_cpp".

    Raises TotoError: model_not_found (66), device_unavailable (69), and those of malformed files (65, 78).
    """
    return Model(model, **options)


_cache: weakref.WeakValueDictionary[Any, Model] = weakref.WeakValueDictionary()
_cache_lock = threading.Lock()


def _unpickle(model: str | None, given: dict[str, Any]) -> Model:
    key = (model, repr(given))
    with _cache_lock:
        found = _cache.get(key)
        if found is None:
            found = _cache[key] = Model(model, **given)
        return found
