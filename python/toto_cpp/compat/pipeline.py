# SPDX-License-Identifier: Apache-2.0
"""A pipeline that is loaded once and asked often, with the switches that programs for ``torch.compile`` have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..forecast import Forecast, ForecastBatch
from .._options import DECILES
from ..model import Model
from ._like import Accepting

__all__ = ["TotoPipeline"]

_MODES = {None: None, "default": "default", "reduce-overhead": "reduce-overhead", "max-autotune": "max-autotune", "eager": "eager"}


class TotoPipeline(Accepting):
    """``TotoPipeline.from_pretrained(...).predict(...)``. TOTO_* variables hold as everywhere, among them
    TOTO_DISABLE_COMPILE=1, TOTO_COMPILE_MODE and TOTO_COMPILE_BACKEND (docs/settings.md)."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @classmethod
    def from_pretrained(
        cls,
        model_id: Any = None,
        *,
        device: str | None = None,
        torch_compile: bool | None = None,
        compile_mode: str | None = None,
        torch_dtype: Any = None,
        **options: Any,
    ) -> TotoPipeline:
        """``torch_compile=False`` is the mode "eager"; ``compile_mode`` another one; ``device`` "cpu", "cuda" or "auto";
        ``torch_dtype`` "float32", "bfloat16" or torch's own. Other options are those of ``toto_cpp.load``."""
        if compile_mode not in _MODES:
            raise ValueError(f"expected compile_mode to be one of {sorted(m for m in _MODES if m)}, found {compile_mode!r}")
        mode = "eager" if torch_compile is False else compile_mode
        if torch_dtype is not None:
            options["precision"] = str(torch_dtype).removeprefix("torch.")
        if device is not None:
            options["device"] = str(device).split(":")[0]
        if mode is not None:
            options["mode"] = mode
        return cls(Model(model_id, **options))

    def predict(
        self,
        context: Any,
        prediction_length: int = 64,
        num_samples: int = 256,
        quantile_levels: Sequence[float] = DECILES,
        **options: Any,
    ) -> Forecast | ForecastBatch:
        """As ``Model.forecast``."""
        found: Forecast | ForecastBatch = self.model.forecast(context, prediction_length, quantile_levels, num_samples=num_samples, **options)
        return found

    def warmup(self, shapes: Sequence[tuple[int, ...]]) -> TotoPipeline:
        """Gets ready for shapes (context, horizon[, variates[, batch]])."""
        self.model.warm_up(shapes)
        return self

    @property
    def counters(self) -> dict[str, Any]:
        """What was built, reused and allocated: ``plan_builds`` is what recompiles were."""
        return self.model.counters
