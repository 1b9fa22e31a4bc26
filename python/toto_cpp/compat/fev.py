# SPDX-License-Identifier: Apache-2.0
"""Models of fev (forecast evaluation) over both generations: ``Toto1Model().fit_predict(task)``."""

from __future__ import annotations

from typing import Any

import datasets
import fev
import numpy as np

from ..frames import _FRAME_DEFAULTS
from ..model import Model

__all__ = ["Toto1Model", "Toto2Model"]


class _TotoModel(fev.ForecastingModel):
    """Forecasts every series of a task from its past alone; the targets of an item are variates of one series."""

    model_path: str | None = None
    trained_on_datasets: list[str] = []

    def __init__(
        self,
        model_path: str | None = None,
        context_length: int = 4096,
        num_samples: int = 256,
        as_univariate: bool = False,
        seed: int = 0,
        **load_options: Any,
    ) -> None:
        """``model_path``: as ``toto_cpp.load``, with its options; None: the published checkpoint."""
        super().__init__()
        self._path = model_path or self.model_path
        self._load_options = load_options
        self._options: dict[str, Any] = {"context": context_length, "num_samples": num_samples, "seed": seed, "as_reference": True, **_FRAME_DEFAULTS}
        self.as_univariate = as_univariate
        self._model: Model | None = None

    def _fit_predict(self, task: Any) -> list[Any]:
        if self._model is None:
            self._model = Model(self._path, **self._load_options)
        return [self._window(window, task) for window in task.iter_windows()]

    def _window(self, window: Any, task: Any) -> Any:
        assert self._model is not None
        past, _ = window.get_input_data()
        targets = list(window.target_columns)
        values = [np.stack([np.asarray(row[name], np.float32) for name in targets]) for row in past.select_columns(targets)]
        count = len(values)
        if self.as_univariate:
            values = [one[v : v + 1] for one in values for v in range(len(targets))]
        levels = sorted({0.5, *task.quantile_levels})
        with self._record_inference_time():
            found = self._model.forecast(values, window.horizon, levels, **self._options)
        shape = (count, len(targets), window.horizon)
        quantiles = found.quantiles.reshape(len(levels), *shape)
        wants_mean = task.eval_metric in ("MSE", "RMSE", "RMSSE") and self._model.info.architecture == "toto-1.0"
        point = found.mean.reshape(shape) if wants_mean else quantiles[levels.index(0.5)]
        columns = {
            name: datasets.Dataset.from_dict(
                {"predictions": point[:, v], **{str(q): quantiles[levels.index(q), :, v] for q in task.quantile_levels}}
            )
            for v, name in enumerate(targets)
        }
        return datasets.DatasetDict(columns)


class Toto1Model(_TotoModel):
    """Toto 1.0."""

    model_name = "toto-1.0-cpp"
    model_path = "Datadog/Toto-Open-Base-1.0"


class Toto2Model(_TotoModel):
    """Toto 2.0."""

    model_name = "toto-2.0-cpp"
    model_path = "Datadog/Toto-2.0-22m"
