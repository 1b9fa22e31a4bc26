# SPDX-License-Identifier: Apache-2.0
"""What is forecast and how, as one object that travels between processes, and the computation itself: names and lists
in, quantiles out. Every engine (files, streams, DuckDB, polars, Ray, Spark, Dask) ends here, so the bits are the same."""

from __future__ import annotations

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
from ._lists import Lists, Names, content_names, rounds_of, same_ones
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

    def cuts(self, lengths: NDArray[np.int64], names: Names) -> NDArray[np.int64]:
        """[N, windows] Of a cross-validation: how many steps of each series a window knows."""
        first = lengths - self.h - (self.n_windows - 1) * self.step_size
        if len(first) and first.min() < 1:
            short = int(np.argmax(first < 1))
            length, least = int(lengths[short]), int(lengths[short] - first[short]) + 1
            raise usage(
                "too_short", f"expected at least {least} steps of series {names[short]!r}, found {length}", "n_windows",
                "fewer windows, a shorter h, or leave the series out",
            )  # fmt: skip
        return first[:, None] + np.arange(self.n_windows) * self.step_size

    @property
    def levels(self) -> list[float]:
        return _levels(list(self.columns[1:]))

    def models(self) -> list[Model]:
        """One for each device, loaded once in a process."""
        load = dict(self.load)
        text = str(load.pop("device", None) or "")
        names: list[str | None] = [*_core.devices_of(text)] if "," in text or text.endswith(":all") else [text or None]
        several = [name for name in names if name is not None and name.startswith("cuda:")]
        if len(several) < 2:
            return [loaded(self.model, **load, device=name) for name in names]
        shared = {**load, "threads": _core.threads_of_each(several, int(load.get("threads") or 0))}
        return [loaded(self.model, **(shared if name in several else load), device=name) for name in names]


def lanes(models: Sequence[Model]) -> list[Model]:
    """One for each thread that computes. A model on a GPU has two: one prepares a batch or takes up its results while
    that of the other is computed. On the CPU both would want the same cores."""
    return [model for model in models for _ in range(2 if model.settings["device"][0].startswith("cuda") else 1)]


def readers(computing: int) -> int:
    """Threads that read for so many lanes. One reads about as fast as a GPU computes, and the last row groups are read by
    few; on a CPU more of them would take the cores from the forecasts."""
    return 1 if computing == 1 else 2 * computing


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


@dataclass
class Computed:
    """``planes`` [levels, N, h] in the type of the values, NaN where a series has no forecast; ``errors`` says why, by its number."""

    planes: NDArray[Any]
    errors: dict[int, str]

    def there(self) -> NDArray[np.bool_] | None:
        """[N] Which series have a forecast; None: all."""
        if not self.errors:
            return None
        found = np.ones(self.planes.shape[1], bool)
        found[list(self.errors)] = False
        return found


Stop = Callable[[], bool]


def compute(
    task: Task, model: Model, names: Names | None, series: Lists, stop: Stop = lambda: False,
    advance: Callable[[int], None] = lambda done: None,
) -> Computed:  # fmt: skip
    """Forecasts series of any lengths. Two series of one name and different values go in different calls, since
    a call takes a name once; series without names that have the same values are computed once."""
    planes = np.full((len(task.levels), len(series), task.h), np.nan, series.values.dtype)
    found = Computed(planes, {})
    copies: dict[int, list[int]] = {}
    if names is None:
        named = content_names(series)
        copies, names = same_ones(named), Names(named)
        rounds = [np.array(list(copies), np.int64)]
    else:
        rounds = rounds_of(names)
    call = _Call(task, model, names, series, found, stop)
    for chosen in rounds:
        for at in range(0, len(chosen), task.batch_size):
            part = chosen[at : at + task.batch_size]
            if stop():
                raise CancelledError("[interrupted] stopped before it was done", code="interrupted", status=130)
            call(part)
            advance(sum(len(copies[i]) for i in part.tolist()) if copies else len(part))
    for one, others in copies.items():
        for i in others[1:]:
            planes[:, i] = planes[:, one]
            if one in found.errors:
                found.errors[i] = found.errors[one]
    return found


class _Call:
    """Forecasts some of the series, into the planes of ``found``."""

    def __init__(self, task: Task, model: Model, names: Names, series: Lists, found: Computed, stop: Stop) -> None:
        self.task, self.model, self.names, self.series, self.found = task, model, names, series, found
        self.options = make_options(task.h, task.levels, **task.options)
        self.progress = lambda done, total: not stop()
        # Signals come to the main thread alone; in others to look for them is in vain.
        self.watched = threading.current_thread() is threading.main_thread()

    def __call__(self, part: NDArray[np.int64]) -> None:
        own = self.series
        try:
            self.model._core.forecast_lists(
                own.values, own.begins, own.lengths, self.names.data, part, self.options, self.found.planes, self.progress, self.watched
            )
        except CancelledError:
            raise
        except TotoError as error:
            if self.task.on_error == "raise" or error.status not in (2, 65, 70):
                raise
            if len(part) == 1:
                self.found.errors[int(part[0])] = str(error)
                return
            half = len(part) // 2  # which of them it is: the others are forecast
            self(part[:half])
            self(part[half:])
