# SPDX-License-Identifier: Apache-2.0
"""Files to files: forms, formats, shards."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

import toto_cpp  # noqa: E402
from scale_data import COUNT, H, OPTIONS, as_lists, as_long, command, digest, expected, list_planes, planes, run  # noqa: E402
from toto_cpp import forecast_dataset  # noqa: E402
from toto_cpp._task import Task, lanes  # noqa: E402

def read(folder):
    """All parts, long or as lists, by id."""
    table = pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("part-*.parquet"))])
    return table.sort_by([(name, "ascending") for name in ("unique_id", "ds") if name in table.column_names])


def test_lists(lists, toto1, tmp_path):
    done = run(lists, tmp_path / "out", part_rows=10, keep=["group"])
    assert (done.complete, done.series, done.skipped, done.parts) == (True, COUNT, 0, 7)
    names = [path.name for path in sorted((tmp_path / "out").iterdir())]
    assert names[:3] == ["_SUCCESS", "_forecast.json", "part-00000-00000-00000.parquet"] and len(names) == 9
    table = read(tmp_path / "out")
    assert table.column("group").to_pylist() == [i % 3 for i in range(COUNT)]
    np.testing.assert_array_equal(list_planes(table), planes(expected(COUNT, toto1)))


def test_long(long, toto1, tmp_path):
    """In no order, over several files and buckets: the frame of forecast_df, to the bit and the type."""
    import pandas as pd

    folder = tmp_path / "several"
    folder.mkdir()
    table = pq.read_table(long)
    for i in range(3):
        pq.write_table(table.slice(i * len(table) // 3, len(table) // 3 + 1), folder / f"{i}.parquet")
    assert sum(pq.read_metadata(path).num_rows for path in folder.iterdir()) >= len(table)
    pq.write_table(table.slice(2 * (len(table) // 3)), folder / "2.parquet")
    pq.write_table(table.slice(len(table) // 3, len(table) // 3), folder / "1.parquet")
    pq.write_table(table.slice(0, len(table) // 3), folder / "0.parquet")
    for source, buckets, freq in ((long, 1, None), (folder, 5, "h")):
        out = tmp_path / f"out{buckets}"
        assert run(source, out, buckets=buckets, freq=freq).series == COUNT
        pd.testing.assert_frame_equal(read(out).to_pandas(), expected(COUNT, toto1), check_exact=True)
        assert not [path for path in out.iterdir() if path.is_dir()]


@pytest.mark.parametrize("form", ["lists", "long"])
@pytest.mark.parametrize("count", [2, 7])
def test_shards_leave_the_files_of_one_process(form, count, request, tmp_path):
    source = request.getfixturevalue(form)
    layout = dict(part_rows=4) if form == "lists" else dict(buckets=9)
    run(source, tmp_path / "one", **layout)
    seen, series = set(), 0
    for i in reversed(range(count)):
        before = {path.name for path in (tmp_path / "many").glob("part-*")} if (tmp_path / "many").exists() else set()
        done = run(source, tmp_path / "many", shard=f"{i}/{count}", batch_size=3, **layout)
        written = {path.name for path in (tmp_path / "many").glob("part-*")} - before
        assert not written & seen and done.complete == (i == 0) and done.parts == len(written)
        seen |= written
        series += done.series
    assert series == COUNT
    assert digest(tmp_path / "many") == digest(tmp_path / "one")


def test_sizes_of_batches_and_several_devices(lists, long, tmp_path, monkeypatch):
    run(lists, tmp_path / "a")
    run(long, tmp_path / "b", buckets=6)
    with toto_cpp.load(OPTIONS["model"], threads=1) as one, toto_cpp.load(OPTIONS["model"], threads=1) as two:
        monkeypatch.setattr(Task, "models", lambda self: [one, two])
        run(lists, tmp_path / "a2", batch_size=1)
        run(long, tmp_path / "b2", buckets=6, batch_size=7)
        # One model, two threads: as on a GPU.
        monkeypatch.setattr(Task, "models", lambda self: [one, one])
        run(lists, tmp_path / "a3", batch_size=5, part_rows=4096)
        run(long, tmp_path / "b3", buckets=6)
    for name in ("2", "3"):
        assert digest(tmp_path / "a") == digest(tmp_path / f"a{name}") and digest(tmp_path / "b") == digest(tmp_path / f"b{name}")


def test_a_gpu_has_two_threads():
    class Named:
        def __init__(self, device):
            self.settings = {"device": (device, "flag --device")}

    cpu, first, second = Named("cpu"), Named("cuda:0"), Named("cuda:1")
    assert lanes([cpu]) == [cpu] and lanes([first, second]) == [first, first, second, second]


@pytest.mark.parametrize(("names", "kinds"), [(["cuda:0"], ["cuda"]), (["cuda:0", "cuda:1"], ["cuda"]), (["cpu", "cuda:0"], ["cpu", "cuda"])])
def test_any_gpus_continue_a_run(names, kinds, lists, toto1, tmp_path):
    """Shards on a GPU each, and a run that is resumed on other GPUs: the same description, so the same folder."""
    from types import SimpleNamespace

    from toto_cpp._plan import of_models, plan_of
    from toto_cpp._task import task_of

    models = [SimpleNamespace(settings={"seed": ("0", ""), "device": (name, "")}, info=toto1.info) for name in names]
    task = task_of(H, device=",".join(names), **OPTIONS)
    plan = plan_of(task, lists, tmp_path / "out", form=None, format=None, out_format=None, part_rows=4096, buckets=None, shards=1)
    said = plan.described(of_models(task, models))
    assert said["devices"] == kinds and "cuda:" not in json.dumps(said, default=str)


def test_forecasts_are_written_without_a_dictionary(lists, tmp_path):
    run(lists, tmp_path / "out.parquet")
    run(lists, tmp_path / "out")
    for path in (tmp_path / "out.parquet", *(tmp_path / "out").glob("part-*")):
        group = pq.read_metadata(path).row_group(0)
        encodings = {group.column(i).path_in_schema.split(".")[0]: group.column(i).encodings for i in range(group.num_columns)}
        assert {name for name, used in encodings.items() if "RLE_DICTIONARY" in used} == {"unique_id"}, encodings


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.ndjson.zst", "x.arrow", "stream.arrow"])
def test_formats_of_lists(name, lists, tmp_path, monkeypatch):
    path, table = tmp_path / name, as_lists(COUNT)
    if name == "x.arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
    elif name.endswith("arrow"):
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
    else:
        with pa.output_stream(str(path), compression="detect") as file:
            for row in table.to_pylist():
                file.write((json.dumps(row) + "\n").encode())
    run(lists, tmp_path / "a")
    for shard in ("0/2", "1/2"):
        run(path, tmp_path / "b", part_rows=11, shard=shard)
    assert read(tmp_path / "a").equals(read(tmp_path / "b"))


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.jsonl", "x.parquet"])
def test_formats_of_long_tables(name, long, tmp_path):
    frame = as_long(COUNT).to_pandas()
    path = tmp_path / name
    if name.endswith("parquet"):
        frame.to_parquet(path)
    elif ".csv" in name:
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True, date_format="iso", date_unit="us", double_precision=15)
    run(long, tmp_path / "a", buckets=2)
    run(path, tmp_path / "b", buckets=2)
    a, b = read(tmp_path / "a").to_pandas(), read(tmp_path / "b").to_pandas()
    assert (a.unique_id == b.unique_id).all() and (a.ds == b.ds).all()
    # JSON of pandas rounds to fifteen digits.
    np.testing.assert_allclose(a.Toto, b.Toto, rtol=1e-3 if "json" in name else 0, atol=1e-3 if "json" in name else 0)


def test_one_file_out(lists, long, tmp_path):
    run(lists, tmp_path / "folder", part_rows=10)
    run(lists, tmp_path / "out.parquet", part_rows=10)
    assert pq.read_table(tmp_path / "out.parquet").sort_by("unique_id").equals(read(tmp_path / "folder"))
    assert not (tmp_path / "out.parquet.parts").exists()
    assert pq.read_metadata(tmp_path / "out.parquet").num_row_groups == 7
    run(lists, tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    wanted = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert rows == wanted
    run(long, tmp_path / "out.csv", buckets=3)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0].replace('"', "") == "unique_id,ds,Toto,Toto-lo-80,Toto-hi-80" and len(lines) == COUNT * H + 1
    assert sum("unique_id" in line for line in lines) == 1


def test_partitioned_folders(tmp_path):
    table, root = as_lists(COUNT), tmp_path / "in"
    for key in range(3):
        folder = root / f"region=r{key}"
        folder.mkdir(parents=True)
        pq.write_table(table.slice(key * 20, 20), folder / "x.parquet")
    (root / "_ignored.parquet").write_text("no file of ours")
    run(root, tmp_path / "out")
    found = read(tmp_path / "out")
    assert found.column("region").to_pylist() == [f"r{i // 20}" for i in range(COUNT)]
    pq.write_table(table, tmp_path / "all.parquet")
    run(tmp_path / "all.parquet", tmp_path / "flat")
    assert found.drop_columns("region").equals(read(tmp_path / "flat"))


def test_progress(lists, tmp_path):
    seen = []
    run(lists, tmp_path / "out", part_rows=5, batch_size=1, progress=seen.append)
    assert seen[-1].series == COUNT and seen[-1].fraction == 1 and seen[-1].seconds_left == 0
    assert all(a.series <= b.series for a, b in zip(seen, seen[1:]))
    with pytest.raises(toto_cpp.CancelledError):
        run(lists, tmp_path / "stopped", part_rows=5, batch_size=1, progress=lambda one: time.sleep(0.25) or False)
    run(lists, tmp_path / "stopped", part_rows=5)
    assert digest(tmp_path / "stopped") == digest(tmp_path / "out")


def test_series_without_a_forecast(lists, long, tmp_path):
    table = as_lists(5).set_column(1, "y", pa.array([[1.0] * 50, None, [], [2.0] * 50, [None]]))
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(toto_cpp.TotoError, match="s00001"):
        run(tmp_path / "x.parquet", tmp_path / "a")
    run(tmp_path / "x.parquet", tmp_path / "b", on_error="null")
    found = read(tmp_path / "b")
    assert [one is None for one in found.column("error").to_pylist()] == [True, False, False, True, False]
    rows = as_long(3).to_pandas()
    rows.loc[rows.unique_id == "s00001", "y"] = np.nan
    rows.to_parquet(tmp_path / "y.parquet")
    run(tmp_path / "y.parquet", tmp_path / "c", on_error="null", freq="h")
    found = read(tmp_path / "c").to_pandas()
    assert (found.error.notna() == (found.unique_id == "s00001")).all() and (found.Toto.isna() == found.error.notna()).all()


def test_mistakes(lists, tmp_path):
    for options, words in (
        (dict(shard="2/2"), "invalid_shard"), (dict(shard="x"), "invalid_shard"), (dict(target_col="z"), "missing_column.*unique_id"),
        (dict(part_rows=0), "part_rows"), (dict(format="xls"), "unsupported_format"), (dict(id_col="z"), "missing_column"),
    ):  # fmt: skip
        with pytest.raises(toto_cpp.UsageError, match=words):
            run(lists, tmp_path / "out", **options)
    with pytest.raises(toto_cpp.UsageError, match="CSV has no lists"):
        run(lists, tmp_path / "out.csv")
    with pytest.raises(toto_cpp.UsageError, match="overwrite"):
        run(lists, lists)
    with pytest.raises(toto_cpp.UsageError, match="overwrite"):
        run(lists, lists.parent)
    with pytest.raises(toto_cpp.UsageError, match="shards write into one folder"):
        run(lists, tmp_path / "out.parquet", shard="0/2")
    with pytest.raises(toto_cpp.MissingInputError):
        run(tmp_path / "nothing.parquet", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_devices_that_are_not_there(lists, tmp_path, monkeypatch):
    """Names go to the library; "cuda:all" is what it finds."""
    from toto_cpp import _task

    class Found:
        @staticmethod
        def devices_of(text):
            assert text == "cuda:all"
            return ["cpu"]

    with pytest.raises(toto_cpp.TotoError, match="invalid_device"):
        run(lists, tmp_path / "out", device="cpu,cpu")
    monkeypatch.setattr(_task, "_core", Found)
    assert run(lists, tmp_path / "out", device="cuda:all").series == COUNT


def test_several_gpus_share_the_threads(monkeypatch):
    from toto_cpp import _task

    asked = []
    monkeypatch.setattr(_task, "loaded", lambda model, **load: asked.append((load["device"], load.get("threads"))))
    _task.task_of(H, model=OPTIONS["model"], device="cuda:0,cuda:1,cpu", threads=8).models()
    _task.task_of(H, model=OPTIONS["model"], device="cuda:1", threads=8).models()
    _task.task_of(H, model=OPTIONS["model"], device="cuda:0,cuda:1").models()
    each = max(1, len(os.sched_getaffinity(0)) // 2)
    assert asked == [("cuda:0", 4), ("cuda:1", 4), ("cpu", 8), ("cuda:1", 8), ("cuda:0", each), ("cuda:1", each)]


def test_the_command(lists, tmp_path):
    done = subprocess.run(command(lists, tmp_path / "a", "--json", "--keep", "group"), capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["complete"] and said["series"] == COUNT and done.stderr == ""
    run(lists, tmp_path / "b", keep=["group"])
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    done = subprocess.run(command(lists, tmp_path / "a", "--target", "z"), capture_output=True, text=True)
    assert done.returncode == 2 and "missing_column" in done.stderr and "Traceback" not in done.stderr
    shown = subprocess.run([sys.executable, "-m", "toto_cpp", "dataset", "--help"], capture_output=True, text=True, check=True).stdout
    assert "--shard" in shown and "examples:" in shown


PEAK = """
import re, sys, toto_cpp
toto_cpp.forecast_dataset(sys.argv[1], sys.argv[2], 1, model=sys.argv[3], context=8, part_rows=512, num_samples=1)
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def test_memory_does_not_grow_with_the_series(tmp_path):
    """Twelve times the series, in one row group: 53 MB more of values, and nearly the same peak."""
    peaks = []
    for count in (1000, 12000):
        values = np.random.default_rng(0).normal(size=count * 1200).astype(np.float32)
        column = pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * 1200), pa.array(values))
        source = tmp_path / f"{count}.parquet"
        pq.write_table(pa.table({"unique_id": np.arange(count).astype(str), "y": column}), source, row_group_size=20_000, compression="none")
        given = [sys.executable, "-c", PEAK, str(source), str(tmp_path / f"out{count}"), OPTIONS["model"]]
        peaks.append(int(subprocess.run(given, capture_output=True, text=True, check=True, env={**os.environ}).stdout))
    assert peaks[1] - peaks[0] < 40_000, peaks


def test_cross_validation(lists, long, toto1, tmp_path):
    """The windows of Model.cross_validation, to the bit; of lists too."""
    import pandas as pd

    options = {name: value for name, value in OPTIONS.items() if name != "model"}
    windows = dict(h=5, n_windows=3, step_size=4)
    wanted = toto1.cross_validation(as_long(COUNT, shuffled=False), freq="h", **windows, **options).to_pandas()
    wanted = wanted.sort_values(["unique_id", "cutoff", "ds"]).reset_index(drop=True)
    forecast_dataset(long, tmp_path / "a", buckets=4, **windows, **OPTIONS)
    found = pa.concat_tables([pq.read_table(path) for path in (tmp_path / "a").glob("part-*")]).to_pandas()
    pd.testing.assert_frame_equal(found.sort_values(["unique_id", "cutoff", "ds"]).reset_index(drop=True), wanted, check_exact=True)
    forecast_dataset(lists, tmp_path / "b", part_rows=7, keep=["group"], **windows, **OPTIONS)
    table = pa.concat_tables([pq.read_table(path) for path in (tmp_path / "b").glob("part-*")])
    table = table.sort_by([("unique_id", "ascending"), ("cutoff", "ascending")])
    assert table.column_names == ["unique_id", "group", "cutoff", "y", "Toto", "Toto-lo-80", "Toto-hi-80"]
    for name in ("y", "Toto", "Toto-lo-80", "Toto-hi-80"):
        np.testing.assert_array_equal(np.array(table.column(name).to_pylist(), np.float32).ravel(), wanted[name].to_numpy(np.float32))
    lengths = [len(one) for one in as_lists(COUNT).column("y").to_pylist()]
    assert table.column("cutoff").to_pylist() == [n - 5 - back for n in lengths for back in (8, 4, 0)]
    with pytest.raises(toto_cpp.UsageError, match="too_short.*'s000"):
        forecast_dataset(lists, tmp_path / "c", 50, n_windows=3, **OPTIONS)
    with pytest.raises(toto_cpp.UsageError, match="invalid_windows"):
        forecast_dataset(lists, tmp_path / "c", 5, n_windows=0, **OPTIONS)


def test_files_that_differ(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(as_lists(5), folder / "a.parquet")
    pq.write_table(as_lists(5).rename_columns(["unique_id", "values", "group"]), folder / "b.parquet")
    with pytest.raises(toto_cpp.UsageError, match=r"b\.parquet: no column 'y'"):
        run(folder, tmp_path / "out")
    pq.write_table(as_lists(5).slice(0, 0), tmp_path / "empty.parquet")
    assert run(tmp_path / "empty.parquet", tmp_path / "none").series == 0
    with pytest.raises(toto_cpp.UsageError, match="no series"):
        run(tmp_path / "empty.parquet", tmp_path / "none.parquet")


def test_a_model_that_is_there_is_used(lists, tmp_path, toto1):
    from toto_cpp._task import loaded, task_of

    task = task_of(H, model=toto1)
    assert task.models() == [toto1]
    with toto_cpp.load(OPTIONS["model"], threads=1) as own:
        assert task_of(H, model=own).models() == [own]
    assert task_of(H, model=OPTIONS["model"], threads=1).models() != [own]
    assert loaded(OPTIONS["model"], threads=1) is loaded(OPTIONS["model"], threads=1)
    with pytest.raises(toto_cpp.UsageError, match="decode"):
        task_of(H, decode="somehow")
