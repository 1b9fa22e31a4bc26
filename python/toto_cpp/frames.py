# SPDX-License-Identifier: Apache-2.0
"""Forecasts of data frames: pandas, polars, pyarrow and anything with the Arrow capsule interface, in and out.

A long frame has a column of ids, one of timestamps (or whole numbers) and one or more of values. A row that is
missing in a fixed step, and a value that is missing, count as not observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray


from ._errors import usage
from ._kinds import Frame, frame_of, is_distributed
from ._panel import Panel, read, read_wide

if TYPE_CHECKING:
    from .forecast import ForecastBatch
    from .model import Model

#: What frame calls of Toto 2.0 use, as its GluonTS predictor does; array calls leave both out.
_FRAME_DEFAULTS = {"scaler_fallback_min_obs": 8, "quantile_real_cap_k": 1e4}
_DECILES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def _covariates(
    panel: Panel, future: Any, names: list[str], horizon: int, freq: Any
) -> list[NDArray[Any]] | None:
    """[E, T + horizon] of each series."""
    if not names:
        return None
    ahead = read(frame_of(future, "future_df"), panel.id_column, panel.time_column, names, freq or 1, fill=False)
    where = {name: i for i, name in enumerate(ahead.names)}
    wanted = panel.future(horizon)
    past, coming = panel.series(names), ahead.series(names)
    out = []
    for i, name in enumerate(panel.names):
        at = where.get(name)
        given = np.atleast_2d(coming[at]) if at is not None else np.zeros((len(names), 0))
        if at is not None and given.shape[1] != horizon:  # more rows than needed: those of the horizon
            keep = np.isin(_utc(ahead, at), wanted[i])
            given = given[:, keep]
        if given.shape[1] != horizon:
            raise usage(
                "missing_covariate", f"expected {horizon} rows after the last one of series {name!r}, found {given.shape[1]}",
                "future_df", "give a row for every step of the horizon",
            )  # fmt: skip
        out.append(np.concatenate([np.atleast_2d(past[i]), given], axis=1))
    return out


def _utc(panel: Panel, index: int) -> NDArray[Any]:
    return panel.times[panel.starts[index] : panel.starts[index + 1]]


def _forecast(
    model: Model, panel: Panel, targets: list[str], horizon: int, quantiles: Sequence[float], covariates: Any, options: dict[str, Any]
) -> ForecastBatch:
    if not len(panel):
        raise usage("invalid_input", "the frame has no rows", "df", "give a frame with at least one series")
    given = {**_FRAME_DEFAULTS, **options}
    found: Any = model.forecast(
        panel.series(targets), horizon, list(quantiles), ids=panel.names, covariates=covariates, **given
    )
    batch: ForecastBatch = found
    return batch


def _numbers_of(frame: Frame, future: Any, known: list[str]) -> list[str]:
    """Columns of ``future`` that are covariates: those of numbers which are no ids, times or targets."""
    if future is None:
        return []
    names = [name for name in frame_of(future, "future_df").columns if name not in known]
    frame.check(names, "df, which needs the past of every column of future_df")
    return names


def predict_df(
    model: Model,
    df: Any,
    future_df: Any = None,
    id_column: str | None = "item_id",
    timestamp_column: str = "timestamp",
    target: str | list[str] = "target",
    prediction_length: int | None = None,
    quantile_levels: Sequence[float] = _DECILES,
    batch_size: int = 256,
    context_length: int | None = None,
    cross_learning: bool = False,
    validate_inputs: bool = True,
    freq: str | int | None = None,
    **options: Any,
) -> Any:
    """Forecasts every series of a long frame, with the arguments and the columns of Chronos-2: ``id_column``,
    ``timestamp_column``, "target_name", "predictions" (the median) and one for each level.

    ``id_column=None``: the frame is wide. Each column but the timestamps is a series (or those of a list ``target``),
    and the result is long, with the names of the columns as "item_id".

    Several targets are variates of one series. Columns of ``future_df`` are covariates known ahead; ``df`` has their
    past. Other columns are not looked at. ``cross_learning=True`` forecasts all series jointly, as variates of one:
    they must have the same timestamps. ``batch_size`` and ``validate_inputs`` change nothing here. Other options are
    those of ``Model.forecast``.
    """
    horizon = 64 if prediction_length is None else prediction_length
    if id_column is None:
        return _predict_wide(model, df, timestamp_column, target, horizon, quantile_levels, context_length, freq, options)
    targets = [target] if isinstance(target, str) else list(target)
    frame = frame_of(df)
    covariates = _numbers_of(frame, future_df, [id_column, timestamp_column, *targets])
    panel = read(frame, id_column, timestamp_column, targets + covariates, freq)
    if context_length is not None:
        options["context"] = context_length
    levels = sorted({*quantile_levels, 0.5})
    if cross_learning and len(panel) > 1:
        quantiles = _jointly(model, panel, targets, horizon, levels, options)
    else:
        known = _covariates(panel, future_df, covariates, horizon, freq)
        found = _forecast(model, panel, targets, horizon, levels, known, options)
        quantiles = found.quantiles.reshape(len(levels), -1)
    rows = len(targets) * horizon
    times = np.repeat(panel.future(horizon)[:, None], len(targets), axis=1)
    columns = {
        id_column: panel.repeated_ids(rows),
        timestamp_column: panel.stamp(times),
        "target_name": frame.words(targets, np.tile(np.repeat(np.arange(len(targets)), horizon), len(panel))),
        "predictions": quantiles[levels.index(0.5)],
    }
    columns.update((str(q), quantiles[levels.index(q)]) for q in quantile_levels)
    return frame.build(columns)


def _predict_wide(
    model: Model, df: Any, timestamp_column: str, target: str | list[str], horizon: int, quantile_levels: Sequence[float],
    context_length: int | None, freq: Any, options: dict[str, Any],
) -> Any:  # fmt: skip
    frame = frame_of(df)
    series = [name for name in frame.columns if name != timestamp_column] if isinstance(target, str) else list(target)
    panel = read_wide(frame, timestamp_column, series, freq)
    if context_length is not None:
        options["context"] = context_length
    levels = sorted({*quantile_levels, 0.5})
    quantiles = _forecast(model, panel, ["value"], horizon, levels, None, options).quantiles.reshape(len(levels), -1)
    columns = {
        "item_id": panel.repeated_ids(horizon),
        timestamp_column: panel.stamp(panel.future(horizon)),
        "target_name": panel.repeated_ids(horizon),
        "predictions": quantiles[levels.index(0.5)],
    }
    columns.update((str(q), quantiles[levels.index(q)]) for q in quantile_levels)
    return frame.build(columns)


def _jointly(
    model: Model, panel: Panel, targets: list[str], horizon: int, levels: list[float], options: dict[str, Any]
) -> NDArray[Any]:
    lengths = panel.lengths
    if (lengths != lengths[0]).any():
        raise usage("invalid_input", "series that are forecast jointly must have the same timestamps", "cross_learning")
    values = np.concatenate([np.atleast_2d(one) for one in panel.series(targets)])
    found = model.forecast(values, horizon, levels, ids="joint", **{**_FRAME_DEFAULTS, **options})
    return found.quantiles.reshape(len(levels), -1)


def _wanted(level: Sequence[float] | None, quantiles: Sequence[float] | None, name: str) -> list[tuple[str, float]]:
    """Columns and their levels, as statsforecast and NeuralForecast name them."""
    if level is not None and quantiles is not None:
        raise usage("conflicting_options", "expected level or quantiles, found both", "level")
    if quantiles is not None:
        return [(f"{name}-q-{_percent(q)}", float(q)) for q in quantiles]
    out: list[tuple[str, float]] = []
    for one in sorted(level or []):
        if not 0 < one < 100:
            raise usage("invalid_quantile", f"expected a level between 0 and 100, found {one}", "level")
    ordered = sorted(level or [])
    out += [(f"{name}-lo-{one}", 0.5 - one / 200) for one in ordered]
    out += [(f"{name}-hi-{one}", 0.5 + one / 200) for one in ordered]
    return out


def _percent(q: float) -> str:
    text = f"{q * 100:.6f}".rstrip("0").rstrip(".")
    return text


def _point_and_columns(
    found: ForecastBatch, wanted: list[tuple[str, float]], levels: list[float], name: str, like: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """In the type of the target, as Nixtla's libraries."""
    planes = found.quantiles.reshape(len(levels), -1).astype(like.dtype, copy=False)
    columns = {name: planes[levels.index(0.5)]}
    columns.update((column, planes[levels.index(round(q, 12))]) for column, q in wanted)
    return columns


def _levels(wanted: list[tuple[str, float]]) -> list[float]:
    return sorted({0.5, *(round(q, 12) for _, q in wanted)})


def forecast_df(
    model: Model,
    df: Any,
    h: int,
    freq: str | int | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    X_df: Any = None,
    level: Sequence[float] | None = None,
    quantiles: Sequence[float] | None = None,
    model_name: str = "Toto",
    **options: Any,
) -> Any:
    """Forecasts every series of a long frame, with the arguments and the columns of Nixtla's libraries: ``id_col``,
    ``time_col``, the median as ``model_name``, and ``-lo-80``/``-hi-80`` for ``level=[80]`` or ``-q-10`` for
    ``quantiles=[0.1]``. Series are sorted by id. ``X_df`` has covariates known ahead. Other options are those of
    ``Model.forecast``.

    A frame of Spark, Dask or Ray is forecast where its rows are (``toto_cpp.fugue.forecast``); ``freq`` must then be
    given, and there are no covariates."""
    if is_distributed(df):
        if X_df is not None:
            raise usage("conflicting_options", "frames of Spark, Dask and Ray are forecast without covariates", "X_df")
        from .fugue import forecast

        return forecast(
            df, h, freq, model=model, id_col=id_col, time_col=time_col, target_col=target_col, level=level, quantiles=quantiles,
            model_name=model_name, **options,
        )  # fmt: skip
    frame = frame_of(df)
    covariates = _numbers_of(frame, X_df, [id_col, time_col, target_col])
    panel = read(frame, id_col, time_col, [target_col, *covariates], freq, by_id=True)
    wanted = _wanted(level, quantiles, model_name)
    levels = _levels(wanted)
    known = _covariates(panel, X_df, covariates, h, freq)
    found = _forecast(model, panel, [target_col], h, levels, known, options)
    columns: dict[str, Any] = {id_col: panel.repeated_ids(h), time_col: panel.stamp(panel.future(h))}
    columns.update(_point_and_columns(found, wanted, levels, model_name, panel.columns[target_col]))
    return frame.build(columns)


def cross_validation(
    model: Model,
    df: Any,
    h: int,
    n_windows: int = 1,
    step_size: int | None = None,
    freq: str | int | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    level: Sequence[float] | None = None,
    quantiles: Sequence[float] | None = None,
    model_name: str = "Toto",
    **options: Any,
) -> Any:
    """Forecasts the last ``n_windows`` windows of ``h`` steps, ``step_size`` apart (``h`` by default), each from what
    was known before it. Columns are those of Nixtla's libraries: id, time, "cutoff", the target and those of
    ``forecast_df``."""
    if is_distributed(df):
        from .fugue import forecast

        return forecast(
            df, h, freq, model=model, id_col=id_col, time_col=time_col, target_col=target_col, level=level, quantiles=quantiles,
            model_name=model_name, n_windows=n_windows, step_size=step_size, **options,
        )  # fmt: skip
    step = h if step_size is None else step_size
    if h < 1 or n_windows < 1 or step < 1:
        raise usage("invalid_windows", "expected h, n_windows and step_size of at least 1", "cross_validation")
    frame = frame_of(df)
    panel = read(frame, id_col, time_col, [target_col], freq, by_id=True)
    needed = h + (n_windows - 1) * step + 1
    short = panel.lengths < needed
    if short.any():
        name = panel.names[int(short.argmax())]
        raise usage(
            "too_short", f"expected at least {needed} rows of series {name!r}, found {int(panel.lengths.min())}",
            "df", "fewer windows, or a shorter h",
        )  # fmt: skip
    wanted = _wanted(level, quantiles, model_name)
    levels = _levels(wanted)
    series = panel.series([target_col])
    ends = [h + (n_windows - 1 - w) * step for w in range(n_windows)]  # rows from the cutoff to the end
    inputs = [one[: len(one) - end] for one in series for end in ends]
    names = [f"{name}@{len(one) - end}" for name, one in zip(panel.names, series) for end in ends]
    found = model.forecast(inputs, h, levels, ids=names, **{**_FRAME_DEFAULTS, **options})
    stops = panel.starts[1:]
    first = (stops[:, None] - np.array(ends)[None, :]).ravel()  # the first row of each window
    rows = (first[:, None] + np.arange(h)[None, :]).ravel()
    columns: dict[str, Any] = {
        id_col: panel.repeated_ids(n_windows * h),
        time_col: panel.stamp(panel.times[rows]),
        "cutoff": panel.stamp(np.repeat(panel.times[first - 1], h)),
    }
    point = _point_and_columns(found, wanted, levels, model_name, panel.columns[target_col])
    columns[target_col] = panel.columns[target_col][rows]
    columns.update(point)
    return frame.build(columns)


def detect_anomalies(
    model: Model,
    df: Any,
    freq: str | int | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    level: float = 99,
    h: int = 16,
    model_name: str = "Toto",
    **options: Any,
) -> Any:
    """Marks values outside the central ``level`` % interval of a forecast made from what came before them, with the
    arguments and the columns of Nixtla's: id, time, target, the median, its interval and "anomaly". Forecasts are
    ``h`` steps long; the first rows of a series, fewer than four patches and never more than half, are not judged and
    not returned. Where the interval lies beyond the quantiles that the model gives, its tails are exponential."""
    frame = frame_of(df)
    panel = read(frame, id_col, time_col, [target_col], freq, by_id=True)
    wanted = _wanted([level], None, model_name)
    levels = _levels(wanted)
    least = 4 * model.info.patch_size
    inputs, names, rows = [], [], []
    for i, one in enumerate(panel.series([target_col])):
        begin = min(least, max(1, len(one) // 2))
        for cut in range(begin, len(one), h):
            inputs.append(one[:cut])
            names.append(f"{panel.names[i]}@{cut}")
            at = panel.starts[i] + np.arange(cut, cut + h)
            rows.append(np.where(at < panel.starts[i + 1], at, -1))
    found = model.forecast(inputs, h, levels, ids=names, **{**_FRAME_DEFAULTS, "tails": "exponential", **options})
    all_rows = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    keep = all_rows >= 0
    at = all_rows[keep]
    point = {name: column[keep] for name, column in _point_and_columns(found, wanted, levels, model_name, panel.columns[target_col]).items()}
    actual = panel.columns[target_col][at]
    low, high = point[wanted[0][0]], point[wanted[1][0]]
    owner = np.searchsorted(panel.starts, at, side="right") - 1
    columns: dict[str, Any] = {
        id_col: frame.take(panel.ids, owner),
        time_col: panel.stamp(panel.times[at]),
        target_col: actual,
        **point,
        "anomaly": (actual < low) | (actual > high),
    }
    return frame.build(columns)
