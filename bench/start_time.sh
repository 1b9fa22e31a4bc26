#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long a forecast with toto-nano takes from process start to result:
#
#     bench/start_time.sh [RUNS] [PROGRAM]
#
# The first argument is how many runs (default 60). Nothing else should be running.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 - "${1:-60}" "${2:-build/release/toto}" <<'END'
import subprocess, sys, time

runs, program = int(sys.argv[1]), sys.argv[2]
command = [program, "forecast", "examples/data/sunspots.csv", "--model", "models/toto-nano", "--horizon", "24", "--output", "/dev/null", "-q"]
times = []
for _ in range(runs):
    begun = time.perf_counter()
    subprocess.run(command, check=True)
    times.append(1e3 * (time.perf_counter() - begun))
times.sort()
print(f"{runs} runs: fastest {times[0]:.1f} ms, median {times[runs // 2]:.1f} ms, "
      f"p90 {times[int(runs * 0.9)]:.1f} ms")
END
