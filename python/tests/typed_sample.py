# SPDX-License-Identifier: Apache-2.0
"""A program that uses everything; `mypy --strict` must accept it (test_types.py). It is not run."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from numpy.typing import NDArray

import toto_cpp
import toto_cpp.dataset
import toto_cpp.duckdb
import toto_cpp.fugue
import toto_cpp.ray
import toto_cpp.spark
from toto_cpp.compat import MaskedTimeseries, Toto, Toto2GluonTSModel, Toto2GluonTSModelConfig, Toto2Model, TotoForecaster, TotoPipeline


def arrays(model: toto_cpp.Model) -> NDArray[np.floating[Any]]:
    values = np.zeros(100, np.float32)
    forecast = model.forecast(values, 24, [0.1, 0.5], seed=1, samples=True, progress=lambda done, total: done < total)
    batch: toto_cpp.ForecastBatch = model.forecast([values, values], 24)
    model.forecast(values, 24, across_missing=False, input_scale=1, clamp=0, minimum=0, maximum=None, integer=True)
    model.forecast(values, 24, as_reference=True, covariates_by="auto", value_offset=False)
    first: toto_cpp.Forecast = batch[0]
    some: list[toto_cpp.Forecast] = batch[1:]
    names: list[str] = batch.ids
    levels: list[float] = forecast.levels
    assert len(batch) == len(names) and levels and some
    mean: NDArray[np.floating[Any]] = first.mean
    table: dict[str, Any] = first.to_dict()
    return np.stack([mean, first.quantile(0.3), first.samples[0], forecast.median, forecast.std]) if table else mean


def settings() -> str:
    with toto_cpp.load("folder", mode="eager", device="cpu", threads=1) as model:
        model.warm_up([(512, 24), (64, 8, 2, 4)])
        info: toto_cpp.ModelInfo = model.info
        counters: dict[str, Any] = model.counters
        return info.architecture + str(counters) + model.settings["mode"][0] + toto_cpp.__version__


def frames(model: toto_cpp.Model, df: Any) -> list[Any]:
    return [
        model.predict_df(df, prediction_length=3),
        toto_cpp.predict_df(model, df, quantile_levels=[0.5]),
        model.forecast_df(df, 3, level=[80]),
        model.cross_validation(df, 3, n_windows=2),
        model.detect_anomalies(df, level=99),
        toto_cpp.backtest(df, model, horizon=3).metrics["mase"],
    ]


async def serve(service: toto_cpp.Service, values: NDArray[np.float32]) -> float:
    future: toto_cpp.Future = service.submit(values, 3, priority=1, timeout=0.5)
    found: toto_cpp.Forecast = await future
    several = await asyncio.gather(*(service.submit(values, 3) for _ in range(3)))
    return float(found.mean[0] + several[0].mean[0] + service.forecast(values, 3).mean[0])


def errors(model: toto_cpp.Model) -> str:
    try:
        model.forecast([1.0], 0)
    except toto_cpp.TotoError as error:
        return f"{error.code} {error.where} {error.remedy} {error.status}"
    return ""


def files(reader: Any) -> float:
    def show(seen: toto_cpp.dataset.Progress) -> None:
        print(seen.fraction, seen.seconds_left, seen.series_per_second)

    done: toto_cpp.dataset.Result = toto_cpp.forecast_dataset("in", "out", 24, level=[80], shard=(0, 2), progress=show)
    return float(done.series_per_second) + len(toto_cpp.forecast_batches(reader, 24, ordered=False).schema)


def engines(con: Any, frame: Any, data: Any) -> list[Any]:
    toto_cpp.duckdb.register(con, name="forecast", threads=1)
    function, schema = toto_cpp.spark.map_in_arrow(frame.schema, 24)
    return [
        toto_cpp.ray.forecast(data, 24, concurrency=(1, 4), num_gpus=1),
        toto_cpp.ray.forecast_dataset("in", "out", 24, concurrency=4, num_cpus=2, level=[80]).complete,
        toto_cpp.fugue.forecast(frame, 24, "h", level=[80]),
        frame.mapInArrow(function, schema),
    ]


def drop_ins() -> list[Any]:
    values = np.zeros((1, 64), np.float32)
    series = MaskedTimeseries(values, values == 0, values, values, values[:, 0])
    forecaster = TotoForecaster(Toto.from_pretrained("folder").model)
    second = Toto2Model.from_pretrained("folder")
    config = Toto2GluonTSModelConfig(prediction_length=3, context_length=64, target_dim=1)
    return [
        forecaster.forecast(series, prediction_length=3, num_samples=10).quantile(0.5),
        second.forecast({"target": values, "target_mask": values, "series_ids": values[:, 0]}, 3),
        Toto2GluonTSModel(second, config).create_predictor(batch_size=2),
        TotoPipeline.from_pretrained().predict(values, 3),
    ]
