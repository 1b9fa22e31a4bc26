#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a forecast takes from process start to result, loading included, and its peak memory.

    bench/start_time.py                                    # toto-nano-2, build/release/toto
    bench/start_time.py --runs 15 --model build/22m --context 512 old/toto build/release/toto

Several programs take turns. Nothing else should be running.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command):
    """Milliseconds and peak KiB of one run."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command[0]} failed: {os.waitstatus_to_exitcode(status)}")
    return 1e3 * (time.perf_counter() - begun), usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", default=[str(ROOT / "build/release/toto")])
    parser.add_argument("--model", default=str(ROOT / "models/toto-nano-2"))
    parser.add_argument("--runs", type=int, default=41)
    parser.add_argument("--horizon", default="96")
    parser.add_argument("--context", help="steps of context; all 3,120 where left out")
    args = parser.parse_args()
    rest = ["forecast", str(ROOT / "examples/data/sunspots.csv"), "--model", args.model, "--horizon", args.horizon, "--json", "--quiet"]
    rest += ["--context", args.context] if args.context else []
    found = {program: [] for program in args.programs}
    for turn in range(args.runs + 1):
        for program, runs in found.items():
            result = run([program, *rest])
            if turn:  # the first may read files from a disk
                runs.append(result)
    for program, runs in found.items():
        times = sorted(ms for ms, _ in runs)
        print(f"{program}: {len(runs)} runs, fastest {times[0]:.1f} ms, median {statistics.median(times):.1f} ms, "
              f"p90 {times[int(len(times) * 0.9)]:.1f} ms, peak {max(kib for _, kib in runs) / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
