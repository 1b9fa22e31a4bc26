# SPDX-License-Identifier: Apache-2.0
"""DuckDB, polars, Ray, Dask, Fugue and Spark themselves: the same bits as Model.forecast_df, whichever computes."""

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

import toto_cpp  # noqa: E402
from scale_data import H, OPTIONS, as_lists, as_long, digest, expected, list_planes, planes  # noqa: E402

COUNT = 30
PLAIN = {name: value for name, value in OPTIONS.items() if name not in ("level", "model")}


@pytest.fixture(scope="module")
def wanted():
    with toto_cpp.load(OPTIONS["model"]) as model:
        return expected(COUNT, model)


def same(found, wanted):
    """Ids, times and numbers of a long frame in any order, its columns in theirs."""
    assert list(found.columns) == list(wanted.columns)
    found = found.sort_values(["unique_id", "ds"])
    assert found.unique_id.astype(str).tolist() == wanted.unique_id.tolist()
    assert (pd.to_datetime(found.ds).to_numpy().astype("datetime64[us]") == wanted.ds.to_numpy().astype("datetime64[us]")).all()
    for name in wanted.columns[2:]:
        np.testing.assert_array_equal(found[name].to_numpy(np.float64), wanted[name].to_numpy(np.float64))


# ---- DuckDB


@pytest.fixture
def con():
    duckdb = pytest.importorskip("duckdb")
    import toto_cpp.duckdb

    with duckdb.connect() as con:
        toto_cpp.duckdb.register(con, model=OPTIONS["model"], **PLAIN)
        con.register("series", as_long(COUNT))
        yield con


def test_duckdb(con, wanted):
    rows = con.sql(f"SELECT forecast(list(y ORDER BY ds), {H}, unique_id) FROM series GROUP BY unique_id ORDER BY unique_id").fetchall()
    np.testing.assert_array_equal(np.array([row[0] for row in rows], np.float32), planes(wanted)[0])
    query = f"SELECT forecast_quantiles(list(y ORDER BY ds), {H}, [0.9, 0.1], unique_id) FROM series GROUP BY unique_id ORDER BY unique_id"
    found = np.array([row[0] for row in con.sql(query).fetchall()], np.float32)
    np.testing.assert_array_equal(found.swapaxes(0, 1), planes(wanted)[[2, 1]])


def test_table_function_of_duckdb(con, wanted):
    rows = con.sql(f"SELECT unique_id, step, forecast FROM forecast_table('series', {H}) ORDER BY 1, 2").fetchall()
    assert [row[1] for row in rows[:H]] == list(range(1, H + 1)) and len(rows) == COUNT * H
    np.testing.assert_array_equal(np.array([row[2] for row in rows], np.float32), planes(wanted)[0].ravel())


def test_rows_of_duckdb(con):
    """Horizons by row, NULLs, kinds of numbers, series without a name."""
    one = "[1, 5, 2, 1, 5, 2, 1, 5, 2]"
    rows = con.sql(f"SELECT forecast(y, h) FROM (VALUES ({one}, 2), ({one}::FLOAT[], 3), ({one}::BIGINT[], 3), (NULL, 3)) t(y, h)").fetchall()
    assert [None if row[0] is None else len(row[0]) for row in rows] == [2, 3, 3, None]
    nulls = con.sql(f"SELECT forecast({one}, NULL), forecast({one}, 2, NULL), forecast_quantiles({one}, 2, NULL)").fetchall()
    assert nulls == [(None, None, None)]
    assert rows[1] == rows[2]
    assert con.sql(f"SELECT forecast({one}, 3)").fetchall()[0] == rows[1]
    with pytest.raises(Exception, match="expected 1 to 100000 steps"):
        con.sql(f"SELECT forecast({one}, 0)").fetchall()
    with pytest.raises(Exception, match="invalid_series|every value is missing|no_observations"):
        con.sql("SELECT forecast([NULL::DOUBLE], 2)").fetchall()


def test_rows_of_duckdb_that_ask_for_different_things(con):
    """Each row has what it has where all ask for the same."""
    con.sql("CREATE TABLE given AS SELECT unique_id, list(y ORDER BY ds) AS y FROM series GROUP BY unique_id ORDER BY unique_id")
    levels_of = "CASE rowid % 3 WHEN 0 THEN [0.1]::DOUBLE[] WHEN 1 THEN [0.9, 0.5]::DOUBLE[] END"
    con.sql(f"CREATE TABLE asked AS SELECT *, 2 + rowid % 2 AS h, {levels_of} AS q FROM given")
    mixed = con.sql("SELECT h, q, forecast(y, h, unique_id), forecast_quantiles(y, h, q, unique_id) FROM asked ORDER BY unique_id").fetchall()
    plain = con.sql("SELECT forecast(y, 2, unique_id), forecast(y, 3, unique_id) FROM given ORDER BY unique_id").fetchall()
    levels = {}
    for q in ([0.1], [0.9, 0.5]):
        for h in (2, 3):
            query = f"SELECT forecast_quantiles(y, {h}, {q}, unique_id) FROM given ORDER BY unique_id"
            levels[h, str(q)] = [row[0] for row in con.sql(query).fetchall()]
    assert len(mixed) == COUNT
    for i, (h, q, medians, several) in enumerate(mixed):
        assert medians == plain[i][h - 2]
        assert several == (None if q is None else levels[h, str(q)][i])


def test_errors_of_duckdb_as_null():
    duckdb = pytest.importorskip("duckdb")
    import toto_cpp.duckdb

    with duckdb.connect() as con:
        toto_cpp.duckdb.register(con, name="ahead", model=OPTIONS["model"], on_error="null")
        rows = con.sql("SELECT ahead(y, 2), ahead_quantiles(y, 2, [0.5]) FROM (VALUES ([1.5, 2, 1]), ([NULL])) t(y)").fetchall()
        assert len(rows[0][0]) == 2 and len(rows[0][1][0]) == 2 and rows[1] == (None, None)
        with pytest.raises(toto_cpp.UsageError, match="expected a word"):
            toto_cpp.duckdb.register(con, name="a b")


# ---- polars


def test_polars(wanted):
    pl = pytest.importorskip("polars")
    import toto_cpp.polars  # noqa: F401

    lists = pl.DataFrame(as_long(COUNT)).group_by("unique_id").agg(pl.col("y").sort_by("ds")).sort("unique_id")
    options = dict(id="unique_id", model=OPTIONS["model"], **PLAIN)
    found = lists.lazy().with_columns(
        pl.col("y").toto.forecast(H, **options).alias("a"), pl.col("y").toto.quantiles(H, [0.1, 0.9], **options).alias("b")
    ).collect()  # fmt: skip
    assert found.schema["a"] == pl.List(pl.Float32) and found.schema["b"] == pl.Struct({"0.1": pl.List(pl.Float32), "0.9": pl.List(pl.Float32)})
    columns = [found["a"], found["b"].struct["0.1"], found["b"].struct["0.9"]]
    np.testing.assert_array_equal(np.array([one.to_list() for one in columns], np.float32), planes(wanted))
    whole = pl.DataFrame({"y": [[1, 5, 2] * 20]}).select(pl.col("y").toto.forecast(3, model=OPTIONS["model"]))
    assert whole["forecast"].to_list()[0] and len(whole["forecast"][0]) == 3
    bad = pl.DataFrame({"y": [[1.0] * 40, []]}).select(pl.col("y").toto.forecast(3, model=OPTIONS["model"], on_error="null"))
    assert bad["forecast"].is_null().to_list() == [False, True]


# ---- Ray


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    here = str(Path(__file__).parent)
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    ray.init(num_cpus=3, include_dashboard=False, logging_level="ERROR", runtime_env={"env_vars": {"PYTHONPATH": paths}})
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


@pytest.mark.parametrize("actors", [1, 3])
def test_ray(ray, wanted, actors):
    import toto_cpp.ray

    data = ray.data.from_arrow(as_lists(COUNT)).repartition(6)
    found = toto_cpp.ray.forecast(data, H, concurrency=actors, num_cpus=0.5, batch_size=4, keep=["group"], **OPTIONS)
    table = pa.concat_tables(ray.get(found.to_arrow_refs()))
    assert table.column_names == ["unique_id", "group", "Toto", "Toto-lo-80", "Toto-hi-80"]
    np.testing.assert_array_equal(list_planes(table), planes(wanted))


def test_long_tables_in_ray(ray, wanted):
    import toto_cpp.ray

    data = ray.data.from_arrow(as_long(COUNT))
    same(toto_cpp.ray.forecast(data, H, freq="h", concurrency=2, num_cpus=0.5, **OPTIONS).to_pandas(), wanted)
    with pytest.raises(toto_cpp.UsageError, match="invalid_freq"):
        toto_cpp.ray.forecast(data, H, **OPTIONS)


@pytest.fixture
def files(tmp_path):
    """The same series as Parquet with row groups of 250, as JSON lines and in the long form."""
    import pyarrow.parquet as pq

    lists = as_lists(600)
    pq.write_table(lists, tmp_path / "lists.parquet", row_group_size=250)
    lists.to_pandas().to_json(tmp_path / "lists.jsonl", orient="records", lines=True)
    pq.write_table(as_long(200), tmp_path / "long.parquet")
    return tmp_path


@pytest.mark.parametrize("actors", [1, 3])
@pytest.mark.parametrize(
    ("name", "options"), [("lists.parquet", dict(part_rows=40, keep=["group"])), ("lists.jsonl", dict(part_rows=70)), ("long.parquet", dict(buckets=5))]
)
def test_files_by_actors(ray, files, name, options, actors):
    """The files of forecast_dataset, whoever computes them."""
    import toto_cpp.ray

    if name.startswith("long"):
        pytest.importorskip("duckdb")
    seen = []
    bare = toto_cpp.forecast_dataset(files / name, files / "bare", H, **options, **OPTIONS)
    done = toto_cpp.ray.forecast_dataset(
        files / name, files / "ray", H, concurrency=actors, num_cpus=0.5, progress=seen.append, **options, **OPTIONS
    )  # fmt: skip
    assert digest(files / "ray") == digest(files / "bare")
    assert (done.complete, done.series, done.skipped, done.parts) == (True, bare.series, 0, bare.parts)
    assert seen[-1].series == bare.series and (name == "lists.jsonl" or seen[-1].fraction == 1)


def test_actors_go_on_with_what_one_process_began(ray, files, monkeypatch):
    """And the other way round; paths are relative to this process."""
    import toto_cpp.ray

    monkeypatch.chdir(files)
    toto_cpp.forecast_dataset("lists.parquet", "bare", H, part_rows=40, **OPTIONS)
    wanted = digest("bare")
    for name in ("_SUCCESS", "part-00000-00001-00002.parquet", "part-00000-00002-00000.parquet"):
        Path("bare", name).unlink()
    model = os.path.relpath(OPTIONS["model"])
    done = toto_cpp.ray.forecast_dataset("lists.parquet", "bare", H, part_rows=40, num_cpus=0.5, **{**OPTIONS, "model": model})
    assert (done.series, done.skipped, done.parts) == (80, 520, 2) and digest("bare") == wanted
    assert toto_cpp.forecast_dataset("lists.parquet", "bare", H, part_rows=40, **OPTIONS).skipped == 600
    done = toto_cpp.ray.forecast_dataset("lists.parquet", "one.parquet", H, part_rows=40, num_cpus=0.5, **OPTIONS)
    toto_cpp.forecast_dataset("lists.parquet", "same.parquet", H, part_rows=40, **OPTIONS)
    assert Path("one.parquet").read_bytes() == Path("same.parquet").read_bytes() and not Path("one.parquet.parts").exists()


def test_errors_of_actors(ray, files):
    """Are those of the call without Ray, and what is stopped can go on."""
    import pyarrow.parquet as pq

    import toto_cpp.ray

    def run(source, out="out", **options):
        return toto_cpp.ray.forecast_dataset(files / source, files / out, H, num_cpus=0.5, **{**OPTIONS, **options})

    pq.write_table(pa.table({"unique_id": ["a", "b"], "y": [[1.0, 2.0] * 20, []]}), files / "bad.parquet")
    with pytest.raises(toto_cpp.TotoError) as bare:
        toto_cpp.forecast_dataset(files / "bad.parquet", files / "out", H, **OPTIONS)
    with pytest.raises(type(bare.value)) as found:
        run("bad.parquet")
    assert str(found.value) == str(bare.value) and found.value.code == bare.value.code
    assert run("bad.parquet", "null", on_error="null").complete
    for options, words in (
        (dict(concurrency=0), "at least 1 actor"), (dict(part_rows=0), "part_rows"), (dict(target_col="z"), "missing_column"),
    ):  # fmt: skip
        with pytest.raises(toto_cpp.UsageError, match=words):
            run("lists.parquet", "none", **options)
    with pytest.raises(TypeError, match="shard"):  # Ray shares the work out
        run("lists.parquet", "none", shard="0/2")
    with pytest.raises(toto_cpp.TotoError, match="nowhere"):
        run("lists.parquet", "none", model="nowhere/model")
    assert not (files / "none").exists()
    with pytest.raises(toto_cpp.CancelledError):
        run("lists.parquet", "stopped", part_rows=40, progress=lambda at: at.series == 0)
    done = run("lists.parquet", "stopped", part_rows=40)
    assert done.complete and done.skipped >= 40 and done.series + done.skipped == 600


class Mortal:
    """An actor that dies of every part."""

    def begin(self, plan):
        return {"devices": ["cpu"], "weights": [], "seed": 0}, 1

    def forecast(self, piece, reader):
        os._exit(1)


class Another(Mortal):
    """An actor whose model is not that of the others."""

    def begin(self, plan):
        return {"devices": ["cpu"], "weights": [os.getpid()], "seed": 0}, 1

    def forecast(self, piece, reader):
        time.sleep(0.1)  # until the other one is there
        return piece.rows


def test_actors_that_always_die(ray, files, monkeypatch):
    import toto_cpp.ray
    from toto_cpp import _ray_dataset

    monkeypatch.setattr(_ray_dataset, "_LOST", 2)
    monkeypatch.setattr(_ray_dataset, "DatasetActor", Mortal)
    with pytest.raises(toto_cpp.InternalError, match="finished a part.*same call goes on") as found:
        toto_cpp.ray.forecast_dataset(files / "lists.parquet", files / "out", H, num_cpus=0.5, **OPTIONS)
    assert found.value.code == "actors_lost" and found.value.where == str(files / "out")
    assert isinstance(found.value.__cause__, ray.exceptions.RayActorError) and "concurrency=" in found.value.remedy
    assert [path.name for path in (files / "out").iterdir()] == ["_forecast.json"]
    monkeypatch.setattr(_ray_dataset, "DatasetActor", Another)
    with pytest.raises(toto_cpp.UsageError, match="actors have different weights"):
        toto_cpp.ray.forecast_dataset(files / "lists.parquet", files / "other", H, num_cpus=0.5, concurrency=2, part_rows=1, **OPTIONS)


def test_a_machine_with_many_actors_may_be_lost():
    """All of them at once are not yet twice as many as there are."""
    from toto_cpp import _ray_dataset
    from toto_cpp._plan import Plan

    class Ray:
        def kill(self, actor):
            pass

    class Actor:
        class begin:
            remote = staticmethod(lambda plan: object())

    plan = Plan(None, "lists", Path("out"), "parquet", 1, 0, Path("in"), [])
    actors = _ray_dataset._Actors(Ray(), Actor, plan, 40)
    for actor in list(actors.all):
        actors.gone(actor, RuntimeError("node died"))
    assert len(actors.all) == 40
    with pytest.raises(toto_cpp.InternalError, match="81 actors.*loaded the model.*node died"):
        for _ in range(41):
            actors.gone(actors.all[0], RuntimeError("node died"))


def actors_of_ray():
    """Processes of this machine that are actors of this test's cluster."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            name = path.read_bytes()
            if name.startswith(b"ray::") and (b"_Lists" in name or b"DatasetActor" in name):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@contextlib.contextmanager
def killing(most, every=0.8):
    """Every so often an actor dies: a list of their numbers, which grows."""
    killed, over = [], threading.Event()

    def kill():
        while not over.wait(every) and len(killed) < most:
            for pid in actors_of_ray()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def test_actors_that_are_killed(ray, toto1):
    """All rows come, with the same bits."""
    import toto_cpp.ray

    count = 6000
    data = ray.data.from_arrow(as_lists(count)).repartition(120)
    with killing(4) as killed:
        found = toto_cpp.ray.forecast(data, H, concurrency=1, num_cpus=1, batch_size=8, **OPTIONS)
        table = pa.concat_tables(ray.get(found.to_arrow_refs()))
    assert killed
    np.testing.assert_array_equal(list_planes(table), planes(expected(count, toto1)))


@pytest.mark.parametrize("actors", [1, 3])
def test_files_by_actors_that_are_killed(ray, tmp_path, actors):
    """All files come, with the same bytes, and each series counts once."""
    import pyarrow.parquet as pq

    import toto_cpp.ray

    count = 20000
    pq.write_table(as_lists(count), tmp_path / "lists.parquet", row_group_size=3000)
    options = dict(part_rows=50, batch_size=8, **OPTIONS)
    toto_cpp.forecast_dataset(tmp_path / "lists.parquet", tmp_path / "bare", H, **options)
    with killing(4, 2.0 / actors) as killed:
        done = toto_cpp.ray.forecast_dataset(
            tmp_path / "lists.parquet", tmp_path / "ray", H, concurrency=actors, num_cpus=1, threads=1, **options
        )  # fmt: skip
    assert killed and done.complete and (done.series, done.skipped) == (count, 0)
    assert digest(tmp_path / "ray") == digest(tmp_path / "bare")


def test_a_pickled_model_in_ray(ray, toto1):
    values = np.sin(np.arange(96) / 5).astype(np.float32)
    task = ray.remote(lambda model: model.forecast(values, 8).mean)
    found = ray.get([task.remote(toto1) for _ in range(3)])
    np.testing.assert_array_equal(found, [toto1.forecast(values, 8).mean] * 3)


# ---- Fugue: Ray, Dask, Spark


def test_fugue_on_ray(ray, toto1, wanted):
    pytest.importorskip("fugue_ray")
    data = ray.data.from_arrow(as_long(COUNT))
    same(toto1.forecast_df(data, h=H, freq="h", level=[80], **PLAIN).to_pandas(), wanted)


def test_fugue_on_dask(toto1, wanted):
    pytest.importorskip("fugue_dask")
    dask = pytest.importorskip("dask.dataframe")
    from dask.distributed import Client

    frame = as_long(COUNT).to_pandas()
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None):
        found = toto1.forecast_df(dask.from_pandas(frame, npartitions=4), h=H, freq="h", level=[80], **PLAIN)
        assert isinstance(found, dask.DataFrame)
        same(found.compute(), wanted)


def test_fugue_on_pandas(wanted):
    pytest.importorskip("fugue")
    import toto_cpp.fugue

    frame = as_long(COUNT).to_pandas()
    same(pd.DataFrame(toto_cpp.fugue.forecast(frame, H, "h", **OPTIONS)), wanted)
    found = toto_cpp.fugue.forecast(frame.assign(y=frame.y.where(frame.unique_id != "s00003")), H, "h", on_error="null", **OPTIONS)
    found = pd.DataFrame(found)
    assert (found.error.notna() == (found.unique_id == "s00003")).all()
    with pytest.raises(toto_cpp.UsageError, match="invalid_freq"):
        toto_cpp.fugue.forecast(frame, H, None, **OPTIONS)
    with pytest.raises(toto_cpp.UsageError, match="missing_column.*'z'"):
        toto_cpp.fugue.forecast(frame, H, "h", target_col="z", **OPTIONS)


def test_cross_validation_on_fugue(toto1):
    pytest.importorskip("fugue")
    import toto_cpp.fugue

    frame = as_long(COUNT).to_pandas()
    columns = ["unique_id", "cutoff", "ds"]
    windows = dict(h=5, n_windows=2, step_size=3)
    wanted = toto1.cross_validation(frame, freq="h", level=[80], **windows, **PLAIN).sort_values(columns)
    found = pd.DataFrame(toto_cpp.fugue.forecast(frame, freq="h", **windows, **OPTIONS)).sort_values(columns)
    assert list(found.columns) == list(wanted.columns)
    for name in ("y", "Toto", "Toto-hi-80"):
        np.testing.assert_array_equal(found[name].to_numpy(np.float64), wanted[name].to_numpy(np.float64))


@pytest.fixture(scope="module")
def spark():
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    here = str(Path(__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    build = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.host", "localhost")
    session = build.config("spark.sql.shuffle.partitions", "4").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def test_fugue_on_spark(spark, toto1, wanted):
    pytest.importorskip("fugue_spark")
    from pyspark.sql import DataFrame

    found = toto1.forecast_df(spark.createDataFrame(as_long(COUNT).to_pandas()), h=H, freq="h", level=[80], **PLAIN)
    assert isinstance(found, DataFrame)
    same(found.toPandas(), wanted)
    windows = toto1.cross_validation(spark.createDataFrame(as_long(COUNT).to_pandas()), h=5, n_windows=2, freq="h")
    assert windows.columns == ["unique_id", "ds", "cutoff", "y", "Toto"] and windows.count() == COUNT * 10
    with pytest.raises(toto_cpp.UsageError, match="without covariates"):
        toto1.forecast_df(found, h=2, X_df=found)


def test_map_in_arrow(spark, wanted):
    from pyspark.sql import functions as F

    import toto_cpp.spark

    frame = spark.createDataFrame(as_long(COUNT).to_pandas())
    lists = frame.groupBy("unique_id").agg(F.array_sort(F.collect_list(F.struct("ds", "y"))).alias("rows"))
    lists = lists.select("unique_id", F.col("rows.y").alias("y"))
    function, schema = toto_cpp.spark.map_in_arrow(lists.schema, H, threads=1, **OPTIONS)
    found = lists.mapInArrow(function, schema).toPandas().sort_values("unique_id")
    np.testing.assert_array_equal([np.stack(found[name]) for name in ("Toto", "Toto-lo-80", "Toto-hi-80")], planes(wanted))
    with pytest.raises(toto_cpp.UsageError, match="missing_column"):
        toto_cpp.spark.map_in_arrow(lists.schema, H, target_col="z", **OPTIONS)


def test_statsforecast_names_the_columns_so(wanted):
    """What Nixtla's users expect of the distributed calls."""
    statsforecast = pytest.importorskip("statsforecast")
    from statsforecast.models import SeasonalNaive

    frame = as_long(COUNT).to_pandas().dropna()
    theirs = statsforecast.StatsForecast(models=[SeasonalNaive(24, alias="Toto")], freq="h").forecast(df=frame, h=H, level=[80])
    assert list(theirs.columns) == list(wanted.columns)
