# SPDX-License-Identifier: Apache-2.0
"""Stages that overlap: one thread reads ahead, one or more work, the caller takes the results."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ._errors import CancelledError

T = TypeVar("T")
U = TypeVar("U")
_LOOK = 0.05  # seconds between looks at whether to stop
_END = object()


def shared(chunks: Iterable[Iterable[T]], count: int) -> list[Iterator[T]]:
    """So many iterators for threads of their own, of which each takes the next chunk when it is at the end of one."""
    lock, every = threading.Lock(), iter(chunks)

    def one() -> Iterator[T]:
        while True:
            with lock:
                chunk: Any = next(every, _END)
            if chunk is _END:
                return
            yield from chunk

    return [one() for _ in range(count)]


class Stop:
    """Set once: every stage then ends. It is set too where ``above`` is."""

    def __init__(self, above: Stop | None = None) -> None:
        self._event = threading.Event()
        self._above = above

    def __call__(self) -> bool:
        return self._event.is_set() or (self._above is not None and self._above())

    def set(self) -> None:
        self._event.set()

    def put(self, to: queue.Queue[Any], item: Any) -> bool:
        """False where it was stopped first."""
        while not self():
            try:
                to.put(item, timeout=_LOOK)
                return True
            except queue.Full:
                continue
        return False

    def get(self, source: queue.Queue[Any]) -> Any:
        while not self():
            try:
                return source.get(timeout=_LOOK)
            except queue.Empty:
                continue
        return _END


def pipeline(
    source: Iterable[T], workers: Sequence[Callable[[T], U]], *, beside: Sequence[Iterable[T]] = (), ordered: bool = True, ahead: int = 1,
    stop: Stop | None = None,
) -> Iterator[U]:  # fmt: skip
    """``worker(item)`` for every item of ``source``, and of more sources ``beside`` it, each read by a thread of its own:
    each worker has a thread and takes the next item as soon as it is free. At most ``ahead`` items wait before the
    workers, and as many results as there are workers wait behind them, so memory does not grow with the source.
    ``ordered``: results come in the order in which items were read; else as they are done. An error of a source or of a worker is raised
    here, and sets ``stop``, as does a caller that takes no more."""
    halt = Stop(stop)
    given: queue.Queue[Any] = queue.Queue(ahead)
    done: queue.Queue[Any] = queue.Queue(len(workers))
    # Of results that wait for an earlier one there are no more than this.
    room = threading.Semaphore(2 * len(workers) + ahead)
    failures: list[BaseException] = []

    sources, numbers, turn = [source, *beside], itertools.count(), threading.Lock()
    reading = len(sources)

    def read(one: Iterable[T]) -> None:
        nonlocal reading
        try:
            for item in one:
                while not room.acquire(timeout=_LOOK):
                    if halt():
                        return
                if not halt.put(given, (next(numbers), item)):
                    return
                del item  # while the next is read, it is a worker's
        except BaseException as error:
            failures.append(error)
            halt.set()
        finally:
            if isinstance(one, Generator):  # such as another pipeline: its threads end with it
                one.close()
            with turn:
                reading -= 1
                last = reading == 0
            for _ in workers if last else ():
                halt.put(given, _END)

    def work(call: Callable[[T], U]) -> None:
        try:
            while (taken := halt.get(given)) is not _END:
                number, item = taken
                result = call(item)
                del item, taken
                if not halt.put(done, (number, result)):
                    return
                del result
            halt.put(done, _END)
        except BaseException as error:
            failures.append(error)
            halt.set()

    threads = [threading.Thread(target=read, args=(one,), daemon=True) for one in sources]
    threads += [threading.Thread(target=work, args=(call,), daemon=True) for call in workers]
    started: list[threading.Thread] = []  # the system may have no more of them
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
        yield from _results(halt, done, len(workers), ordered, room)
        whole = not halt()
    except BaseException:  # GeneratorExit among them
        if stop is not None:
            stop.set()
        raise
    finally:
        halt.set()
        for thread in started:
            thread.join()
    if failures:
        if stop is not None:
            stop.set()
        raise failures[0]
    if not whole:
        raise CancelledError("[interrupted] stopped before it was done", code="interrupted", status=130)


def _results(halt: Stop, done: queue.Queue[Any], left: int, ordered: bool, room: threading.Semaphore) -> Iterator[Any]:
    """Until all workers are at their end, or it is stopped."""
    waiting: dict[int, Any] = {}
    following = 0
    while left:
        taken = halt.get(done)
        if taken is _END:
            if halt():
                return
            left -= 1
            continue
        number, result = taken
        del taken
        if not ordered:
            room.release()
            yield result
            continue
        waiting[number] = result
        del result
        while following in waiting:
            room.release()
            yield waiting.pop(following)
            following += 1
