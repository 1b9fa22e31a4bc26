# SPDX-License-Identifier: Apache-2.0
"""Streams of record batches, and the stages that overlap."""

import threading
import time

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

import toto_cpp  # noqa: E402
from scale_data import H, OPTIONS, as_lists, expected, list_planes, planes  # noqa: E402
from toto_cpp import forecast_batches  # noqa: E402
from toto_cpp._pipeline import Stop, pipeline, shared  # noqa: E402
from toto_cpp._task import Task  # noqa: E402


def test_the_numbers_are_those_of_forecast_df(toto1):
    found = forecast_batches(as_lists(30), H, keep=["group"], **OPTIONS)
    assert isinstance(found, pa.RecordBatchReader)
    assert found.schema.names == ["unique_id", "group", "Toto", "Toto-lo-80", "Toto-hi-80"]
    table = found.read_all()
    assert table.column("unique_id").to_pylist() == [f"s{i:05d}" for i in range(30)]
    np.testing.assert_array_equal(list_planes(table), planes(expected(30, toto1)))


@pytest.mark.parametrize("size", [1, 7, 1024])
@pytest.mark.parametrize("chunk", [1, 11, 100])
def test_any_size_of_batch_has_the_same_bits(size, chunk):
    table = as_lists(40)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=chunk))
    found = forecast_batches(reader, H, batch_size=size, **OPTIONS).read_all()
    assert found.combine_chunks().equals(forecast_batches(table, H, **OPTIONS).read_all().combine_chunks())


def test_any_order_has_the_same_bits():
    table = as_lists(40)
    shuffled = table.take(np.random.default_rng(2).permutation(40))
    assert shuffled.column("unique_id") != table.column("unique_id")
    found = forecast_batches(shuffled, H, batch_size=9, **OPTIONS).read_all()
    assert found.column("unique_id") == shuffled.column("unique_id")
    assert found.sort_by("unique_id").combine_chunks() == forecast_batches(table, H, **OPTIONS).read_all().combine_chunks()


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.int32()), pa.list_(pa.float64(), 50)])
def test_kinds_of_lists(kind):
    values = [[float(i * j % 13) for j in range(50)] for i in range(6)]
    table = pa.table({"unique_id": list(range(6)), "y": pa.array(values).cast(pa.list_(kind.value_type)).cast(kind)})
    found = forecast_batches(table, H, **OPTIONS).read_all()
    plain = pa.table({"unique_id": [str(i) for i in range(6)], "y": values})
    np.testing.assert_array_equal(list_planes(found), list_planes(forecast_batches(plain, H, **OPTIONS).read_all()))
    part = forecast_batches(table.slice(2, 3), H, **OPTIONS).read_all()
    np.testing.assert_array_equal(list_planes(part), list_planes(found)[:, 2:5])


def test_capsules_of_others():
    pl = pytest.importorskip("polars")
    table = as_lists(5)
    found = pl.DataFrame(forecast_batches(pl.DataFrame(table), H, **OPTIONS))
    assert found.shape == (5, 4)
    np.testing.assert_array_equal(np.array(found["Toto"].to_list(), np.float32), list_planes(forecast_batches(table, H, **OPTIONS).read_all())[0])


def test_series_without_names_are_named_by_their_values():
    one, other = [1.0, 5.0, 2.0] * 20, [3.0, 1.0] * 30
    table = pa.table({"y": [one, other, one]})
    found = forecast_batches(table, H, id_col=None, **OPTIONS).read_all().column("Toto").to_pylist()
    assert found[0] == found[2] != found[1]
    alone = forecast_batches(table.slice(1, 1), H, id_col=None, **OPTIONS).read_all().column("Toto").to_pylist()
    assert alone[0] == found[1]


def test_a_name_that_comes_twice():
    """Each has the forecast that it has alone."""
    one, other = [1.0, 5.0, 2.0] * 20, [3.0, 1.0] * 30
    table = pa.table({"unique_id": ["a", "a", "a"], "y": [one, other, one]})
    found = forecast_batches(table, H, **OPTIONS).read_all().column("Toto").to_pylist()
    for i in range(3):
        assert forecast_batches(table.slice(i, 1), H, **OPTIONS).read_all().column("Toto").to_pylist()[0] == found[i]


def test_series_that_cannot_be_forecast():
    good = [1.0, 5.0, 2.0] * 20
    table = pa.table({"unique_id": list("abcde"), "y": [good, [], None, [None, None], good]})
    with pytest.raises(toto_cpp.TotoError, match="'b'"):
        forecast_batches(table, H, **OPTIONS).read_all()
    found = forecast_batches(table, H, on_error="null", **OPTIONS).read_all()
    assert [one is None for one in found.column("Toto").to_pylist()] == [False, True, True, True, False]
    assert [one is None for one in found.column("error").to_pylist()] == [True, False, False, False, True]
    alone = forecast_batches(table.slice(4, 1), H, **OPTIONS).read_all()
    assert alone.column("Toto").to_pylist()[0] == found.column("Toto").to_pylist()[4]


def test_mistakes():
    table = as_lists(3)
    with pytest.raises(toto_cpp.UsageError, match="missing_column.*'item'.*unique_id, y, group"):
        forecast_batches(table, H, id_col="item", **OPTIONS)
    with pytest.raises(toto_cpp.UsageError, match="expected lists of numbers"):
        forecast_batches(table, H, target_col="group", **OPTIONS)
    with pytest.raises(toto_cpp.UsageError, match="missing_id"):
        forecast_batches(pa.table({"unique_id": ["a", None], "y": [[1.0], [2.0]]}), H, **OPTIONS).read_all()
    with pytest.raises(toto_cpp.UsageError, match="invalid_horizon"):
        forecast_batches(table, 0, **OPTIONS)
    with pytest.raises(TypeError, match="colour"):
        forecast_batches(table, H, colour=3, **OPTIONS).read_all()
    words = pa.table({"unique_id": ["a"], "y": [["x"]]})
    with pytest.raises(toto_cpp.UsageError, match="not_a_number"):
        forecast_batches(words, H, **OPTIONS).read_all()


def test_several_devices_share_the_work(monkeypatch):
    """Two models, as two devices have them: the same rows, in order or as they are done."""
    table = as_lists(60)
    wanted = forecast_batches(table, H, batch_size=5, **OPTIONS).read_all()
    with toto_cpp.load(OPTIONS["model"], threads=1) as a, toto_cpp.load(OPTIONS["model"], threads=1) as b:
        monkeypatch.setattr(Task, "models", lambda self: [a, b])
        assert forecast_batches(table, H, batch_size=5, **OPTIONS).read_all().equals(wanted)
        mixed = forecast_batches(table, H, batch_size=5, ordered=False, **OPTIONS).read_all()
        np.testing.assert_array_equal(list_planes(mixed), list_planes(wanted))
        assert a.counters["forecasts"] > 0 and b.counters["forecasts"] > 0


def test_the_end_of_a_stream_may_stay_unread():
    begun = threading.active_count()
    reader = forecast_batches(as_lists(400), H, batch_size=2, **OPTIONS)
    assert reader.read_next_batch().num_rows == 2
    del reader
    for _ in range(100):
        if threading.active_count() <= begun:
            return
        time.sleep(0.05)
    raise AssertionError(threading.enumerate())


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("workers", [1, 3])
def test_stages(ordered, workers):
    rng = np.random.default_rng(0)
    waits = rng.random(50) / 200

    def work(i):
        time.sleep(waits[i])
        return i * i

    found = list(pipeline(range(50), [work] * workers, ordered=ordered))
    assert (found if ordered else sorted(found)) == [i * i for i in range(50)]


def test_several_threads_read():
    """Each chunk by one of them, in its order, as long as there are chunks."""
    seen, all_three = {}, threading.Barrier(3, timeout=60)

    def chunk(i):
        if i < 3:
            all_three.wait()
        for j in range(10):
            seen.setdefault(i, set()).add(threading.get_ident())
            yield i, j

    sources = shared((chunk(i) for i in range(12)), 3)
    found = list(pipeline(sources[0], [lambda item: item] * 2, beside=sources[1:], ordered=False))
    assert sorted(found) == [(i, j) for i in range(12) for j in range(10)]
    assert all(len(threads) == 1 for threads in seen.values()) and len(set().union(*seen.values())) == 3
    sources = shared((chunk(i) for i in range(3, 9)), 2)
    stream = pipeline(sources[0], [lambda item: item], beside=sources[1:])
    next(stream)
    stream.close()


def test_stages_read_no_further_than_they_must():
    read = []

    def source():
        for i in range(100):
            read.append(i)
            yield i

    stream = pipeline(source(), [lambda i: i], ahead=1)
    next(stream)
    time.sleep(0.3)
    assert len(read) <= 8
    stream.close()


@pytest.mark.parametrize("place", ["source", "first", "second"])
def test_an_error_ends_all_stages(place):
    def source():
        for i in range(1000):
            if place == "source" and i == 20:
                raise KeyError("source")
            yield i

    def worker(name):
        def call(i):
            if place == name and i == 20:
                raise KeyError(name)
            return i

        return call

    stop = Stop()
    others = set(threading.enumerate())  # one of them may end meanwhile
    inner = pipeline(source(), [worker("first")] * 2, stop=stop)
    with pytest.raises(KeyError, match=place):
        for _ in pipeline(inner, [worker("second")], stop=stop):
            pass
    assert stop() and set(threading.enumerate()) <= others


@pytest.mark.parametrize("most", [0, 1, 2])
def test_where_the_system_has_no_more_threads_none_is_left(monkeypatch, most):
    start, begun = threading.Thread.start, []

    def limited(thread):
        if len(begun) == most:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    stop = Stop()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        list(pipeline(range(1000), [lambda i: i] * 2, stop=stop))
    assert len(begun) == most
    assert stop() and not any(thread.is_alive() for thread in begun)
