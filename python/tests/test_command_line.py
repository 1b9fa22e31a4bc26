# SPDX-License-Identifier: Apache-2.0
"""The numbers of the command line, bit for bit: 200 random series of each generation."""

import json
import subprocess
import sys

import numpy as np
import pytest

import toto_cpp

from conftest import GOLDEN, NANO1, PROGRAM

CASES = 200
FILES = 20


def series(rng, count):
    """Random walks and waves of many scales, some with holes, some with a missing end, some of float64 at levels that
    float32 has no digits for."""
    out = []
    for _ in range(count):
        n = int(rng.integers(70, 400))
        kind = rng.integers(5)
        walk = rng.normal(size=n).cumsum() if kind == 0 else np.sin(np.arange(n) / rng.uniform(2, 20)) + rng.normal(size=n) / 9
        values = (walk * 10.0 ** rng.uniform(-3, 5) + rng.normal() * 100).astype(np.float32)
        if kind == 2:
            values[rng.random(n) < 0.1] = np.nan
            values[-1] = 1
        if kind == 3:
            values[-int(rng.integers(1, 30)) :] = np.nan
        if kind == 4:
            values = np.round(10.0 ** rng.uniform(7, 12) * rng.choice([-1, 1]) + walk * 10.0 ** rng.uniform(-1, 2), 4)
            values[rng.random(n) < rng.choice([0, 0.1])] = np.nan
        out.append(values)
    return out


def write_long(path, many, names):
    with open(path, "w") as file:
        file.write("unique_id,ds,y\n")
        for name, values in zip(names, many):
            file.writelines(f"{name},{t},{'' if np.isnan(v) else repr(float(v))}\n" for t, v in enumerate(values))


def forecasts_of_program(path, model, options):
    """The document of each series: arrays in the type that Python gives, float64 where there is an offset."""
    arguments = [str(PROGRAM), "forecast", str(path), "--quiet", "--json", *options]
    if model is not None:
        arguments += ["--model", str(model)]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {}
    for one in json.loads(done.stdout)["series"]:
        kind = np.float64 if any(one.get("value_offset", [])) else np.float32
        (variate,) = one["variates"]
        planes = {level: np.array(plane, kind) for level, plane in variate.get("quantiles", {}).items()}
        found[one["id"]] = {"mean": np.array(variate["mean"], kind), "kind": kind, **planes}
    return found


def assert_equal(forecasts, expected, mean_only=False):
    """Every number. Of a call arrays are float64 where one of its series has an offset."""
    kind = np.float64 if any(one["kind"] is np.float64 for one in expected.values()) else np.float32
    for forecast in forecasts:
        own = expected[forecast.id]
        assert forecast.mean.dtype == kind
        np.testing.assert_array_equal(forecast.mean, own["mean"])
        for level in [] if mean_only else forecast.levels:
            np.testing.assert_array_equal(forecast.quantile(level), own[str(level)])


@pytest.mark.parametrize("which", ["toto-nano", "toto2-tiny-uni", "default"])
def test_same_bits(which, tmp_path):
    folder = {"toto-nano": NANO1, "toto2-tiny-uni": GOLDEN / "toto2-tiny-uni", "default": None}[which]
    generation = 1 if which == "toto-nano" else 2
    rng = np.random.default_rng(3 if folder is None else generation)
    compared = offsets = 0
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
            clamp, integer, minimum = [4, 0, 1][rng.integers(3)], bool(rng.integers(2)), [None, -1.5][rng.integers(2)]
            paths = ["independent", "coherent"][rng.integers(2) if not mean_only else 0]
            path = tmp_path / f"{file}.csv"
            write_long(path, many, names)
            flags = [
                f"--horizon={horizon}", f"--seed={seed}", f"--missing={missing}", f"--context={context}", f"--align={align}",
                "--cache" if decode == "cached" else "--no-cache",
                f"--clamp={clamp}", *(["--integer"] if integer else []), *([f"--min={minimum}"] if minimum else []),
            ]  # fmt: skip
            flags += ["--mean"] if mean_only else [f"--paths={paths}", f"--samples={samples}", "--quantiles=0.05,0.5,0.9"]
            rows = forecasts_of_program(path, folder, flags)
            got = model.forecast(
                many, horizon, [0.05, 0.5, 0.9], ids=names, num_samples=samples, seed=seed, missing=missing,
                context=context, mean_only=mean_only, decode=decode, align=align,
                clamp=clamp, integer=integer, minimum=minimum, paths=paths,
            )  # fmt: skip
            assert [forecast.id for forecast in got] == names
            assert_equal(got, rows, mean_only)
            compared += len(rows)
            offsets += sum(one["kind"] is np.float64 for one in rows.values())
    assert compared == CASES and offsets > CASES // 10


@pytest.mark.parametrize("folder", [None, NANO1], ids=["default", "toto-nano"])
@pytest.mark.parametrize("by", ["auto", "regress", "model"])
def test_same_bits_with_covariates(by, folder, tmp_path):
    """Series that depend on two covariates and have gaps; several lengths, horizons and bounds."""
    rng = np.random.default_rng(5)
    cases = (
        (1, 4096, {}, []),
        (24, 200, {"minimum": -1.5, "integer": True}, ["--min=-1.5", "--integer"]),
        (24, 4096, {"minimum": 0}, ["--non-negative"]),
        (100, 4096, {"maximum": 20, "minimum": -20.25, "clamp": 1}, ["--max=20", "--min=-20.25", "--clamp=1"]),
    )
    with toto_cpp.load(folder) as model:
        for horizon, context, bounds, bound_flags in cases:
            many = series(rng, 6)
            given = [rng.normal(size=(2, len(one) + horizon)).astype(np.float32) for one in many]
            many = [(one + 30 * x[0, : len(one)] - 9 * x[1, : len(one)]).astype(one.dtype) for one, x in zip(many, given)]
            given = [x.astype(np.float64) + (2e8 if i % 3 == 0 else 0) for i, x in enumerate(given)]  # covariates too
            names = [f"s{i}" for i in range(len(many))]
            write_long(tmp_path / "x.csv", many, names)
            with open(tmp_path / "future.csv", "w") as file:
                file.write("unique_id,ds,promo,price\n")
                for name, x in zip(names, given):
                    file.writelines(f"{name},{t},{float(a)!r},{float(b)!r}\n" for t, (a, b) in enumerate(x.T))
            flags = [f"--horizon={horizon}", f"--context={context}", "--seed=3", "--quantiles=0.05,0.5,0.9", "--samples=20"]
            flags += [f"--future={tmp_path / 'future.csv'}", f"--covariates={by}", *bound_flags]
            rows = forecasts_of_program(tmp_path / "x.csv", folder, flags)
            options = dict(ids=names, num_samples=20, seed=3, context=context, **bounds)
            got = model.forecast(many, horizon, [0.05, 0.5, 0.9], covariates=given, covariates_by=by, **options)
            assert_equal(got, rows)


def test_the_program_is_part_of_the_package():
    for command in ([sys.executable, "-m", "toto_cpp"], [str(PROGRAM)]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True)
        assert done.stdout.strip() == f"toto {toto_cpp.__version__}"
    done = subprocess.run([sys.executable, "-m", "toto_cpp", "forecast", "nothing.csv"], capture_output=True, text=True)
    assert done.returncode == 66 and "file_not_found" in done.stderr
