# SPDX-License-Identifier: Apache-2.0
"""Types: the package, a program that uses all of it, and the stub of the module."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import toto_cpp


def run(*command):
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=os.path.dirname(__file__))
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module", autouse=True)
def mypy():
    pytest.importorskip("mypy")
    if not (Path(toto_cpp.__file__).parent / "_core.pyi").exists():
        pytest.skip("not the installed package")


def test_a_program_is_typed():
    status, said = run("mypy", "--strict", "typed_sample.py")
    assert status == 0, said


# Optional packages may be absent, and some have no types; the stub that nanobind writes says dict where it could say more.
SETTINGS = """
[mypy]
[mypy-gluonts.*,matplotlib.*,datasets.*,fev.*]
ignore_missing_imports = True
[mypy-toto_cpp.compat.gluonts,toto_cpp.compat.fev]
disallow_subclassing_any = False
[mypy-toto_cpp._core]
disable_error_code = type-arg
"""


def test_the_package_is_typed(tmp_path):
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    status, said = run("mypy", "--strict", "--config-file", str(tmp_path / "mypy.ini"), "-p", "toto_cpp")
    assert status == 0, said


def test_the_stub_is_that_of_the_module():
    """Classes and functions of nanobind have types of their own, which no stub can say."""
    _, said = run("mypy.stubtest", "toto_cpp._core", "--ignore-missing-stub", "--ignore-disjoint-bases", "--concise")
    faults = [line for line in said.splitlines() if line.startswith("toto_cpp._core")]
    known = ("metaclass differs", "is not a function", "__init__ is inconsistent")
    assert not [line for line in faults if not any(words in line for words in known)], said
