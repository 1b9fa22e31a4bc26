# SPDX-License-Identifier: Apache-2.0
"""The numbers of the command line, bit for bit: 200 random series of each generation."""

import csv
import subprocess
import sys

import numpy as np
import pytest

import toto_cpp

from conftest import GOLDEN, PROGRAM

CASES = 200
FILES = 20


def series(rng, count):
    """Random walks, waves and constants of many scales, some with holes."""
    out = []
    for _ in range(count):
        n = int(rng.integers(70, 400))
        kind = rng.integers(3)
        walk = rng.normal(size=n).cumsum() if kind == 0 else np.sin(np.arange(n) / rng.uniform(2, 20)) + rng.normal(size=n) / 9
        values = (walk * 10.0 ** rng.uniform(-3, 5) + rng.normal() * 100).astype(np.float32)
        if kind == 2:
            values[rng.random(n) < 0.1] = np.nan
            values[-1] = 1
        out.append(values)
    return out


def write_long(path, many, names):
    with open(path, "w") as file:
        file.write("unique_id,ds,y\n")
        for name, values in zip(names, many):
            file.writelines(f"{name},{t},{'' if np.isnan(v) else repr(float(v))}\n" for t, v in enumerate(values))


def forecasts_of_program(path, model, options):
    arguments = [str(PROGRAM), "forecast", str(path), "--quiet", "--output", "-", *options]
    if model is not None:
        arguments += ["--model", str(model)]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = {}
    for row in csv.DictReader(done.stdout.splitlines()):
        columns = {name: np.float32(text) for name, text in row.items() if name == "mean" or name.startswith("q0")}
        rows.setdefault(row["unique_id"], []).append(columns)
    return rows


@pytest.mark.parametrize("generation", [1, 2])
def test_same_bits(generation, tmp_path):
    folder = None if generation == 1 else GOLDEN / "toto2-tiny-uni"
    rng = np.random.default_rng(generation)
    compared = 0
    with toto_cpp.load(folder) as model:
        for file in range(FILES):
            many = series(rng, CASES // FILES)
            names = [f"s{file}-{i}" for i in range(len(many))]
            horizon = int(rng.integers(1, 130))
            samples, seed = int(rng.integers(1, 40)), int(rng.integers(2**40))
            missing = ["ffill", "linear", "zero"][rng.integers(3)]
            context = int(rng.choice([128, 256, 4096]))
            mean_only = generation == 1 and file % 5 == 4
            decode = ["cached", "uncached"][rng.integers(2)]
            align = ["pad", "trim"][rng.integers(2)]
            path = tmp_path / f"{file}.csv"
            write_long(path, many, names)
            flags = [
                f"--horizon={horizon}", f"--seed={seed}", f"--missing={missing}", f"--context={context}", f"--align={align}",
                "--cache" if decode == "cached" else "--no-cache",
            ]  # fmt: skip
            flags += ["--mean"] if mean_only else [f"--samples={samples}", "--quantiles=0.05,0.5,0.9"]
            rows = forecasts_of_program(path, folder, flags)
            got = model.forecast(
                many, horizon, [0.05, 0.5, 0.9], ids=names, num_samples=samples, seed=seed, missing=missing,
                context=context, mean_only=mean_only, decode=decode, align=align,
            )  # fmt: skip
            for name, forecast in zip(names, got):
                expected = rows[name]
                np.testing.assert_array_equal(forecast.mean, [r["mean"] for r in expected])
                if not mean_only:
                    for level, plane in zip(forecast.levels, forecast.quantiles):
                        np.testing.assert_array_equal(plane, [r[f"q{level}"] for r in expected])
                compared += 1
    assert compared == CASES


def test_the_program_is_part_of_the_package():
    for command in ([sys.executable, "-m", "toto_cpp"], [str(PROGRAM)]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True)
        assert done.stdout.strip() == f"toto {toto_cpp.__version__}"
    done = subprocess.run([sys.executable, "-m", "toto_cpp", "forecast", "nothing.csv"], capture_output=True, text=True)
    assert done.returncode == 66 and "file_not_found" in done.stderr
