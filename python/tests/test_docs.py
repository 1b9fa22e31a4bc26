# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md, of README.md and of the docstrings run as they stand."""

import doctest
import importlib
import json
import re
import sys

import pytest

from conftest import ROOT

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_the_page(monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(ROOT)  # one example names a model of the source tree
    result = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False, optionflags=OPTIONS)
    assert result.attempted > 30 and result.failed == 0


def test_the_page_of_scale():
    for name in ("pyarrow", "duckdb", "polars"):
        pytest.importorskip(name)
    result = doctest.testfile(str(ROOT / "docs" / "scale.md"), module_relative=False, optionflags=OPTIONS)
    assert result.attempted > 15 and result.failed == 0


@pytest.mark.parametrize("name", ["toto_cpp", "toto_cpp.model", "toto_cpp.service"])
def test_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.attempted > 0 and result.failed == 0


def test_the_readme(monkeypatch, tmp_path):
    """Its Python block, where it was cloned to."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert len(blocks) == 1
    monkeypatch.chdir(ROOT)
    names = {}
    exec(blocks[0], names)
    assert names["forecast"].mean.shape == (24,)


def test_every_code_of_the_package_is_listed():
    """Codes that Python raises stand in docs/python.md or docs/errors.md."""
    pages = (ROOT / "docs" / "python.md").read_text() + (ROOT / "docs" / "errors.md").read_text()
    found = set()
    for folder in ("toto_cpp", "src"):
        for path in (ROOT / "python" / folder).rglob("*.[pch]*"):
            if path.suffix in (".py", ".cpp"):
                found |= set(re.findall(r'(?:usage|_data_error|refuse)\(\s*"(\w+)"', path.read_text()))
    assert len(found) > 10
    assert not [code for code in found if f"`{code}`" not in pages]


def test_the_notebook(monkeypatch, capsys):
    """Its cells, from top to bottom, without a kernel."""
    notebook = json.loads((ROOT / "examples" / "python.ipynb").read_text())
    monkeypatch.chdir(ROOT / "examples")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            assert not cell["outputs"]
    assert "% of the months" in capsys.readouterr().out
    assert names["forecast"].mean.shape == (48,) and len(names["errors"]) == 5
