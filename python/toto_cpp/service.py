# SPDX-License-Identifier: Apache-2.0
"""A service: requests of many threads or tasks, computed together."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import json
import weakref
from collections.abc import Generator, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from . import _core
from ._options import DECILES, ForecastOptions, make_options
from .forecast import Forecast, wrap
from .model import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

_alive: weakref.WeakSet[Service] = weakref.WeakSet()


class Future(concurrent.futures.Future[Forecast]):
    """The answer to one request, now or later: ``result(timeout)``, ``exception()``, ``add_done_callback()``, or
    ``await``. ``cancel()`` also stops a request that runs, where nobody else of its micro-batch goes on."""

    _native: _core.NativeFuture | None = None

    def _deliver(self, result: Any, error: BaseException | None) -> None:
        if not self.set_running_or_notify_cancel():
            return
        if error is not None:
            self.set_exception(error)
        else:
            self.set_result(wrap(result))  # type: ignore[arg-type]

    def cancel(self) -> bool:
        done = super().cancel()
        if done and self._native is not None:
            self._native.cancel()
        return done

    def __await__(self) -> Generator[Any, None, Forecast]:
        return asyncio.wrap_future(self).__await__()

    @property
    def queue_seconds(self) -> float:
        """From submitting to the start; 0 until it is ready."""
        return self._native.queue_seconds() if self._native is not None else 0.0

    @property
    def compute_seconds(self) -> float:
        """Of the micro-batch it was in; 0 until it is ready."""
        return self._native.compute_seconds() if self._native is not None else 0.0


class Service:
    """Takes requests of any thread or task, computes many of them together, and gives each the bits that it gets alone.

    >>> import numpy as np, toto_cpp
    >>> with toto_cpp.Service() as service:
    ...     futures = [service.submit(np.sin(np.arange(200) / (5 + i)), 12) for i in range(3)]
    ...     [future.result().mean.shape for future in futures]
    [(12,), (12,), (12,)]
    """

    def __init__(
        self,
        model: Model | str | PathLike[str] | None = None,
        *,
        devices: str | Sequence[str] | None = None,
        max_queue: int = 1024,
        max_batch_cost: float = 65536,
        max_batch_requests: int = 1024,
        max_request_cost: float = 0,
        memory_limit: int = 0,
        **load_options: Any,
    ) -> None:
        """``model``: a loaded one, or what ``toto_cpp.load`` takes, with its options. ``devices``: "cpu", "cuda:0", ...,
        one replica each; None: that of the model. ``max_queue``: requests that wait; one more is QueueFullError.
        ``max_batch_cost``: tokens of a micro-batch. ``max_request_cost`` (tokens), ``memory_limit`` (bytes): of one
        request; 0: none."""
        self.model = model if isinstance(model, Model) else Model(model, **load_options)
        names = [devices] if isinstance(devices, str) else list(devices or [])
        self._core = _core.ServiceHandle(
            self.model._core, names, max_queue, max_batch_cost, max_batch_requests, max_request_cost, memory_limit
        )
        _alive.add(self)

    def submit(
        self,
        inputs: Any,
        horizon: int = 64,
        quantiles: Sequence[float] = DECILES,
        *,
        id: str | None = None,
        mask: Any = None,
        groups: Any = None,
        covariates: Any = None,
        priority: int = 0,
        timeout: float | None = None,
        **options: Unpack[ForecastOptions],
    ) -> Future:
        """One series, [T] or [V, T], with options of its own (those of ``Model.forecast``). It is copied. The higher
        ``priority`` goes first. A request that has not begun after ``timeout`` seconds is DeadlineError. Errors of the
        request are raised by the future, wrong arguments here."""
        future = Future()
        chosen = make_options(horizon, quantiles, **options)
        future._native = self._core.submit(
            inputs, chosen, id, mask, groups, covariates, priority, timeout, future._deliver
        )
        return future

    def forecast(self, inputs: Any, horizon: int = 64, quantiles: Sequence[float] = DECILES, **options: Any) -> Forecast:
        """``submit`` and wait."""
        return self.submit(inputs, horizon, quantiles, **options).result()

    def map(self, inputs: Iterable[Any], horizon: int = 64, quantiles: Sequence[float] = DECILES, **options: Any) -> list[Forecast]:
        """Many series at once, each as a request of its own with the id "0", "1", ..."""
        futures = [self.submit(one, horizon, quantiles, id=str(i), **options) for i, one in enumerate(inputs)]
        return [future.result() for future in futures]

    @property
    def counters(self) -> dict[str, Any]:
        """A snapshot of what happened: requests, micro-batches, times, devices."""
        return dict(json.loads(self._core.counters()))

    def drain(self, timeout: float) -> bool:
        """Refuses what comes; returns when what is here is done, or False after ``timeout`` seconds."""
        return self._core.drain(timeout)

    def close(self) -> None:
        """Cancels what waits or runs."""
        self._core.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<toto_cpp.Service of {self.model!r}>"


def close_all() -> None:
    """Before the interpreter ends: threads of a service must not wait for it."""
    for service in list(_alive):
        service.close()


atexit.register(close_all)
