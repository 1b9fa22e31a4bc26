# SPDX-License-Identifier: Apache-2.0
"""A missing end, the input scale and bounds."""

import numpy as np
import pytest

import toto_cpp


def test_a_missing_end_is_forecast_across(nano, wave):
    longer = nano.forecast(wave[:400], 50).median
    missing = np.r_[wave[:400], np.full(40, np.nan, np.float32)]
    assert (nano.forecast(missing, 10).median == longer[40:]).all()
    assert (nano.forecast(missing, 10, across_missing=False).median != longer[40:]).any()


def test_the_context_ends_with_what_is_there(nano, wave):
    missing = np.r_[wave[:400], np.full(40, np.nan, np.float32)]
    cut = nano.forecast(np.stack([missing, missing])[:, 272:], 10).median
    assert (nano.forecast(np.stack([missing, missing]), 10, context=128).median == cut).all()
    assert (nano.forecast(missing[None], 10, context=128).median != nano.forecast(missing[None], 10, context=88).median).any()
    plain = dict(across_missing=False, seed=1)
    assert (nano.forecast(missing, 10, context=128, **plain).median == nano.forecast(missing[312:], 10, **plain).median).all()


def test_units_do_not_matter(nano, wave):
    plain = nano.forecast(wave, 48).quantiles
    small = nano.forecast(wave * np.float32(2**-30), 48).quantiles
    assert (small * np.float32(2**30) == plain).all()
    assert (nano.forecast(wave, 48, as_reference=True).quantiles == nano.forecast(wave, 48, input_scale=1, clamp=0).quantiles).all()


def test_bounds_hold(nano, wave):
    found = nano.forecast(wave * 10, 40, minimum=-2.5, maximum=6, integer=True)
    assert found.quantiles.min() >= -2.5 and found.quantiles.max() <= 6
    inside = found.median[(found.median > -2.5) & (found.median < 6)]
    assert (inside == np.rint(inside)).all()
    with pytest.raises(toto_cpp.TotoError) as error:
        nano.forecast(wave, 4, minimum=2, maximum=1)
    assert error.value.code == "invalid_guard"


@pytest.mark.parametrize("which", ["nano", "nano1"])
def test_bounds_are_those_of_the_sum(request, which, wave):
    """Of what a regression has put back, in a batch where only some series have covariates too."""
    nano = request.getfixturevalue(which)
    rng = np.random.default_rng(3)
    known = rng.normal(size=(1, 512 + 24)).astype(np.float32)
    both = wave + 3 * known[0, :512]
    bounds = dict(minimum=-2, maximum=2, integer=True)
    free, found = nano.forecast(both, 24, covariates=known), nano.forecast(both, 24, covariates=known, **bounds)
    np.testing.assert_array_equal(found.quantiles, np.clip(np.rint(free.quantiles), -2, 2))
    np.testing.assert_array_equal(found.mean, np.clip(free.mean, -2, 2))
    assert free.quantiles.max() > 3
    done = []
    batch = nano.forecast(
        [5 * wave, both, wave], 24, ids=["1", "0", "2"], covariates=[None, known, None], progress=lambda *a: done.append(a), **bounds
    )
    assert (batch[1].quantiles == found.quantiles).all() and (batch[1].mean == found.mean).all()
    for i, alone in ((0, 5 * wave), (2, wave)):
        assert (batch[i].quantiles == nano.forecast(alone, 24, ids=batch[i].id, **bounds).quantiles).all()
        assert batch[i].id == "102"[i]
    assert done == sorted(done) and done[-1] == (300, 300)
    with toto_cpp.Service(nano) as service:
        assert (service.submit(both, 24, id="0", covariates=known, **bounds).result().quantiles == found.quantiles).all()
    with pytest.raises(toto_cpp.UsageError, match="invalid_guard"):
        nano.forecast(both, 24, covariates=known, minimum=2, maximum=1)
