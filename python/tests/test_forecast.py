# SPDX-License-Identifier: Apache-2.0
"""Arrays in, arrays out."""

import array
import statistics

import numpy as np
import pytest

import toto_cpp


def test_shapes_follow_the_input(nano, wave):
    one = nano.forecast(wave, 24, [0.1, 0.5, 0.9])
    assert isinstance(one, toto_cpp.Forecast)
    assert one.mean.shape == one.median.shape == one.std.shape == (24,)
    assert one.quantiles.shape == (3, 24)
    assert one.levels == [0.1, 0.5, 0.9]
    two = nano.forecast(np.stack([wave, wave * 2]), 24)
    assert two.mean.shape == (2, 24) and two.quantiles.shape == (9, 2, 24)
    batch = nano.forecast(np.stack([wave, wave * 2])[:, None], 24)
    assert isinstance(batch, toto_cpp.ForecastBatch)
    assert batch.mean.shape == (2, 1, 24) and batch.quantiles.shape == (9, 2, 1, 24)
    univariate = nano.forecast([wave, wave[:100]], 24)
    assert univariate.mean.shape == (2, 24) and univariate[1].mean.shape == (24,)
    assert [f.id for f in univariate] == ["0", "1"] and len(univariate) == 2
    assert nano.forecast([], 24).ids == []


@pytest.mark.parametrize("by", ["model", "regress"])
@pytest.mark.parametrize("at", [40, 210])
def test_infinite_covariates_are_refused(nano, toto2, by, at):
    x = np.random.default_rng(0).normal(size=224)
    y = 3 * x[:200] + np.sin(np.arange(200) / 6)
    known = x.copy()
    known[at] = np.inf
    for model in (nano, toto2):
        assert np.isfinite(model.forecast(y, 24, covariates=x[None], covariates_by=by).quantiles).all()
        with pytest.raises(toto_cpp.DataError, match="not_finite"):
            model.forecast(y, 24, covariates=known[None], covariates_by=by)


@pytest.mark.parametrize("at", [0, 1, 50])
def test_none_in_a_list_of_numbers_is_missing(nano, wave, at):
    values = [float(x) for x in wave]
    values[at] = None
    found = nano.forecast(values, 24)
    assert isinstance(found, toto_cpp.Forecast)
    expected = wave.astype(np.float64)
    expected[at] = np.nan
    np.testing.assert_array_equal(found.quantiles, nano.forecast(expected, 24).quantiles)


def test_arrays_are_contiguous_float32_of_the_result(nano, wave):
    f = nano.forecast([wave, wave * 3], 70, [0.25, 0.75], samples=True, num_samples=16)
    for a in (f.mean, f.median, f.std, f.quantiles, f.samples):
        assert a.dtype == np.float32 and a.flags.c_contiguous and not a.flags.owndata
    assert f.samples.shape == (16, 2, 70)
    assert np.shares_memory(f.mean, f[1].mean)
    mean = f.mean.copy()
    view = f.mean
    del f
    assert (view == mean).all()  # the memory outlives the forecast


def test_a_series_alone_and_in_a_batch_has_the_same_bits(nano, wave):
    rng = np.random.default_rng(0)
    many = [rng.normal(size=n).cumsum().astype(np.float32) for n in (90, 512, 64, 300)]
    names = ["a", "b", "c", "d"]
    batch = nano.forecast(many, 100, ids=names, seed=5, num_samples=8, samples=True)
    for values, name, inside in zip(many, names, batch):
        alone = nano.forecast(values, 100, ids=name, seed=5, num_samples=8, samples=True)
        np.testing.assert_array_equal(alone.samples, inside.samples)
        np.testing.assert_array_equal(alone.quantiles, inside.quantiles)
        np.testing.assert_array_equal(alone.mean, inside.mean)


def test_seeds(nano, wave):
    draw = lambda seed: nano.forecast(wave, 200, num_samples=8, samples=True, seed=seed).samples  # noqa: E731
    np.testing.assert_array_equal(draw(3), draw(3))
    assert (draw(3) != draw(4)).any()
    np.testing.assert_array_equal(draw(None), draw(0))


@pytest.mark.parametrize("kind", ["list", "float64", "int", "fortran", "strided", "buffer", "dlpack", "big-endian", "masked"])
def test_kinds_of_arrays(nano, wave, kind):
    values = np.round(wave * 100)
    given = {
        "list": lambda: [float(v) for v in values],
        "float64": lambda: values.astype(np.float64),
        "int": lambda: values.astype(np.int64),
        "fortran": lambda: np.asfortranarray(np.stack([values, values]))[0],
        "strided": lambda: np.repeat(values, 2)[::2],
        "buffer": lambda: array.array("f", values.tolist()),
        "dlpack": lambda: OnlyDlpack(values),
        "big-endian": lambda: values.astype(">f4"),
        "masked": lambda: np.ma.masked_array(values, np.zeros(512)),
    }[kind]()
    np.testing.assert_array_equal(nano.forecast(given, 8).mean, nano.forecast(values, 8).mean)


class OnlyDlpack:
    def __init__(self, values):
        self._values = values

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


def test_read_only_arrays(nano, wave):
    wave.flags.writeable = False
    assert nano.forecast(wave, 8).mean.shape == (8,)


@pytest.mark.parametrize("missing", ["ffill", "linear", "zero"])
def test_nan_is_missing(nano, wave, missing):
    filled = wave.copy()
    filled[100:104] = {
        "ffill": np.full(4, wave[99]),
        "linear": np.linspace(float(wave[99]), float(wave[104]), 6)[1:5],
        "zero": np.zeros(4),
    }[missing]
    mask = np.ones(512, bool)
    mask[100:104] = False
    holes = wave.copy()
    holes[100:104] = np.nan
    got = nano.forecast(holes, 8, missing=missing)
    np.testing.assert_array_equal(got.mean, nano.forecast(filled, 8, mask=mask).mean)
    assert np.isnan(holes[100:104]).all()  # the caller's array stays as it was
    assert (got.mean != nano.forecast(wave, 8).mean).any()


def test_context_is_the_last_steps(nano, wave):
    long = np.concatenate([np.zeros(700, np.float32), wave])
    np.testing.assert_array_equal(nano.forecast(long, 8, context=512).mean, nano.forecast(wave, 8).mean)
    both = np.stack([long, long * 2])
    np.testing.assert_array_equal(
        nano.forecast(both, 8, context=512).mean, nano.forecast(np.stack([wave, wave * 2]), 8).mean
    )


def test_covariates_are_known_ahead(toto1, toto2, wave):
    for model in (toto1, toto2):
        values = wave[:96]
        known = np.cos(np.arange(96 + 24) / 5).astype(np.float32)[None]
        with_them = model.forecast(values, 24, covariates=known, covariates_by="model")
        assert with_them.mean.shape == (24,)
        changed = known.copy()
        changed[0, -24:] += 5
        assert (model.forecast(values, 24, covariates=changed, covariates_by="model").mean != with_them.mean).any()
        with pytest.raises(toto_cpp.UsageError, match="invalid_covariates"):
            model.forecast(values, 24, covariates=known[:, :-1])


def test_a_model_names_what_is_left_open(nano, toto2, wave):
    asked = {"samples": True, "num_samples": 16}
    for model, paths, tails in ((nano, "coherent", "normal"), (toto2, "independent", "clamp")):
        assert (model.info.default_paths, model.info.default_tails) == (paths, tails)
        found = model.forecast(wave, 40, [0.02, 0.5], **asked)
        same = model.forecast(wave, 40, [0.02, 0.5], paths=paths, tails=tails, **asked)
        assert (found.samples == same.samples).all() and (found.quantiles == same.quantiles).all()
    official, same = (
        nano.forecast(wave, 40, as_reference=True, **more, **asked).samples
        for more in ({}, {"paths": "independent", "tails": "clamp"})
    )
    assert (official == same).all()
    with pytest.raises(toto_cpp.UsageError, match="invalid_choice"):
        nano.forecast(wave, 8, paths="joint")


def test_tails(toto2, wave):
    """Exponential: beyond 0.1 and 0.9 the probability halves with each step between the two outermost quantiles.
    Normal: as of a normal distribution through the median and the outermost."""
    values = wave[:64]
    deciles = toto2.forecast(values, 20).quantiles
    levels = [0.025, 0.1, 0.5, 0.9, 0.99]
    clamped, found = (toto2.forecast(values, 20, levels, tails=tails).quantiles for tails in ("clamp", "exponential"))
    assert (toto2.forecast(values, 20, levels).quantiles == clamped).all()
    assert (found[1:4] == clamped[1:4]).all()
    assert (clamped[[0, 4]] == deciles[[0, 8]]).all()
    assert np.allclose(found[0], deciles[0] - 2 * (deciles[1] - deciles[0]), rtol=1e-5)
    assert np.allclose(found[4], deciles[8] + np.log2(10) * (deciles[8] - deciles[7]), rtol=1e-5)
    normal = toto2.forecast(values, 20, levels, tails="normal").quantiles
    assert (normal[1:4] == clamped[1:4]).all()
    further = statistics.NormalDist().inv_cdf(0.99) / statistics.NormalDist().inv_cdf(0.9)
    assert np.allclose(normal[4], deciles[4] + further * (deciles[8] - deciles[4]), rtol=1e-5)
    with pytest.raises(toto_cpp.UsageError, match="invalid_choice"):
        toto2.forecast(values, 20, tails="fat")


@pytest.mark.parametrize("which", ["nano", "nano1"])
def test_covariates_are_regressed(request, which, toto2, wave):
    """Their effect is taken out of a series of a model that does not know them, alone and in a batch."""
    nano = request.getfixturevalue(which)
    rng = np.random.default_rng(2)
    known = rng.normal(size=(1, 512 + 24)).astype(np.float32)
    both = wave + 3 * known[0, :512]
    truth = np.sin(np.arange(512, 536) / 8) + 3 * known[0, 512:]
    found = nano.forecast(both, 24, covariates=known)
    with_model, without = nano.forecast(both, 24, covariates=known, covariates_by="model"), nano.forecast(both, 24)
    far = [np.abs(one.median - truth).mean() for one in (found, with_model, without)]
    assert far[0] < 0.2 * min(far[1:]), far
    batch = nano.forecast([wave, both], 24, ids=["1", "0"], covariates=[known, known])
    assert (batch[1].quantiles == found.quantiles).all()
    with toto_cpp.Service(nano) as service:
        assert (service.submit(both, 24, id="0", covariates=known).result().quantiles == found.quantiles).all()
    by_model = toto2.forecast(both, 24, covariates=known, covariates_by="model").quantiles
    assert (toto2.forecast(both, 24, covariates=known).quantiles == by_model).all()
    with pytest.raises(toto_cpp.UsageError, match="invalid_choice"):
        nano.forecast(both, 24, covariates=known, covariates_by="luck")


def test_groups(toto1, wave):
    pair = np.stack([wave[:96], -wave[:96]])
    apart = toto1.forecast(pair, 8, groups=[0, 1])
    np.testing.assert_array_equal(toto1.forecast(pair, 8, groups=[3, 3]).mean, toto1.forecast(pair, 8).mean)
    assert (apart.mean != toto1.forecast(pair, 8).mean).any()


def test_mean_mode_and_parameters(toto1, wave):
    f = toto1.forecast(wave, 100, mean_only=True)
    assert f.mean.shape == (100,)
    with pytest.raises(toto_cpp.UsageError, match="not_kept"):
        _ = f.median
    p = toto1.forecast(wave, 8, parameters=True).parameters
    assert p["df"].shape == p["probability"].shape and p["df"].shape[:2] == (1, 8)
    np.testing.assert_allclose(p["probability"].sum(-1), 1, atol=1e-6)
    assert toto1.forecast(wave, 8).parameters is None


def test_quantile(nano, wave):
    f = nano.forecast(wave, 8, [0.1, 0.2, 0.9])
    np.testing.assert_array_equal(f.quantile(0.2), f.quantiles[1])
    np.testing.assert_allclose(f.quantile(0.15), (f.quantiles[0] + f.quantiles[1]) / 2, rtol=1e-5)
    assert f.quantile([0.1, 0.9]).shape == (2, 8)
    with pytest.raises(toto_cpp.UsageError, match="invalid_quantile"):
        f.quantile(0.95)
    kept = nano.forecast(wave, 8, samples=True, num_samples=500)
    np.testing.assert_allclose(kept.quantile(0.95), np.quantile(kept.samples, 0.95, axis=0), rtol=1e-6)


def test_coherent_paths_of_toto2(toto2, wave):
    """The trajectories go together, and nothing else changes."""
    asked = {"samples": True, "num_samples": 64}
    plain, joined = (toto2.forecast(wave, 20, paths=word, **asked) for word in ("independent", "coherent"))
    np.testing.assert_array_equal(plain.quantiles, joined.quantiles)
    np.testing.assert_array_equal(plain.mean, joined.mean)
    np.testing.assert_allclose(plain.samples[:, 0], joined.samples[:, 0], rtol=1e-3, atol=1e-3)
    assert not np.array_equal(plain.samples, joined.samples)
    assert np.isfinite(joined.over_horizon("sum", [0.1, 0.9])).all()


def test_the_whole_horizon(nano, wave):
    f = nano.forecast(wave, 8, [0.5], samples=True, num_samples=64, paths="coherent")
    sums = f.samples.astype(np.float64).sum(axis=-1)
    np.testing.assert_allclose(f.over_horizon("sum"), sums.mean())
    np.testing.assert_allclose(f.over_horizon("sum", [0.1, 0.9]), np.quantile(sums, [0.1, 0.9]))
    np.testing.assert_allclose(f.over_horizon("max", 0.5), np.median(f.samples.max(axis=-1)))
    level = float(np.median(f.samples))
    anywhere, steps = f.crossing(above=level), f.crossing(above=level, each_step=True)
    assert steps.shape == (8,) and steps.max() <= anywhere <= 1
    np.testing.assert_allclose(steps, (f.samples > level).mean(axis=0))
    assert f.crossing(below=-1e9) == 0
    for wrong in ({}, {"above": 1, "below": 0}):
        with pytest.raises(toto_cpp.UsageError, match="missing_argument"):
            f.crossing(**wrong)
    with pytest.raises(toto_cpp.UsageError, match="invalid_choice"):
        f.over_horizon("median")
    with pytest.raises(toto_cpp.UsageError, match="not_kept"):
        nano.forecast(wave, 8).over_horizon("sum")


def test_ragged_batches(toto1, wave):
    f = toto1.forecast([wave[:64], np.stack([wave[:96], wave[:96]])], 8)
    assert [one.mean.shape for one in f] == [(1, 8), (2, 8)]
    with pytest.raises(toto_cpp.UsageError, match="ragged_batch"):
        _ = f.mean


def test_to_dict(nano, wave):
    table = nano.forecast([wave, wave], 3, [0.5], ids=["x", "y"]).to_dict()
    assert list(table) == ["id", "variate", "step", "mean", "0.5"]
    assert table["id"] == ["x"] * 3 + ["y"] * 3 and list(table["step"]) == [1, 2, 3] * 2


def test_numbers_of_numpy(nano, wave):
    a = nano.forecast(wave, np.int64(8), np.array([0.1, 0.9]), seed=np.uint64(2**64 - 1), context=np.int32(256))
    b = nano.forecast(wave, 8, (0.1, 0.9), seed=2**64 - 1, context=256, ids=["0"])
    np.testing.assert_array_equal(a.quantiles, b.quantiles)


def test_levels_of_any_type_and_out_of_range(nano, wave):
    found = nano.forecast(wave, 4, quantiles=[0.25, 0.75])
    for level in (np.float32(0.25), np.array(0.25), 0.25):
        np.testing.assert_array_equal(found.quantile(level), found.quantiles[0])
    kept = nano.forecast(wave, 4, samples=True, num_samples=8)
    for call in (lambda: kept.quantile(1.5), lambda: kept.quantile(np.nan), lambda: kept.over_horizon("sum", [0.1, 90])):
        with pytest.raises(toto_cpp.UsageError, match="invalid_quantile"):
            call()
