# SPDX-License-Identifier: Apache-2.0
"""How parts are given out between processes, and read by them: without any engine."""

import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from scale_data import H, OPTIONS, as_lists, as_long  # noqa: E402
from toto_cpp._pieces import Pieces, Reader  # noqa: E402
from toto_cpp._plan import plan_of  # noqa: E402
from toto_cpp._progress import Meter  # noqa: E402
from toto_cpp._task import task_of  # noqa: E402

COUNT = 60
MODELS = {"devices": ["cpu"], "weights": [], "seed": 0}


def planned(source, out, **layout):
    options = {"form": None, "format": None, "out_format": None, "part_rows": 10, "buckets": None, "shards": 1, **layout}
    plan = plan_of(task_of(H, **OPTIONS), source, out, **options)
    meter = Meter(None)
    parts = plan.parts(MODELS, (0, 1), True)
    return plan, meter, parts, Pieces(plan, parts, meter)


@pytest.fixture
def lists(tmp_path):
    """Row groups of 25: parts of 10, 10 and 5 series, and one of 10 at the end."""
    pq.write_table(as_lists(COUNT), tmp_path / "lists.parquet", row_group_size=25)
    return tmp_path / "lists.parquet"


def ids(batch):
    return batch.column("unique_id").to_pylist()


def test_each_part_once_and_a_row_group_on(lists, tmp_path):
    """Of two takers each has a row group of its own, then they share the last one."""
    plan, _, _, pieces = planned(lists, tmp_path / "out")
    taken = [(taker, pieces.take(taker)) for taker in "ababaabab"]
    assert [(taker, piece and (piece.group, piece.index, piece.rows)) for taker, piece in taken] == [
        ("a", (0, 0, 10)), ("b", (1, 0, 10)), ("a", (0, 1, 10)), ("b", (1, 1, 10)), ("a", (0, 2, 5)), ("a", (2, 0, 10)), ("b", (1, 2, 5)),
        ("a", None), ("b", None),
    ]  # fmt: skip
    assert [piece.name for _, piece in taken[:2]] == ["part-00000-00000-00000", "part-00000-00001-00000"]
    reader = Reader(plan)
    found = [name for _, piece in taken if piece for name in ids(reader.read(piece))]
    assert sorted(found) == [f"s{i:05d}" for i in range(COUNT)]


def test_sharing_a_row_group(tmp_path):
    pq.write_table(as_lists(COUNT), tmp_path / "one.parquet")
    plan, _, _, pieces = planned(tmp_path / "one.parquet", tmp_path / "out")
    taken = [pieces.take(taker) for taker in "abcabcabc"]
    assert [piece and piece.index for piece in taken] == [0, 1, 2, 3, 4, 5, None, None, None]
    readers = {taker: Reader(plan) for taker in "abc"}
    found = {piece.index: ids(readers[taker].read(piece)) for taker, piece in zip("abcabc", taken)}
    assert found == {i: [f"s{j:05d}" for j in range(10 * i, 10 * i + 10)] for i in range(6)}
    backwards = [ids(readers["a"].read(piece))[0] for piece in reversed(taken[:6])]
    assert backwards == [f"s{10 * i:05d}" for i in reversed(range(6))]


def test_what_is_there_is_not_given(lists, tmp_path):
    plan, meter, parts, pieces = planned(lists, tmp_path / "out")
    for name in (parts.name(0, 0, 0), parts.name(0, 1, 2), parts.name(0, 2, 0)):
        parts.path(name).touch()
    found = []
    while (piece := pieces.take("a")) is not None:
        found.append((piece.group, piece.index))
    assert found == [(0, 1), (0, 2), (1, 0), (1, 1)]
    meter.end()
    assert meter.result(plan.target, True).skipped == 25


def test_pieces_of_a_lost_taker_come_first(lists, tmp_path):
    _, _, parts, pieces = planned(lists, tmp_path / "out")
    first, second = pieces.take("a"), pieces.take("a")
    parts.path(second.name).touch()
    assert pieces.back(first) and not pieces.back(second)  # the latter was written
    assert pieces.take("b") == first
    rest = [pieces.take("b") for _ in range(6)]
    assert second not in rest and rest[-1] is None and rest[-2] is not None


def test_files_without_row_groups(tmp_path):
    """Nobody knows how many parts there are until one reads beyond the end."""
    as_lists(25).to_pandas().to_json(tmp_path / "lists.jsonl", orient="records", lines=True)
    plan, _, _, pieces = planned(tmp_path / "lists.jsonl", tmp_path / "out")
    readers, found, left = {"a": Reader(plan), "b": Reader(plan)}, [], ["a", "b"]
    while left:
        for taker in list(left):
            piece = pieces.take(taker)
            if piece is None:
                left.remove(taker)
                continue
            assert piece.rows == -1
            batch = readers[taker].read(piece)
            if batch is None:
                pieces.end(piece)
            else:
                found.append(batch.num_rows)
    assert found == [10, 10, 5]


def test_buckets_of_the_long_form(tmp_path):
    pytest.importorskip("duckdb")
    from toto_cpp import _grouping

    pq.write_table(as_long(COUNT), tmp_path / "long.parquet")
    plan, meter, parts, pieces = planned(tmp_path / "long.parquet", tmp_path / "out", buckets=5)
    parts.path(parts.name(3)).touch()
    _grouping.partition(plan.task, plan.files, plan.work_folder((0, 1)), 5, parts, 64, None)
    reader, rows, found = Reader(plan), 0, []
    while (piece := pieces.take("a")) is not None:
        found.append(piece.index)
        rows += reader.read(piece).num_rows
    assert found == [0, 1, 2, 4] and 0 < rows < len(as_long(COUNT)) and meter.parts == (1, 5)
    _grouping.forget(plan.work_folder((0, 1)), 0)
    assert reader.read(Pieces(plan, parts, meter).take("a")) is None
