# SPDX-License-Identifier: Apache-2.0
"""A package with kernels for a GPU, on a machine that may have none. WHEEL_WITH_CUDA=1: it must have them."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import toto_cpp
from conftest import PROGRAM
from toto_cpp import _core

WHY = _core.cuda_unavailable()
BUILT = "no CUDA backend" not in WHY

needs_cuda = pytest.mark.skipif(not BUILT and "WHEEL_WITH_CUDA" not in os.environ, reason="this package has no kernels for a GPU")
needs_none = pytest.mark.skipif(WHY == "", reason="this machine has a GPU")
MODULE = Path(_core.__file__)


@needs_cuda
def test_it_has_kernels():
    assert BUILT


@needs_cuda
@pytest.mark.parametrize("file", [MODULE, PROGRAM])
def test_no_library_of_cuda_is_needed(file):
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    needed = [line for line in subprocess.run(["readelf", "-d", file], capture_output=True, text=True).stdout.splitlines() if "NEEDED" in line]
    assert needed and not [line for line in needed if "cu" in line.lower() or "nv" in line.lower()]


def test_import_opens_no_library_of_cuda(run_python):
    """Only a model that may go to a GPU looks for the driver."""
    out = run_python(
        """
import toto_cpp
opened = lambda: any("libcuda" in line or "libnv" in line for line in open("/proc/self/maps"))
at_import = opened()
toto_cpp.load(device="cpu").forecast([1.0, 2.0] * 40, 4)
print(at_import, opened())
"""
    )
    assert out.split() == ["False", "False"]


@needs_none
def test_a_gpu_that_is_not_there(wave):
    with pytest.raises(toto_cpp.TotoError) as error:
        toto_cpp.load(device="cuda")
    assert (error.value.code, error.value.status) == ("device_unavailable", 69)
    assert WHY in str(error.value) and error.value.remedy
    with pytest.raises(toto_cpp.TotoError) as error, toto_cpp.load(device="cpu") as model:
        toto_cpp.Service(model, devices="cuda:0")
    assert error.value.code == "device_unavailable"


@needs_none
def test_without_a_gpu_the_cpu_is_taken(run_python):
    out = run_python(
        """
import logging, sys, numpy as np, toto_cpp
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(message)s")
x = np.sin(np.arange(512) / 8)
found = [toto_cpp.load(device=device).forecast(x, 8).quantiles for device in ("auto", "cpu")]
print((found[0] == found[1]).all())
"""
    )
    assert out.splitlines()[-1] == "True"
