# SPDX-License-Identifier: Apache-2.0
"""What the module cannot take as it is becomes a NumPy array in C order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import usage


def _plain(given: Any, where: str) -> Any:
    if isinstance(given, np.ndarray):
        return given.filled(np.nan) if isinstance(given, np.ma.MaskedArray) else given
    if hasattr(given, "to_numpy"):  # a column of pandas, polars or Arrow
        try:
            kind = np.float32 if str(given.dtype).lower().startswith("float32") else np.float64
            return given.to_numpy(dtype=kind, na_value=np.nan)
        except (AttributeError, TypeError, ValueError):
            try:
                return given.to_numpy()
            except ValueError:
                return given.to_numpy(zero_copy_only=False)
    if not hasattr(given, "__array__") and hasattr(given, "__dlpack__"):
        return np.from_dlpack(given)
    return given


def float32(given: Any, where: str) -> NDArray[np.float32]:
    """``given`` as float32; None and NA become NaN."""
    with np.errstate(over="ignore"):
        return _in_order(floats(given, where), np.float32)


def floats(given: Any, where: str) -> NDArray[Any]:
    """``given`` as float32 where that holds every number of its type, else as float64; None and NA become NaN."""
    try:
        array = np.asarray(_plain(given, where))
        if array.dtype.kind not in "fiub":
            if array.dtype.kind not in "O":
                raise TypeError(f"elements of type {array.dtype}")
            array = array.astype(np.float64)
        return _in_order(array, np.float32 if np.can_cast(array.dtype, np.float32) else np.float64)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise usage("invalid_input", f"expected numbers, found {error}", where, "give an array of numbers on the CPU") from None


def _in_order(array: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Of this type, in C order, with the axes that it has."""
    return np.ascontiguousarray(array, dtype=kind) if array.ndim else array.astype(kind)


def mask(given: Any, where: str) -> NDArray[np.uint8]:
    """1 where observed."""
    array = np.asarray(given)
    if array.dtype.kind not in "biuf":
        raise usage("invalid_input", f"expected a mask of booleans, found elements of type {array.dtype}", where)
    return np.ascontiguousarray(array.astype(bool, copy=False)).view(np.uint8)


def int32(given: Any, where: str) -> NDArray[np.int32]:
    array = np.asarray(given)
    if array.dtype.kind not in "biu":
        raise usage("invalid_input", f"expected whole numbers, found elements of type {array.dtype}", where)
    return np.ascontiguousarray(array, dtype=np.int32)
