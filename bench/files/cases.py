#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `toto` makes of the files and series that people have, as a table: of one build, or of two side by side.

    python3 bench/files/cases.py --toto build/release/toto [--before OTHER/toto] [--only NAME,...] > table.md

Each case runs the program as a user would, and says what came of it in a few words. Everything is made here or lies in
tests/data/files. Needs Python's standard library only.
"""
import argparse
import datetime
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

from interface_cases import INTERFACE

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ROOT / "tests/data/files"


class Toto:
    """One build of the program."""

    def __init__(self, program, folder):
        self.program = pathlib.Path(program).resolve()
        self.folder = pathlib.Path(folder)

    def run(self, *arguments, stdin=None):
        command = [str(self.program), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.folder, input=stdin, timeout=600)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def forecast(self, text, *flags, name="in.csv"):
        """The first series of the result, and what was said; or None and the error's code."""
        done = self.run("forecast", self.write(name, text), "--model", ROOT / "models/toto-nano", "--json", *flags)
        if done.returncode != 0:
            return None, code_of(done)
        return json.loads(done.stdout)["series"][0], done.stderr


def code_of(done):
    start, end = done.stderr.find("["), done.stderr.find("]")
    word = done.stderr[start + 1:end] if 0 <= start < end else f"exit {done.returncode}"
    return f"error `{word}`"


def table(values, start=0, step=1):
    return "ds,y\n" + "".join(f"{start + i * step},{'' if v is None else f'{v:.9g}'}\n" for i, v in enumerate(values))


def levels(series):
    quantiles = series["variates"][0]["quantiles"]
    return quantiles["0.1"], quantiles["0.9"]


def everything(series):
    variate = series["variates"][0]
    return [x for row in [variate["mean"], *variate["quantiles"].values()] for x in row]


# --- the made series of tests/support/seasonal_series.h ---

DAY = (24, 24, 24, 48, 96)
MASK = (1 << 64) - 1


def normals(seed):
    """splitmix64, and the transform of Box and Muller."""
    state = seed

    def uniform():
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        return ((z >> 11) + 0.5) * 2.0 ** -53

    while True:
        radius = math.sqrt(-2 * math.log(uniform()))
        yield radius * math.cos(2 * math.pi * uniform())


def seasonal(which, steps):
    memory = (0.5, 0.0, 0.8, 0.6, 0.7)[which]
    source, noise, out = normals(100 + which), 0.0, []
    for t in range(steps):
        noise = memory * noise + math.sqrt(1 - memory * memory) * next(source)
        turn = 2 * math.pi * t / DAY[which]
        daily = math.sin(turn - 1.9) + 0.4 * math.sin(2 * turn + 0.6)
        weekend = 1 if t // DAY[which] % 7 >= 5 else 0
        out.append((600 + 160 * daily * (1 - 0.6 * weekend) - 120 * weekend + 18 * noise,
                    40 + 12 * daily - 9 * weekend + 2.5 * noise,
                    1000 * math.exp(0.35 * daily - 0.5 * weekend + 0.06 * noise),
                    50 + 20 * daily - 14 * weekend + 0.0006 * t + 4 * noise,
                    2000 + 500 * max(daily, -0.6) * (1 - 0.5 * weekend) + 70 * noise)[which])
    return out


# --- silently wrong ---

def stooq(toto):
    """A date column forecast as a price"""
    done = toto.run("forecast", FILES / "stooq_bulk.txt", "--model", ROOT / "models/toto-nano", "--horizon", 3, "--json")
    if done.returncode != 0:
        return code_of(done)
    series = json.loads(done.stdout)["series"]
    largest = max(abs(x) for one in series for x in everything(one))
    return f"{len(series)} series, largest value {largest:,.0f}"


def latency(toto):
    """Latency in seconds: its 80 % band, beside that of the same in milliseconds"""
    rng = random.Random(3)
    level, milliseconds = 0.0, []
    for _ in range(600):
        level = 0.9 * level + rng.gauss(0, 0.1)
        milliseconds.append(4.5 * math.exp(level + rng.gauss(0, 0.05)))
    small, _ = toto.forecast(table([x / 1000 for x in milliseconds]), "--horizon", 60)
    plain, _ = toto.forecast(table(milliseconds), "--horizon", 60)
    width = [sum(b - a for a, b in zip(*levels(one))) for one in (small, plain)]
    low, high = levels(small)
    outside = sum(not a <= m <= b for a, m, b in zip(low, small["variates"][0]["mean"], high))
    return f"{1000 * width[0] / width[1]:.3f} times as wide; mean outside at {outside} of 60 steps"


def missing_end(missing):
    def case(toto):
        horizon, context, windows, apart = 60, 4096, 3, 131
        covered = error = 0.0
        for which in range(5):
            values = seasonal(which, context + windows * apart + horizon)
            week = 7 * DAY[which]
            change = sum(abs(values[t] - values[t - week]) for t in range(week, context)) / (context - week)
            for window in range(windows):
                begin = window * apart
                past = values[begin:begin + context]
                actual = values[begin + context:begin + context + horizon]
                text = table(past[:context - missing] + [None] * missing)
                found, said = toto.forecast(text, "--horizon", horizon, "--samples", 64)
                if found is None:
                    return said
                low, high = levels(found)
                covered += sum(a <= y <= b for a, y, b in zip(low, actual, high))
                error += sum(abs(y - m) for y, m in zip(actual, found["variates"][0]["median"])) / change
        return f"coverage {covered / 900:.2f}, error {error / 900:.2f}"

    case.__doc__ = f"{missing} steps missing at the end: the next 60, mean of five series"
    return case


def far_metric(toto):
    """A 10-second metric between 35 and 165, 4,320 steps ahead: largest of means and quantiles"""
    rng, level, values = random.Random(7), 100.0, []
    for _ in range(4096):
        level = min(165.0, max(35.0, level + 3 * rng.uniform(-0.5, 0.5)))
        values.append(min(165.0, max(35.0, level + rng.gauss(0, 3))))
    found, said = toto.forecast(table(values, 1_700_000_000, 10), "--horizon", 4320, "--samples", 64)
    return f"{max(map(abs, everything(found))):.3g}" if found else said


def far_growth(toto):
    """Monthly, growing, seasonal (as air passengers did), 1,000 months ahead: the same"""
    rng, rows = random.Random(5), []
    for t in range(144):
        value = (110 + 2.6 * t) * (1 + 0.2 * math.sin(2 * math.pi * (t - 3) / 12)) * math.exp(rng.gauss(0, 0.03))
        rows.append(f"{1949 + t // 12}-{t % 12 + 1:02},{value:.0f}")
    found, said = toto.forecast("Month,Passengers\n" + "\n".join(rows) + "\n", "--horizon", 1000)
    return f"{max(map(abs, everything(found))):.3g}" if found else said


def cut(toto):
    """1-minute data, 20,160 rows: what is left out of the default context"""
    values = [100 + 50 * math.sin(2 * math.pi * t / 1440) for t in range(20_160)]
    _, said = toto.forecast(table(values, 1_700_000_000, 60), "--horizon", 60)
    return "said" if "sees the last 4096" in said or "sees the last 4,096" in said else "not said"


def columns(toto):
    """Sales with integer store, holiday and price columns: series"""
    rows = [f"{datetime.date(2024, 1, 1) + datetime.timedelta(t)},1,{200 + t % 7},{int(t % 30 == 0)},{t % 5 + 3}" for t in range(200)]
    text = "date,store,sales,holiday,price\n" + "\n".join(rows) + "\n"
    done = toto.run("forecast", toto.write("in.csv", text), "--model", ROOT / "models/toto-nano", "--horizon", 3, "--json")
    return ", ".join(one["id"] for one in json.loads(done.stdout)["series"]) if done.returncode == 0 else code_of(done)


def level(toto):
    """Values that vary by 1 around 1e7"""
    rng = random.Random(1)
    found, said = toto.forecast("ds,y\n" + "".join(f"{t},{1e7 + rng.gauss(0, 0.2):.3f}\n" for t in range(300)), "--horizon", 8)
    low, high = levels(found)
    return f"widest band {max(b - a for a, b in zip(low, high)):.3g}; {'said' if 'float32' in said else 'not said'}"


def counter(toto):
    """A counter (`requests_total`): may it fall?"""
    total, rows = 1000.0, ["time,requests_total"]
    for t in range(400):
        total += 300 + 100 * math.sin(t / 20)
        rows.append(f"{1_700_000_000 + 30 * t},{total:.0f}")
    _, said = toto.forecast("\n".join(rows) + "\n", "--horizon", 8)
    rate, _ = toto.forecast("\n".join(rows) + "\n", "--horizon", 8, "--rate")
    if rate is None:
        return "forecast as a level, not said"
    lowest = min(everything(rate))
    return f"{'said' if '--rate' in said else 'not said'}; with `--rate` at least {lowest:.1f} a second"


def counts(toto):
    """Intermittent counts, 28 days: steps with q0.1 below 0 (`--non-negative --integer`)"""
    rng = random.Random(9)
    text = table([rng.choice((1, 2, 3, 5)) if rng.random() < 0.25 else 0 for _ in range(400)])
    plain, _ = toto.forecast(text, "--horizon", 28)
    bound, _ = toto.forecast(text, "--horizon", 28, "--non-negative", "--integer")
    below = [sum(x < 0 for x in levels(one)[0]) if one else "no such flag" for one in (plain, bound)]
    return f"{below[0]} (with the flags: {below[1]})"


def percent(toto):
    """CPU in %, a day of minutes: steps with q0.9 above 100 (`--max 100`)"""
    rng, text = random.Random(4), []
    for t in range(4096):
        text.append(min(100.0, max(0.0, 70 + 30 * math.sin(2 * math.pi * t / 1440) + rng.gauss(0, 6))))
    plain, _ = toto.forecast(table(text, 1_700_000_000, 60), "--horizon", 1440, "--samples", 64)
    bound, _ = toto.forecast(table(text, 1_700_000_000, 60), "--horizon", 1440, "--samples", 64, "--min", 0, "--max", 100)
    above = [sum(x > 100 for x in levels(one)[1]) if one else "no such flag" for one in (plain, bound)]
    return f"{above[0]} of 1440 (with the flag: {above[1]})"


# --- refused ---

def infinity(toto):
    """`+Inf` among the values of Prometheus' JSON"""
    values = ",".join(f'[{1_700_000_000 + 60 * t},"{"+Inf" if t == 7 else t % 9}"]' for t in range(100))
    text = '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up"},"values":[' + values + "]}]}}"
    found, said = toto.forecast(text, "--horizon", 3, name="in.json")
    return "read, missing" if found else said


def short(toto):
    """Eight observations"""
    found, said = toto.forecast(table([3, 5, 4, 6, 5, 7, 6, 8]), "--horizon", 3)
    return "forecast, with a note" if found and "observed" in said else "forecast" if found else said


def m4_wide(toto):
    """M4's wide form: a series in each row"""
    head = ",".join(f'"V{i}"' for i in range(1, 50))
    rows = [f'"M{k}",' + ",".join(f'"{100 + k + t % 12}"' for t in range(48 - 7 * k)) + "," * (7 * k) for k in range(4)]
    text = head + "\n" + "\n".join(rows) + "\n"
    done = toto.run("forecast", toto.write("in.csv", text), "--model", ROOT / "models/toto-nano", "--horizon", 3, "--json")
    return "read" if done.returncode == 0 else code_of(done)


def several_ids(toto):
    """Two id columns"""
    rows = [f"{s},{i},2024-01-{d:02},{d + s}" for s in (1, 2) for i in ("a", "b") for d in range(1, 29)]
    text = "store,item,date,sales\n" + "\n".join(rows) + "\n"
    done = toto.run("forecast", toto.write("in.csv", text), "--model", ROOT / "models/toto-nano", "--horizon", 3, "--id", "store,item", "--json")
    return f"{len(json.loads(done.stdout)['series'])} series" if done.returncode == 0 else code_of(done)


def folder(toto):
    """A folder in `forecast`"""
    (toto.folder / "some").mkdir(exist_ok=True)
    for name in ("one", "two"):
        toto.write(f"some/{name}.csv", table(range(64)))
    done = toto.run("forecast", "some", "--model", ROOT / "models/toto-nano", "--horizon", 3, "--json")
    return f"{len(json.loads(done.stdout)['series'])} series" if done.returncode == 0 else code_of(done)


def standard_input(toto):
    """Standard input in `backtest`"""
    done = toto.run("backtest", "-", "--model", ROOT / "models/toto-nano", "--windows", 2, "--context", 64, "--horizon", 2,
                    "--out", "stdin_out", stdin=table([100 + t % 7 for t in range(200)]))
    return "read" if done.returncode == 0 else code_of(done)


def shared_column(toto):
    """Two wide files that share a column name"""
    for name in ("a.csv", "b.csv"):
        toto.write(name, table([t % 9 for t in range(64)]))
    done = toto.run("forecast", "a.csv", "b.csv", "--model", ROOT / "models/toto-nano", "--horizon", 3, "--json")
    return ", ".join(one["id"] for one in json.loads(done.stdout)["series"]) if done.returncode == 0 else code_of(done)


def vendor_flags(told):
    flags = []
    for key, value in told.items():
        flags += [f"--{key.replace('_', '-')}", ",".join(value) if isinstance(value, list) else value]
    return flags


def vendor_file(name, expected):
    def case(toto):
        done = toto.run("forecast", FILES / name.split("?")[0], "--model", ROOT / "models/toto-nano", "--horizon", 2, "--json",
                        *vendor_flags(expected.get("options", {})))
        if done.returncode != 0:
            return code_of(done)
        found = json.loads(done.stdout)["series"]
        if "series" not in expected:
            return f"read as {len(found)} series"
        wanted = [(one["id"], one["next"]) for one in expected["series"]]
        same = [(one["id"], one["ds"][0]) for one in found] == wanted
        return "read as it should be" if same else "read as something else"

    case.__doc__ = f"`{name}`"
    return case


WRONG = {"2.1 Stooq": stooq, "2.3 scale": latency, "2.4 missing 0": missing_end(0), "2.4 missing 32": missing_end(32),
         "2.4 missing 120": missing_end(120), "2.4 missing 600": missing_end(600), "2.5 metric": far_metric, "2.5 growth": far_growth,
         "2.6 context": cut, "2.7 columns": columns, "2.8 level": level, "2.9 counter": counter, "2.10 counts": counts, "2.10 percent": percent}
REFUSED = {"infinity": infinity, "short": short, "M4": m4_wide, "several ids": several_ids, "folder": folder, "stdin": standard_input,
           "shared": shared_column}


def vendor_cases():
    expectations = json.loads((FILES / "expected.json").read_text())
    return {"file " + name: vendor_file(name, expected) for name, expected in expectations.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", default="build/release/toto")
    parser.add_argument("--before", help="another build, for a column of its own")
    parser.add_argument("--only", default="", help="names of cases, or how they begin, between commas")
    arguments = parser.parse_args()
    only = tuple(name for name in arguments.only.split(",") if name)
    builds = [arguments.before] if arguments.before else []
    builds.append(arguments.toto)
    print("| case | " + ("before | " if arguments.before else "") + "now |\n|---|" + "---|" * len(builds))
    for name, case in (WRONG | REFUSED | INTERFACE | vendor_cases()).items():
        if only and not name.startswith(only):
            continue
        told = []
        for build in builds:
            with tempfile.TemporaryDirectory() as work:
                try:
                    told.append(case(Toto(build, work)))
                except (TypeError, ValueError, KeyError, StopIteration) as error:
                    told.append(f"nothing to show ({error})")
        label = case.__doc__ if name.startswith("file ") else f"{name.split()[0] + ' ' if name[0] == '2' else ''}{case.__doc__}"
        print(f"| {label} | " + " | ".join(told) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
