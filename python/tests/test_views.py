# SPDX-License-Identifier: Apache-2.0
"""Views, and gaps that are filled by a season or by the model."""

import numpy as np
import pytest

import toto_cpp


@pytest.fixture(scope="module")
def model():
    with toto_cpp.load() as loaded:
        yield loaded


HOURS = 20 + 3 * np.sin(np.arange(192) * 2 * np.pi / 24)


def test_views_are_averages_of_quantiles(model):
    plain = model.forecast(HOURS, 12)
    flipped = model.forecast(-HOURS, 12)
    both = model.forecast(HOURS, 12, views="flip")
    expected = (plain.quantiles.astype(float) - flipped.quantiles.astype(float)[::-1]) / 2
    np.testing.assert_array_equal(both.quantiles, expected.astype(np.float32))


def test_the_season_is_found_in_the_values(model):
    noise = np.random.default_rng(3)
    table = noise.standard_normal(60)
    t = np.arange(60 * 8 + 48)
    y = table[t % 60] + 0.02 * noise.standard_normal(len(t))
    error = {
        views: np.abs(model.forecast(y[:-48], 48, views=views).median.ravel() - table[t[-48:] % 60]).mean()
        for views in ("", "season")
    }
    assert error["season"] < error[""] / 2


def test_views_have_no_samples(model):
    for options in ({"samples": True}, {"parameters": True}, {"mean_only": True}):
        with pytest.raises(toto_cpp.TotoError) as caught:
            model.forecast(HOURS, 12, views="flip", **options)
        assert caught.value.code == "invalid_views"


def test_gaps(nano1):
    lost = HOURS.copy()
    lost[100:112] = np.nan
    whole = nano1.forecast(HOURS, 12).median
    error = {
        how: np.abs(nano1.forecast(lost, 12, missing=how, season=24).median - whole).sum()
        for how in ("linear", "seasonal", "model")
    }
    # Not zero: what is filled in stays out of the scaler, whatever it is.
    assert max(error["seasonal"], error["model"]) < error["linear"] / 4
    with pytest.raises(toto_cpp.TotoError) as caught:
        nano1.forecast(lost, 12, missing="seasonal")
    assert caught.value.code == "invalid_season"


def test_toto2_looks_at_no_fill(nano):
    """It is told which steps are missing: what stands there decides nothing."""
    lost = HOURS.copy()
    lost[100:112] = np.nan
    linear, seasonal = (nano.forecast(lost, 12, missing=how, season=24).quantiles for how in ("linear", "seasonal"))
    np.testing.assert_array_equal(linear, seasonal)
    assert (linear != nano.forecast(HOURS, 12).quantiles).any()
