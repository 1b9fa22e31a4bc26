# SPDX-License-Identifier: Apache-2.0
"""What is forecast and how, as one object that travels between processes, and the computation itself: names and arrays
in, quantiles out. Every engine (files, streams, DuckDB, polars, Ray, Spark, Dask) ends here, so the bits are the same."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._errors import CancelledError, TotoError, usage
from .frames import _FRAME_DEFAULTS, _levels, _wanted
from ._options import make_options
from .model import _SETTINGS, Model

_LOAD = (_SETTINGS - {"seed"}) | {"synthetic", "synthetic_seed", "hub_cache", "strict"}
_models: dict[Any, Model] = {}
_models_lock = threading.Lock()
#: Models that a caller handed over: used here too, as long as the caller keeps them.
_given: weakref.WeakValueDictionary[Any, Model] = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class Task:
    """``h`` steps of every series, as columns of ``Model.forecast_df``. Made by ``task_of``."""

    h: int
    columns: tuple[tuple[str, float], ...]  #: name and quantile level of each, the median first
    id_col: str | None
    time_col: str
    target_col: str
    freq: Any
    keep: tuple[str, ...]
    model: str | None
    load: tuple[tuple[str, Any], ...]
    options: dict[str, Any] = field(default_factory=dict)
    on_error: Literal["raise", "null"] = "raise"
    batch_size: int = 1024
    n_windows: int = 0  #: of a cross-validation; 0: the future
    step_size: int = 0

    def cut(self, length: int, name: str) -> list[int]:
        """Of a cross-validation: how many steps of a series each window knows."""
        first = length - self.h - (self.n_windows - 1) * self.step_size
        if first < 1:
            raise usage(
                "too_short", f"expected at least {length - first + 1} steps of series {name!r}, found {length}", "n_windows",
                "fewer windows, a shorter h, or leave the series out",
            )  # fmt: skip
        return [first + window * self.step_size for window in range(self.n_windows)]

    @property
    def levels(self) -> list[float]:
        return _levels(list(self.columns[1:]))

    def models(self) -> list[Model]:
        """One for each device, loaded once in a process."""
        load = dict(self.load)
        text = str(load.pop("device", None) or "")
        names: list[str | None] = [*_core.devices_of(text)] if "," in text or text.endswith(":all") else [text or None]
        return [loaded(self.model, **load, device=name) for name in names]


def lanes(models: Sequence[Model]) -> list[Model]:
    """One for each thread that computes. A model on a GPU has two: one prepares a batch or takes up its results while
    that of the other is computed. On the CPU both would want the same cores."""
    return [model for model in models for _ in range(2 if model.settings["device"][0].startswith("cuda") else 1)]


def _key(model: str | None, load: dict[str, Any]) -> Any:
    return model, tuple(sorted((name, repr(value)) for name, value in load.items() if value is not None))


def loaded(model: str | None, **load: Any) -> Model:
    """The model of this process with these options, made when it is first asked for."""
    key = _key(model, load)
    given = _given.get(key)
    if given is not None:
        try:
            given._core.info()
            return given
        except TotoError:  # it was closed
            pass
    with _models_lock:
        if key not in _models:
            _models[key] = Model(model, **load)
        return _models[key]


def task_of(
    h: int,
    *,
    model: Model | str | PathLike[str] | None = None,
    level: Sequence[float] | None = None,
    quantiles: Sequence[float] | None = None,
    model_name: str = "Toto",
    id_col: str | None = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    freq: Any = None,
    keep: Sequence[str] = (),
    on_error: Literal["raise", "null"] = "raise",
    batch_size: int = 1024,
    n_windows: int | None = None,
    step_size: int | None = None,
    **options: Any,
) -> Task:
    """``options``: those of ``toto_cpp.load`` and of ``Model.forecast``."""
    load = {name: options.pop(name) for name in sorted(_LOAD & options.keys())}
    if isinstance(model, Model):
        path, own = model._args
        load = {**own, **load}
        seed = load.pop("seed", None)
        if seed is not None:
            options.setdefault("seed", seed)
        if load == {name: value for name, value in own.items() if name != "seed"}:
            _given[_key(path, load)] = model
    else:
        path = None if model is None else fspath(model)
    columns = ((model_name, 0.5), *((name, round(q, 12)) for name, q in _wanted(level, quantiles, model_name)))
    if (n_windows is not None and n_windows < 1) or (step_size is not None and step_size < 1):
        raise usage("invalid_windows", "expected n_windows and step_size of at least 1", "cross_validation")
    if h < 1:
        raise usage("invalid_horizon", f"expected 1 to 100000 steps, found {h}", "h")
    if batch_size < 1 or on_error not in ("raise", "null"):
        raise usage("invalid_option", 'expected batch_size of at least 1, and on_error of "raise" or "null"', "forecast")
    wanted: dict[str, Any] = {"context": 4096, "num_samples": 256, "seed": None, **_FRAME_DEFAULTS, **options}
    make_options(h, [0.5], **wanted)  # refuses what is no option, or out of range
    return Task(
        int(h), columns, id_col, time_col, target_col, freq, tuple(keep), path, tuple(sorted(load.items())), wanted, on_error,
        int(batch_size), int(n_windows or 0), int(step_size or h) if n_windows else 0,
    )  # fmt: skip


def content_id(values: NDArray[np.float32]) -> str:
    """The name of a series that has none: of its values, so that it is the same in every batch."""
    return hashlib.blake2b(np.ascontiguousarray(values, "<f4").tobytes(), digest_size=16).hexdigest()


@dataclass
class Computed:
    """``planes`` [levels, N, h] in the type of the values, NaN where a series has no forecast; ``errors`` says why, by its number."""

    planes: NDArray[Any]
    errors: dict[int, str]


Stop = Callable[[], bool]


def compute(
    task: Task, model: Model, names: Sequence[str] | None, arrays: Sequence[NDArray[Any]], stop: Stop = lambda: False,
    advance: Callable[[int], None] = lambda done: None,
) -> Computed:  # fmt: skip
    """Forecasts ``arrays`` [T] of any lengths. Two series of one name and different values go in different calls, since
    a call takes a name once; series without names that have the same values are computed once."""
    count = len(arrays)
    kind = np.float64 if any(one.dtype == np.float64 for one in arrays) else np.float32
    planes = np.full((len(task.levels), count, task.h), np.nan, kind)
    errors: dict[int, str] = {}
    copies: dict[int, list[int]] = {}
    if names is None:
        names = [content_id(one) for one in arrays]
        first: dict[str, int] = {}
        for i, name in enumerate(names):
            copies.setdefault(first.setdefault(name, i), []).append(i)
        rounds = [list(copies)]
    else:
        rounds = _rounds(names)
    for chosen in rounds:
        for at in range(0, len(chosen), task.batch_size):
            part = chosen[at : at + task.batch_size]
            if stop():
                raise CancelledError("[interrupted] stopped before it was done", code="interrupted", status=130)
            _batch(task, model, part, names, arrays, planes, errors, stop)
            advance(sum(len(copies[i]) for i in part) if copies else len(part))
    for one, others in copies.items():
        for i in others[1:]:
            planes[:, i] = planes[:, one]
            if one in errors:
                errors[i] = errors[one]
    return Computed(planes, errors)


def _rounds(names: Sequence[str]) -> list[list[int]]:
    """Numbers of series, so that no round has a name twice."""
    if len(set(names)) == len(names):
        return [list(range(len(names)))]
    seen: dict[str, int] = {}
    rounds: list[list[int]] = []
    for i, name in enumerate(names):
        which = seen.get(name, 0)
        seen[name] = which + 1
        if which == len(rounds):
            rounds.append([])
        rounds[which].append(i)
    return rounds


def _batch(
    task: Task, model: Model, part: list[int], names: Sequence[str], arrays: Sequence[NDArray[Any]], planes: NDArray[Any],
    errors: dict[int, str], stop: Stop,
) -> None:  # fmt: skip
    series = [arrays[i] for i in part]
    try:
        found = model.forecast(
            series, task.h, task.levels, ids=[names[i] for i in part], progress=lambda done, total: not stop(), **task.options
        )
        planes[:, part] = found.quantiles.reshape(len(task.levels), len(part), task.h)
    except CancelledError:
        raise
    except TotoError as error:
        if task.on_error == "raise" or error.status not in (2, 65, 70):
            raise
        if len(part) == 1:
            errors[part[0]] = str(error)
            return
        half = len(part) // 2  # which of them it is: the others are forecast
        for some in (part[:half], part[half:]):
            _batch(task, model, some, names, arrays, planes, errors, stop)
