# SPDX-License-Identifier: Apache-2.0
"""The exceptions of toto_cpp. Codes are those of docs/errors.md."""

from __future__ import annotations

from typing import Any


class TotoError(Exception):
    """Everything that toto_cpp refuses or fails at.

    ``code`` is stable and meant for programs; ``status`` is what the command line exits with;
    ``where`` names the argument, file, tensor or series; ``remedy`` says what to do. Both may be
    empty. ``str(error)`` is the whole line.
    """

    def __init__(
        self, line: str, *, code: str = "", status: int = 70, message: str = "", where: str = "", remedy: str = ""
    ) -> None:
        super().__init__(line)
        self.code = code
        self.status = status
        self.message = message or line
        self.where = where
        self.remedy = remedy

    @property
    def field(self) -> str:
        """The same as ``where``."""
        return self.where

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), str(self), self.code, self.status, self.message, self.where, self.remedy)


class UsageError(TotoError, ValueError):
    """An argument or a combination of arguments is wrong (status 2)."""


class DataError(TotoError, ValueError):
    """Values, a table or a model file are malformed (65)."""


class MissingInputError(TotoError, FileNotFoundError):
    """A file or a model is not there (66)."""

    def __str__(self) -> str:
        return str(self.args[0])


class DeviceError(TotoError, RuntimeError):
    """The device that was asked for is not available (69)."""


class InternalError(TotoError, RuntimeError):
    """A defect of the library, or memory ran out (70)."""


class StorageError(TotoError, OSError):
    """Reading or writing failed (74)."""

    def __str__(self) -> str:
        return str(self.args[0])


class ConfigError(TotoError, ValueError):
    """``config.json`` or a setting is wrong (78)."""


class CancelledError(TotoError):
    """The work was stopped: by a callback, or because its future was cancelled (130)."""


class QueueFullError(UsageError):
    """As many requests wait as the service takes; try again later."""


class DeadlineError(UsageError, TimeoutError):
    """The deadline passed before the forecast was there."""

    def __str__(self) -> str:
        return str(self.args[0])


_BY_CODE: dict[str, type[TotoError]] = {"queue_full": QueueFullError, "deadline_exceeded": DeadlineError}
_BY_STATUS: dict[int, type[TotoError]] = {
    2: UsageError,
    65: DataError,
    66: MissingInputError,
    69: DeviceError,
    70: InternalError,
    74: StorageError,
    78: ConfigError,
    130: CancelledError,
}


def _rebuild(
    kind: type[TotoError], line: str, code: str, status: int, message: str, where: str, remedy: str
) -> TotoError:
    return kind(line, code=code, status=status, message=message, where=where, remedy=remedy)


def make(status: int, code: str, message: str, where: str, remedy: str, line: str) -> TotoError:
    """The exception for an error of the library."""
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, TotoError)
    return _rebuild(kind, line, code, status, message, where, remedy)


def usage(code: str, message: str, where: str = "", remedy: str = "") -> TotoError:
    """An error of the Python part, written as the library writes its own."""
    line = f"[{code}] " + (f"{where}: " if where else "") + message + (f" ({remedy})" if remedy else "")
    return make(2, code, message, where, remedy, line)
