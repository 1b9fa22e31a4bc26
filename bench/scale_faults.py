#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forecasts a file of many series while things go wrong, and compares the result with that of a run that nothing disturbed.

    bench/scale_faults.py --series 20000 --part-rows 256                # ends a run at 20 random moments; needs toto-cpp[scale]
    bench/scale_faults.py --series 1000000 --folder /data/scale         # a million series: 3 GB of disk, 2.3 times the time of one run
    bench/scale_faults.py --series 100000 --interrupts 0 --kill-every 5  # kills an actor of Ray every five seconds; toto-cpp[ray]
    bench/scale_faults.py --series 20000 --interrupts 0 --kill-every 5 --ray-data   # the same with Ray Data

The file is that of bench/scale_dataset.py. Prints one JSON object; the exit status is 1 where a byte or a number differs.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scale_dataset import WHOLE, digests, load_options, source_file, whole_options


begun = time.perf_counter()


def say(what):
    print(f"{time.perf_counter() - begun:7.0f} s  {what}", file=sys.stderr, flush=True)


def command(args, source, out):
    return [sys.executable, "-c", WHOLE, str(source), str(out), json.dumps(whole_options(args))]


def parts_of(out):
    return sum(name.startswith("part-") for name in os.listdir(out)) if Path(out).exists() else 0


def interrupted(args, source, out, wanted, seconds):
    """Ends the run by SIGKILL, SIGTERM or SIGINT at random moments of its work, and begins it again each time. A moment is a
    share of the parts: the run ends when so many are there, and some time into the next one, which takes `seconds` over all
    parts. Where so many were there before, it ends while it starts. Every part on disk must be whole whenever the run has
    ended. The bytes must be those of the folder `wanted`."""
    import pyarrow.parquet as pq

    # In the background of a shell SIGINT is ignored, and what is ignored here would be ignored in the runs too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng, ended, parts, every = random.Random(args.series), [], [], parts_of(wanted)
    for moment in sorted(rng.random() for _ in range(args.interrupts)):
        program = subprocess.Popen(command(args, source, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while parts_of(out) < int(moment * every) and program.poll() is None:
            time.sleep(0.01)
        time.sleep(moment * every % 1 * seconds / every)
        if program.poll() is None:
            by = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
            program.send_signal(by)
            program.wait()
            ended.append(by.name)
        else:
            ended.append("by itself")
        there = list(Path(out).glob("part-*"))
        parts.append(len(there))
        for path in there:
            pq.read_metadata(path)
        say(f"{len(ended)} of {args.interrupts}: {ended[-1]} with {len(there)} of {every} parts")
    subprocess.run(command(args, source, out), check=True, stdout=subprocess.DEVNULL)
    found = digests(out)
    return {"ended": ended, "parts_then": parts, "files": len(found), "same_bytes": found == digests(wanted)}


RAY = """
import json, sys, ray, toto_cpp.ray
source, out, options, cores = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
ray.init(num_cpus=cores, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
toto_cpp.ray.forecast_dataset(source, out, options.pop("h"), level=[80], concurrency=1, num_cpus=cores, **options)
"""

RAY_DATA = """
import json, sys, ray, toto_cpp.ray
source, out, options, cores = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
ray.init(num_cpus=cores + 1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
ray.data.DataContext.get_current().enable_progress_bars = False
h = options.pop("h")
rows = ray.data.read_parquet(source, override_num_blocks=64)
toto_cpp.ray.forecast(rows, h, level=[80], concurrency=1, num_cpus=1, batch_size=64, **options).write_parquet(out)
"""


def actors(started_by):
    """Processes below this one that forecast as actors of Ray."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, above = (folder / "cmdline").read_bytes(), int(folder.name)
            if not (name.startswith(b"ray::") and (b"_Lists" in name or b"DatasetActor" in name)):
                continue
            while above not in (0, 1, started_by):
                above = int((Path("/proc") / str(above) / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if above == started_by:
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return found


def with_killed_actors(args, source, out, wanted):
    """One actor, killed every --kill-every seconds until all is done: the files of the folder `wanted`, or with Ray Data all rows and
    the same numbers."""
    program = RAY_DATA if args.ray_data else RAY
    options = json.dumps({"threads": args.threads or os.cpu_count(), **(load_options(args) if args.ray_data else whole_options(args)), "h": args.horizon})
    log = tempfile.TemporaryFile("w+")  # Ray says a lot about actors that are killed
    run = subprocess.Popen([sys.executable, "-c", program, str(source), str(out), options, str(args.threads or os.cpu_count())], stdout=log, stderr=log)
    killed, begun = 0, time.perf_counter()
    while run.poll() is None:
        time.sleep(args.kill_every)
        for pid in actors(run.pid)[:1]:
            os.kill(pid, signal.SIGKILL)
            killed += 1
    if run.returncode != 0:
        log.seek(0)
        sys.exit(f"the run with Ray failed: {log.read()[-4000:]}")
    seconds = time.perf_counter() - begun
    same = same_numbers(out, wanted) if args.ray_data else digests(out) == digests(wanted)
    return {"killed": killed, "seconds": seconds, "same": same}


def same_numbers(out, wanted):
    import pyarrow.parquet as pq

    a, b = (pq.read_table(folder).select(["unique_id", "Toto", "Toto-lo-80", "Toto-hi-80"]).sort_by("unique_id") for folder in (out, wanted))
    return a.num_rows == b.num_rows and all(a.column(i).to_pylist() == b.column(i).to_pylist() for i in range(4))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--part-rows", type=int, default=4096, help="series of a part: what an interruption can lose")
    parser.add_argument("--interrupts", type=int, default=20)
    parser.add_argument("--kill-every", type=float, help="seconds: also with Ray, whose actor is killed that often")
    parser.add_argument("--ray-data", action="store_true", help="with Ray Data")
    parser.add_argument("--model", help="as for bench/scale_dataset.py (default: models/toto-nano)")
    parser.add_argument("--device")
    parser.add_argument("--precision")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--folder", type=Path, help="where files go; the input is kept and used again (default: a temporary one)")
    args = parser.parse_args()
    if args.folder:
        args.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
        source = source_file(args, temporary)
        whole = Path(temporary) / "whole"
        say(f"{args.series:,} series in {source.name}; now the run that nothing disturbs")
        done = json.loads(subprocess.run(command(args, source, whole), check=True, capture_output=True, text=True).stdout)
        result = {"series": args.series, "context": args.context, "horizon": args.horizon, "part_rows": args.part_rows, "whole": done}
        say(f"it took {done['seconds']:.0f} s")
        equal = []
        if args.interrupts:
            result["interrupted"] = interrupted(args, source, Path(temporary) / "again", whole, done["seconds"])
            equal.append(result["interrupted"]["same_bytes"])
        if args.kill_every:
            result["ray"] = with_killed_actors(args, source, Path(temporary) / "ray", whole)
            equal.append(result["ray"]["same"])
    print(json.dumps(result, indent=2))
    sys.exit(not all(equal))


if __name__ == "__main__":
    main()
