# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the classes that programs use today: change the import line, keep the rest.

``toto_cpp.compat.toto`` for ``toto-ts``, ``toto_cpp.compat.toto2`` for ``toto-2``, ``toto_cpp.compat.gluonts`` for the
predictors of both, ``toto_cpp.compat.pipeline`` for a pipeline that is loaded once.
"""

from .pipeline import TotoPipeline
from .toto import MaskedTimeseries, Toto, TotoForecaster
from .toto2 import Toto2GluonTSModel, Toto2GluonTSModelConfig, Toto2Model

__all__ = [
    "MaskedTimeseries",
    "Toto",
    "Toto2GluonTSModel",
    "Toto2GluonTSModelConfig",
    "Toto2Model",
    "TotoForecaster",
    "TotoPipeline",
]
