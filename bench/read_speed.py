#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading a large long CSV: `toto inspect` beside polars, in turns.

    python3 bench/read_speed.py --toto build/release/toto [--rows 10000000] [--rounds 3]      # needs polars

The file has 1,000 series with ISO times of a minute. polars reads it with its times as times, which is what toto does, with its times
as text, and as times and then as one group for each series. Each reading is a process of its own. Prints seconds and peak memory.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

POLARS = {
    "polars, times read": "polars.read_csv({!r}, try_parse_dates=True)",
    "polars, times read, and grouped": "polars.read_csv({!r}, try_parse_dates=True).partition_by('unique_id')",
    "polars, times left as text": "polars.read_csv({!r})",
}


def make(path, rows, series=1000):
    steps = max(1, rows // series)  # at most a year of minutes
    times = [f"2024-{1 + t // 40320:02d}-{1 + t // 1440 % 28:02d} {t // 60 % 24:02d}:{t % 60:02d}:00" for t in range(steps)]
    with open(path, "w") as file:
        file.write("unique_id,ds,y\n")
        for i in range(series):
            file.write("".join(f"s{i:04d},{ds},{(t * 7919 + i) % 100000 / 100:.2f}\n" for t, ds in enumerate(times)))


def measure(command):
    """Seconds and peak memory in MiB of a process."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} failed")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--toto", required=True)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "long.csv")
        make(path, args.rows)
        commands = {"toto inspect": [args.toto, "inspect", path, "--json"]}
        for name, code in POLARS.items():
            commands[name] = [sys.executable, "-c", "import polars; " + code.format(path)]
        found = {name: [] for name in commands}
        for _ in range(args.rounds):
            for name, command in commands.items():
                found[name].append(measure(command))
        print(f"{args.rows} rows, {os.path.getsize(path) / 2**20:.0f} MiB")
        for name, all_of in found.items():
            seconds = [s for s, _ in all_of]
            print(f"{name}: {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f}), "
                  f"{max(m for _, m in all_of):.0f} MiB")


if __name__ == "__main__":
    main()
