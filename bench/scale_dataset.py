#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What forecasting a file of many series costs: reading, computing, writing, each alone and together; and memory.

    bench/scale_dataset.py --series 1000000 --folder /data/scale       # one JSON object; needs toto-cpp[scale]
    bench/scale_dataset.py --series 50000 --ray                        # and with one actor of Ray, on the same cores; toto-cpp[ray]
    bench/scale_dataset.py --series 50000 --ray-data                   # and through Ray Data
    bench/scale_dataset.py --device cuda:all --model toto-2.0-22m      # made-up weights of a published size

The file holds random walks of --context steps as lists of float32, in Parquet. `compute_only` forecasts batches that lie in
memory; `read_only` and `write_only` do nothing else; `whole` is toto_cpp.forecast_dataset in a process of its own, `rss_mib`
its memory as it went on; its steady rate is that between 10 and 95 % of the series. `fraction` is the rate of the whole by that of computing alone. `model` is
T = max(read, compute / n, write) for n devices of this kind.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

NANO = str(Path(__file__).resolve().parent.parent / "models/toto-nano")
PRESETS = ("toto-open-base-1.0", "toto-2.0-4m", "toto-2.0-22m", "toto-2.0-313m", "toto-2.0-1b", "toto-2.0-2.5b")


def load_options(args):
    options = {"device": args.device, "precision": args.precision, "threads": args.threads, "batch_size": getattr(args, "batch_size", None)}
    options = {name: value for name, value in options.items() if value is not None}
    return {**options, "synthetic": args.model} if args.model in PRESETS else {**options, "model": args.model or NANO}


def whole_options(args):
    return {"h": args.horizon, **({"part_rows": args.part_rows} if getattr(args, "part_rows", None) else {}), **load_options(args)}


def source_file(args, temporary):
    """The input: in --folder, where it is made once, or in a temporary folder."""
    source = (args.folder or Path(temporary)) / f"series-{args.series}x{args.context}.parquet"
    if not source.exists():
        make(source.with_suffix(".tmp"), args.series, args.context)
        source.with_suffix(".tmp").rename(source)
    return source


def make(path, series, context):
    """Row groups of 50,000 series."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([("unique_id", pa.string()), ("y", pa.list_(pa.float32()))])
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        for begin in range(0, series, 50_000):
            count = min(50_000, series - begin)
            values = rng.standard_normal((count, context), dtype=np.float32).cumsum(1, dtype=np.float32).ravel()
            offsets = pa.array(np.arange(count + 1, dtype=np.int32) * context)
            names = pa.array([f"s{i:09d}" for i in range(begin, begin + count)])
            writer.write_table(pa.table([names, pa.ListArray.from_arrays(offsets, pa.array(values))], schema=schema), row_group_size=count)


def read_only(path):
    """Of one thread."""
    from toto_cpp._sources import batches_of, files_of, groups_of

    begun, rows = time.perf_counter(), 0
    for file in files_of(path):
        for group in range(len(groups_of(file))):
            rows += sum(batch.num_rows for batch in batches_of(file, ["unique_id", "y"], 4096, group))
    return rows / (time.perf_counter() - begun)


def compute_only(args, seconds):
    """Series per second of batches in memory, of all devices: what the engine itself can do from Python."""
    import numpy as np
    from toto_cpp._task import task_of

    task = task_of(args.horizon, level=[80], **load_options(args))
    rng = np.random.default_rng(0)
    batch = list(rng.normal(size=(task.batch_size, args.context)).cumsum(1).astype(np.float32))
    models, names = task.models(), [str(i) for i in range(task.batch_size)]
    done = [0] * len(models)

    def work(which):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            models[which].forecast(batch, task.h, task.levels, ids=names, **task.options)
            done[which] += len(batch)

    for model in models:
        model.forecast(batch, task.h, task.levels, ids=names, **task.options)
    begun = time.perf_counter()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(models))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return sum(done) / (time.perf_counter() - begun), len(models)


def write_only(out, folder):
    """Writes again what was written."""
    import pyarrow.parquet as pq
    from toto_cpp._writing import write_table

    parts = [pq.read_table(path) for path in sorted(Path(out).glob("part-*"))[:64]]
    begun = time.perf_counter()
    for i, part in enumerate(parts):
        write_table(part, Path(folder) / f"again-{i}.parquet", "parquet")
    return sum(map(len, parts)) / (time.perf_counter() - begun)


WHOLE = """
import json, sys, time, toto_cpp
source, out, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
seen = []
done = toto_cpp.forecast_dataset(source, out, options.pop("h"), level=[80], progress=lambda at: seen.append((at.seconds, at.series)), **options)
inside = [at for at in seen if 0.1 * done.series <= at[1] <= 0.95 * done.series]
steady = (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0]) if len(inside) > 2 else None
found = {"series": done.series, "seconds": done.seconds, "series_per_second": done.series_per_second, "steady_series_per_second": steady}
print(json.dumps(found))
"""


def whole(args, source, out):
    options = whole_options(args)
    program = subprocess.Popen([sys.executable, "-c", WHOLE, str(source), str(out), json.dumps(options)], stdout=subprocess.PIPE, text=True)
    memory = []
    while program.poll() is None:
        try:
            memory.append(int(Path(f"/proc/{program.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20)
        except (OSError, IndexError):
            pass
        time.sleep(0.1)
    if program.returncode != 0:
        sys.exit("the run failed")
    tenth = max(1, len(memory) // 10)
    rss = {"peak": max(memory), "second_tenth": max(memory[tenth : 2 * tenth] or memory), "last_tenth": max(memory[-tenth:])}
    return {**json.loads(program.stdout.read()), "rss_mib": rss}


RAY = """
import json, sys, time, ray, toto_cpp.ray
source, out, options, cores = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
# What serves only to look on is left out.
ray.init(num_cpus=cores, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
h = options.pop("h")
begun = time.perf_counter()
done = toto_cpp.ray.forecast_dataset(source, out, h, level=[80], concurrency=1, num_cpus=cores, **options)
seconds = time.perf_counter() - begun
print(json.dumps({"series": done.series, "seconds": seconds, "seconds_to_begin": seconds - done.seconds}))
"""

RAY_DATA = """
import json, sys, time, ray, toto_cpp.ray
source, out, options, cores = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
ray.init(num_cpus=cores + 1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
ray.data.DataContext.get_current().enable_progress_bars = False
h = options.pop("h")
options.setdefault("threads", cores)
for _ in range(2):  # the second time: what Ray takes to begin, whatever the number of series
    begun = time.perf_counter()
    toto_cpp.ray.forecast(ray.data.read_parquet(source).limit(1), h, level=[80], num_cpus=1, **options).materialize()
    start = time.perf_counter() - begun
begun = time.perf_counter()
toto_cpp.ray.forecast(ray.data.read_parquet(source), h, level=[80], concurrency=1, num_cpus=1, **options).write_parquet(out)
print(json.dumps({"seconds": time.perf_counter() - begun, "seconds_to_begin": start}))
"""


def with_ray(program, args, source, out):
    """One actor with all cores, from the call to the last file, starting the actor included. `processor_seconds` of the whole program: of
    Ray's own processes too, and of their start."""
    options = json.dumps({"h": args.horizon, **load_options(args)})
    before = processor_seconds()
    done = subprocess.run([sys.executable, "-c", program, str(source), str(out), options, str(args.threads or os.cpu_count())], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return {**json.loads(done.stdout.splitlines()[-1]), "processor_seconds": processor_seconds() - before}


def processor_seconds():
    """Of all processes of the machine, since it started."""
    user, nice, system = (int(n) for n in Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def beside_ray(args, source, folder, done):
    """Ray between two runs without it: machines do not stay equally fast. `done`: the first of them."""
    found, before = {}, done["seconds"]
    for name, program, wanted in (("ray", RAY, args.ray), ("ray_data", RAY_DATA, args.ray_data)):
        if not wanted:
            continue
        one = with_ray(program, args, source, folder / name)
        after = whole(args, source, folder / f"after-{name}")["seconds"]
        if name == "ray":
            one["same_bytes"] = digests(folder / name) == digests(folder / "out")
        found[name] = {**one, "bare_seconds": [before, after], "times_of_whole": 2 * one["seconds"] / (before + after)}
        before = after
    return found


def digests(out):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(Path(out).iterdir())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--model", help=f"a folder, a Hub id, or one of {', '.join(PRESETS)} (default: models/toto-nano)")
    parser.add_argument("--device")
    parser.add_argument("--precision")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--folder", type=Path, help="where files go; the input is kept and used again (default: a temporary one)")
    parser.add_argument("--seconds", type=float, default=20, help="of computing alone, before the whole and after it")
    parser.add_argument("--ray", action="store_true", help="the same with one actor of Ray, from files to files")
    parser.add_argument("--ray-data", action="store_true", help="the same with one actor of Ray Data")
    args = parser.parse_args()
    if args.folder:
        args.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
        source = source_file(args, temporary)
        rates = {"read_only": read_only(source)}
        before, devices = compute_only(args, args.seconds)
        done = whole(args, source, Path(temporary) / "out")
        with_engines = beside_ray(args, source, Path(temporary), done)
        after, _ = compute_only(args, args.seconds)
        rates["compute_only"] = (before + after) / 2
        rates["write_only"] = write_only(Path(temporary) / "out", temporary)
        result = {
            "series": args.series, "context": args.context, "horizon": args.horizon, "model": args.model or "toto-nano",
            "device": args.device or "default", "devices": devices, "bytes": source.stat().st_size,
            "series_per_second": rates, "compute_before_and_after": [before, after], "whole": done,
            "fraction": done["series_per_second"] / rates["compute_only"],
        }  # fmt: skip
        slowest = {n: min(rates["read_only"], rates["write_only"], rates["compute_only"] / devices * n) for n in (1, 2, 8)}
        result["model_hours"] = {f"{count:.0e}": {f"{n} device(s)": count / rate / 3600 for n, rate in slowest.items()} for count in (1e6, 1e8, 1e9)}
        result.update(with_engines)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
