# SPDX-License-Identifier: Apache-2.0
"""Makes the training package importable from the source tree."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "training"))
