#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the widths of `toto tune` do to later windows: coverage of the 80 % band and quantile loss, before and after.

    python3 bench/accuracy/widths.py --toto build/release/toto --model models/toto-nano

The series of wide-dev and the 37 of the model card that have 200 observations or more, 512 steps of context, 60 windows of
validation and 40 of test.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np

import series


def tune(toto, model, one, folder):
    source, result = pathlib.Path(folder, "in.csv"), pathlib.Path(folder, "out.json")
    horizon = min(one.horizon, 14)
    series.write(source, [(one.name, one.times(), one.values)])
    subprocess.run(
        [toto, "tune", source, "-q", "--model", model, "--horizon", str(horizon), "--contexts", "512",
         "--stride", str(min(horizon, max(1, len(one.values) // 250))), "--samples", "128",
         "--transforms", "none", "--aggregates", "median", "--output", result],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    told = json.loads(result.read_text())
    name = next(iter(told["symbols"]))
    return {**told["found"][name], **told["symbols"][name]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--toto", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    args = parser.parse_args()
    for which in ("wide-dev", "test"):
        rows = []
        with tempfile.TemporaryDirectory() as folder:
            for one in series.load(which):
                if np.isfinite(one.values).sum() < 200:
                    continue
                try:
                    found = tune(args.toto, args.model, one, folder)
                except subprocess.CalledProcessError:
                    continue
                if found["validation_windows"] >= 20:
                    rows.append(found)
        column = {k: np.array([r[k] for r in rows], float) for k in rows[0] if k.startswith(("test_", "width"))}
        before, after = column["test_coverage_80_as_is"], column["test_coverage_80"]
        gain = np.exp(np.mean(np.log(column["test_quantile_loss"] / column["test_quantile_loss_as_is"])))
        print(f"{which}: {len(rows)} series; coverage {before.mean():.3f} -> {after.mean():.3f}; "
              f"mean distance from 0.8 {abs(before - 0.8).mean():.3f} -> {abs(after - 0.8).mean():.3f}; "
              f"within 0.7 and 0.9: {np.mean(abs(before - 0.8) <= 0.1):.2f} -> {np.mean(abs(after - 0.8) <= 0.1):.2f}; "
              f"quantile loss x {gain:.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
