# SPDX-License-Identifier: Apache-2.0
"""Arrays of the kind that the caller uses: tensors of torch in, tensors of torch out. torch is never imported here."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_torch(given: Any) -> bool:
    return type(given).__module__.split(".")[0] == "torch"


def to_numpy(given: Any) -> NDArray[Any]:
    """An array on the CPU."""
    if is_torch(given):
        found: NDArray[Any] = given.detach().cpu().numpy()
        return found
    return np.asarray(given)


def like(given: Any, array: NDArray[Any]) -> Any:
    """``array`` as a tensor where ``given`` is one."""
    if is_torch(given):
        array = np.ascontiguousarray(array)
        return sys.modules["torch"].from_numpy(array if array.flags.writeable else array.copy())
    return array


class Accepting:
    """Calls that mean something to torch and nothing here."""

    def to(self, *args: Any, **options: Any) -> Any:
        """Does nothing: ``toto_cpp.load(device=...)`` chooses the device."""
        return self

    def eval(self) -> Any:
        """Does nothing: there is no training here."""
        return self

    def compile(self, *args: Any, **options: Any) -> Any:
        """Does nothing: ``toto_cpp.load(mode=...)`` chooses how it runs."""
        return self

    def cpu(self) -> Any:
        """Does nothing."""
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Does nothing."""
        return self

    @property
    def device(self) -> str:
        return "cpu"
