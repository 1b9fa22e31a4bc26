# SPDX-License-Identifier: Apache-2.0
"""Pictures."""

import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest


def test_svg(nano, wave, monkeypatch):
    f = nano.forecast(np.stack([wave, wave]), 24)
    for text in (f._repr_html_(), f"{f!r}"):
        assert text
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    picture = f.plot(np.stack([wave, wave]))
    root = ET.fromstring(str(picture))
    assert root.tag.endswith("svg") and picture._repr_svg_() == str(picture)
    assert "NaN" not in str(picture) and len(str(picture)) > len(f._repr_html_())
    ET.fromstring(nano.forecast(wave, 5, mean_only=True)._repr_html_())


def test_matplotlib(nano, wave):
    pytest.importorskip("matplotlib").use("Agg")
    axes = nano.forecast(wave, 24).plot(wave)
    assert len(axes.lines) == 2 and len(axes.collections) == 4
