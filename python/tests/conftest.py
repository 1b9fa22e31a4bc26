# SPDX-License-Identifier: Apache-2.0
"""What the tests share: models of both generations, and the command line of the installed package."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import toto_cpp

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden"
NANO1 = ROOT / "models" / "toto-nano"
PROGRAM = Path(toto_cpp.__file__).parent / "bin" / "toto"

os.environ.pop("TOTO_MODEL_ID", None)


@pytest.fixture(scope="session")
def nano():
    """The default: toto-nano-2, of Toto 2.0."""
    with toto_cpp.load() as model:
        yield model


@pytest.fixture(scope="session")
def nano1():
    """toto-nano, of Toto 1.0, which is in the source tree alone."""
    with toto_cpp.load(NANO1) as model:
        yield model


@pytest.fixture(scope="session")
def toto1():
    """A checkpoint of the first generation, small, with made-up weights."""
    with toto_cpp.load(GOLDEN / "toto1-tiny-a") as model:
        yield model


@pytest.fixture(scope="session")
def toto2():
    with toto_cpp.load(GOLDEN / "toto2-tiny-uni") as model:
        yield model


@pytest.fixture
def wave():
    return np.sin(np.arange(512) / 8).astype(np.float32)


@pytest.fixture
def lists(tmp_path):
    """A Parquet file of series as lists, in row groups of 25."""
    parquet = pytest.importorskip("pyarrow.parquet")
    from scale_data import COUNT, as_lists

    parquet.write_table(as_lists(COUNT), tmp_path / "lists.parquet", row_group_size=25)
    return tmp_path / "lists.parquet"


@pytest.fixture
def long(tmp_path):
    """The same series as long rows, which DuckDB puts together."""
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("duckdb")
    from scale_data import COUNT, as_long

    parquet.write_table(as_long(COUNT), tmp_path / "long.parquet")
    return tmp_path / "long.parquet"


@pytest.fixture
def run_python():
    """Runs a program in a process of its own; returns its standard output."""

    def run(code, timeout=120, check=True, **environment):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment}
        )
        if check:
            assert done.returncode == 0, done.stderr
            return done.stdout
        return done

    return run
