# SPDX-License-Identifier: Apache-2.0
"""Makes the training package importable from the source tree; a small model that several tests look at."""

import pathlib
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "training"))

from nano2_support import RECIPE  # noqa: E402
from toto_nano2.model import Config, Toto2  # noqa: E402


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    made = Toto2(Config(**RECIPE["model"]))
    for p in made.head.parameters():  # as they begin, forecasts are nearly flat
        p.data *= 30
    return made.eval()
