# SPDX-License-Identifier: Apache-2.0
"""Forecasts of time series with Toto models, without PyTorch.

>>> import numpy as np
>>> import toto_cpp
>>> model = toto_cpp.load()
>>> forecast = model.forecast(np.sin(np.arange(512) / 8), horizon=24, quantiles=[0.1, 0.5, 0.9])
>>> forecast.quantiles.shape
(3, 24)
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import version as __version__
from ._errors import (
    CancelledError,
    ConfigError,
    DataError,
    DeadlineError,
    DeviceError,
    InternalError,
    MissingInputError,
    QueueFullError,
    StorageError,
    TotoError,
    UsageError,
)
from .forecast import Forecast, ForecastBatch
from .model import Model, ModelInfo, load

if TYPE_CHECKING:
    from .batches import forecast_batches
    from .dataset import forecast_dataset
    from .evaluation import Backtest, backtest
    from .frames import cross_validation, detect_anomalies, forecast_df, predict_df
    from .service import Future, Service

atexit.register(_core.wait_for_watched)

#: Found when they are first asked for, so that importing toto_cpp stays quick.
_LATER = {
    "Service": "service",
    "Future": "service",
    "predict_df": "frames",
    "forecast_df": "frames",
    "cross_validation": "frames",
    "detect_anomalies": "frames",
    "forecast_batches": "batches",
    "forecast_dataset": "dataset",
    "backtest": "evaluation",
    "Backtest": "evaluation",
}

__all__ = [
    "Backtest",
    "CancelledError",
    "ConfigError",
    "DataError",
    "DeadlineError",
    "DeviceError",
    "Forecast",
    "ForecastBatch",
    "Future",
    "InternalError",
    "MissingInputError",
    "Model",
    "ModelInfo",
    "QueueFullError",
    "Service",
    "StorageError",
    "TotoError",
    "UsageError",
    "__version__",
    "backtest",
    "cross_validation",
    "detect_anomalies",
    "forecast_batches",
    "forecast_dataset",
    "forecast_df",
    "load",
    "predict_df",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
