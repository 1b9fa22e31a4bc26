# SPDX-License-Identifier: Apache-2.0
"""Models of fev, where fev is installed."""

import numpy as np
import pytest

from conftest import GOLDEN

fev = pytest.importorskip("fev")
datasets = pytest.importorskip("datasets")


def test_tasks_are_evaluated(nano1, tmp_path):
    from toto_cpp.compat.fev import Toto1Model, Toto2Model

    rng = np.random.default_rng(0)
    rows = [
        {
            "id": f"s{i}",
            "timestamp": list(np.datetime64("2024-01-01T00", "ms") + np.arange(300) * np.timedelta64(1, "h")),
            "target": list((np.sin(np.arange(300) * np.pi / 12) * 5 + rng.normal(size=300) + i).astype(np.float32)),
            "other": list(rng.normal(size=300).astype(np.float32)),
        }
        for i in range(4)
    ]
    datasets.Dataset.from_list(rows).to_parquet(tmp_path / "data.parquet")
    for targets, metric in (("target", "MASE"), (["target", "other"], "RMSE")):
        task = fev.Task(
            dataset_path=str(tmp_path / "data.parquet"), horizon=12, num_windows=2, quantile_levels=[0.1, 0.5, 0.9],
            eval_metric=metric, extra_metrics=["WQL"], seasonality=24, target=targets,
        )  # fmt: skip
        for model in (Toto1Model(nano1.info.folder), Toto2Model(str(GOLDEN / "toto2-tiny-uni"), as_univariate=True)):
            predictions = model.fit_predict(task)
            summary = task.evaluation_summary(predictions, model_name=model.model_name)
            assert np.isfinite(summary[metric]) and summary["num_forecasts"] == 8 * (1 if isinstance(targets, str) else 2)
    assert summary["WQL"] > 0
