# SPDX-License-Identifier: Apache-2.0
"""Backtests give what `toto backtest` gives."""

import json
import subprocess

import numpy as np
import pytest

import toto_cpp

from conftest import PROGRAM, ROOT


def test_files_as_the_command_line(nano, tmp_path):
    table = ROOT / "examples" / "data" / "sunspots.csv"
    arguments = [
        str(PROGRAM), "backtest", str(table), "--horizon", "6", "--windows", "5", "--context", "256", "--quiet", "--out", str(tmp_path),
    ]  # fmt: skip
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = toto_cpp.backtest(table, nano, horizon=6, windows=5, context=256)
    theirs = json.loads((tmp_path / "summary.json").read_text())
    assert found.summary["metrics"] == theirs["metrics"]
    assert len(found.forecasts["actual"]) == 30
    found.save_report(tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text()


def test_frames(nano):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    rows = 300
    df = pd.DataFrame(
        {
            "unique_id": np.repeat(["a", "b"], rows),
            "ds": np.tile(pd.date_range("2024-01-01", periods=rows, freq="h"), 2),
            "y": np.r_[np.sin(np.arange(rows) / 4), np.cos(np.arange(rows) / 7)] * 10 + rng.normal(size=2 * rows),
        }
    )
    calls = []
    found = toto_cpp.backtest(df, nano, horizon=8, windows=4, context=128, progress=lambda done, total: calls.append(done))
    table = found.metrics_df()
    total = table[(table.symbol == "*") & (table.step == "*")].set_index("forecaster")
    assert list(total.index) == ["toto", "last_value", "seasonal_naive", "drift"]
    assert total.mase["toto"] < total.mase["last_value"]
    assert calls and repr(found) == "<toto_cpp.Backtest of 2 symbols>"
    # The truth is what the frame has.
    forecasts = found.forecasts_df()
    assert len(forecasts) == 2 * 4 * 8
    np.testing.assert_allclose(forecasts.actual[:32].astype(float), df.y[rows - 32 : rows], rtol=1e-5)
    with pytest.raises(toto_cpp.DataError, match="no_windows"):
        toto_cpp.backtest(df[:20], nano, horizon=30)
