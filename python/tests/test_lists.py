# SPDX-License-Identifier: Apache-2.0
"""Series of a column: the module's way in without an object for each, beside Model.forecast of the same arrays."""

import threading

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

import toto_cpp  # noqa: E402
from scale_data import H, OPTIONS  # noqa: E402
from toto_cpp._lists import Lists, Names, lists_of, names_of, rounds_of  # noqa: E402
from toto_cpp._options import make_options  # noqa: E402
from toto_cpp._task import compute, task_of  # noqa: E402


def series(count=12, kind=np.float32, seed=0):
    """Of several lengths, with gaps at the beginning, inside and at the end."""
    rng = np.random.default_rng(seed)
    found = [rng.normal(size=int(n)).cumsum().astype(kind) for n in rng.integers(20, 200, count)]
    found[1][:4] = found[2][7:9] = found[3][-5:] = np.nan
    return found


def joined(arrays):
    return Lists.one_after_another(np.concatenate(arrays), np.array([len(one) for one in arrays]))


def task(**options):
    return task_of(H, **{**OPTIONS, **options})


OTHER = [
    {}, dict(context=33), dict(missing="linear"), dict(missing="zero"), dict(across_missing=False), dict(value_offset=False),
    dict(as_reference=True), dict(integer=True, minimum=-3.0), dict(samples=True, parameters=True), dict(quantiles_from="samples"),
]  # fmt: skip


@pytest.mark.parametrize("options", OTHER, ids=str)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_bits_are_those_of_arrays(toto1, kind, options):
    arrays = series(kind=kind)
    arrays[4] = arrays[4] + 1e7  # more digits than float32 has
    names = [f"n{i}" for i in range(len(arrays))]
    own = task(**options)
    found = compute(own, toto1, Names(names), joined(arrays))
    wanted = toto1.forecast(arrays, H, own.levels, ids=names, **own.options).quantiles
    assert found.planes.dtype == kind and not found.errors
    np.testing.assert_array_equal(found.planes, wanted)
    text = Names(pa.array(["unseen", *names], pa.large_string()).slice(1))
    np.testing.assert_array_equal(compute(own, toto1, text, joined(arrays)).planes, wanted)


def test_second_generation(toto2):
    arrays = series()
    names = [str(i) for i in range(len(arrays))]
    own = task(model=None)
    found = compute(own, toto2, Names(names), joined(arrays)).planes
    np.testing.assert_array_equal(found, toto2.forecast(arrays, H, own.levels, ids=names, **own.options).quantiles)


def test_some_rows_of_values_that_overlap(toto1):
    """As windows of a cross-validation do. Rows that are not asked for are left as they were."""
    values = np.random.default_rng(0).normal(size=300).cumsum().astype(np.float32)
    begins, lengths = np.array([0, 0, 50, 10]), np.array([100, 200, 250, 40])
    own = task()
    options = make_options(H, own.levels, **own.options)
    out = np.full((3, 4, H), 7, np.float32)
    toto1._core.forecast_lists(values, begins, lengths, list("abcd"), np.array([2, 0]), options, out, None, False)
    for row, name in ((0, "a"), (2, "c")):
        one = values[begins[row] : begins[row] + lengths[row]]
        np.testing.assert_array_equal(out[:, row], toto1.forecast([one], H, own.levels, ids=[name], **own.options).quantiles[:, 0])
    assert (out[:, [1, 3]] == 7).all()


def column_of_names(*ends):
    return np.array(ends), np.frombuffer(b"ab", np.uint8)


def test_what_does_not_fit_is_refused(toto1):
    values, begins, lengths, rows = np.zeros(50, np.float32), np.array([0, 20]), np.array([20, 30]), np.array([0, 1])
    options = make_options(2, [0.5], **task().options)
    out = np.zeros((1, 2, 2), np.float32)
    good = [values, begins, lengths, ["a", "b"], rows, options, out, None, False]
    toto1._core.forecast_lists(*good)
    for place, bad in (
        (1, np.array([0, 21])), (1, np.array([-1, 20])), (2, np.array([20, -1])), (2, np.array([20])), (3, ["a"]),
        (3, column_of_names(0, 1, 9)), (3, column_of_names(0, 1)), (3, column_of_names(0, 2, 1)), (4, np.array([0, 2])),
        (4, np.array([-1])), (6, np.zeros((1, 2, 3), np.float32)), (6, np.zeros((2, 2, 2), np.float32)),
        (6, np.zeros((1, 1, 2), np.float32)),
    ):  # fmt: skip
        with pytest.raises(toto_cpp.UsageError, match="do not fit together"):
            toto1._core.forecast_lists(*good[:place], bad, *good[place + 1 :])
    with pytest.raises(toto_cpp.UsageError, match="do not fit together"):  # float64 would be rounded
        toto1._core.forecast_lists(values.astype(np.float64), *good[1:])
    for wrong in (values.astype(np.int32), values.tolist(), np.zeros((5, 10), np.float32)):
        with pytest.raises((TypeError, RuntimeError)):
            toto1._core.forecast_lists(wrong, *good[1:])
    with pytest.raises(TypeError):
        toto1._core.forecast_lists(*good[:3], ["a", 3], *good[4:])
    with pytest.raises(toto_cpp.UsageError, match="not_kept"):
        toto1._core.forecast_lists(*good[:5], make_options(2, [0.5], mean_only=True), *good[6:])
    with pytest.raises(toto_cpp.UsageError, match="invalid_context"):
        toto1._core.forecast_lists(*good[:5], make_options(2, [0.5], context=0), *good[6:])
    with pytest.raises(toto_cpp.TotoError, match="missing_value.*inputs.1."):
        toto1._core.forecast_lists(np.r_[values[:49], np.float32(np.nan)], *good[1:5], make_options(2, [0.5], missing="error"), *good[6:])


def test_it_can_be_stopped(toto1):
    """From another thread, where there are no signals: by what it calls."""
    count = 3000
    values = Lists.one_after_another(np.random.default_rng(0).normal(size=count * 64).astype(np.float32), np.full(count, 64))
    names, own, said = Names([str(i) for i in range(count)]), task(num_samples=512, batch_size=count), []
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()

    def work():
        try:
            compute(own, toto1, names, values, stop.is_set)
        except toto_cpp.CancelledError as error:
            said.append(error.code)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert said == ["interrupted"]


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (pa.array([7, -3], pa.int32()), ["7", "-3"]),
        (pa.array(["ä", ""]), ["ä", ""]),
        (pa.array(["x", "a\0b", "cd"], pa.large_string()).slice(1), ["a\0b", "cd"]),
        (pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y", "x"]),
        (pa.array(["x", "y" * 40], pa.string_view()), ["x", "y" * 40]),
        (pa.array([1.0, 2.5]), ["1.0", "2.5"]),
        (pa.array([True, False]), ["True", "False"]),
        (pa.array([], pa.string()), []),
    ],
    ids=lambda one: str(one.type) if isinstance(one, pa.Array) else "",
)
def test_ids_as_text(column, names):
    found = names_of(pa, column, "id")
    assert [found[i] for i in range(len(found))] == names
    if not isinstance(found.data, list):
        ends, data = found.data
        assert [bytes(data[a:b]).decode() for a, b in zip(ends, ends[1:])] == names
    assert found.are_different() == (len(set(names)) == len(names))
    rounds = rounds_of(found)
    assert sorted(np.concatenate([*rounds, np.zeros(0, int)])) == list(range(len(names)))
    assert all(len({names[i] for i in some}) == len(some) for some in rounds)
    windows = found.of_windows(np.arange(2 * len(names)).reshape(-1, 2))
    assert [windows[i] for i in range(len(windows))] == [f"{name}@{2 * i + w}" for i, name in enumerate(names) for w in (0, 1)]


def test_ids_that_are_missing():
    for column in (pa.array(["a", None]), pa.array([None, 3]), pa.array(["a", None]).dictionary_encode()):
        with pytest.raises(toto_cpp.UsageError, match="missing_id.*1 rows"):
            names_of(pa, column, "id")


def test_columns_of_lists():
    given = [[1.0, None], None, [], [3.0]]
    for column in (pa.array(given), pa.array([[9.0], *given, [8.0]], pa.large_list(pa.float32())).slice(1, 4)):
        found = lists_of(pa, column)
        assert found.lengths.tolist() == [2, 0, 0, 1] and found.values.dtype == np.float32
        np.testing.assert_array_equal(np.concatenate(list(found)), np.array([1, np.nan, 3], np.float32))
