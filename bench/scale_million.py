#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A million series from Parquet to Parquet: speed beside `toto bench`, memory as it goes on, and 20 interruptions.

    bench/scale_million.py --folder /data/scale --results bench/results/xeon.md
    bench/scale_million.py --folder /data/scale --steps throughput         # about 10 minutes on two cores
    bench/scale_million.py --folder /data/scale --steps interrupts         # needs no quiet machine
    bench/scale_million.py --series 20000 --pauses 4 --interrupts 5        # a trial

Needs the Python of an environment with toto-cpp[scale] and 3 GiB of disk in --folder.

throughput: one call of toto_cpp.forecast_dataset in a process of its own. At --pauses moments the process is stopped (SIGSTOP)
while `toto bench` measures the batch that the process forecasts too: so both meet the same machine. Time in which it was
stopped does not count. `fraction` is the rate from the call to its end over the mean of the rates of `toto bench`.
`rss_mib` is the memory of the process, looked at twice a second: flat is a largest one in the second half that is no more
than 5 % over that of the first half. Of --check series the result is compared with that of a Model.forecast each.

interrupts: the same call, ended --interrupts times at random moments by SIGKILL, SIGTERM or SIGINT, and begun again. All
files must have the bytes of the run that nothing disturbed. --interrupt-series does that with a smaller file.

Prints one JSON object; the exit status is 1 where a target is missed.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from scale_dataset import source_file
from scale_faults import command, digests, interrupted
from scale_report import commit, machine, put_section, table, today, words

NANO = Path(__file__).parent.parent / "models/toto-nano"
BATCH = 1024  # series that forecast_dataset computes together
TARGET, LARGEST_RSS = 0.92, 1536
HEADING = "{:,} series on {} cores"

CHILD = """
import json, resource, sys, time, toto_cpp
source, out, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
say = lambda **what: print(json.dumps(what), flush=True)
say(begin=True)
done = toto_cpp.forecast_dataset(source, out, options.pop("h"), level=[80], progress=lambda at: say(series=at.series), **options)
used = resource.getrusage(resource.RUSAGE_SELF)
say(end=True, series=done.series, cpu_seconds=used.ru_utime + used.ru_stime, peak_mib=used.ru_maxrss / 1024)
"""


def program():
    import toto_cpp

    return Path(toto_cpp.__file__).parent / "bin" / "toto"


def bench_rate(args):
    """Series per second of `toto bench` with the same batch, model, type and threads."""
    given = [args.toto or program(), "bench", f"{BATCH}x1x{args.context}x{args.horizon}", "--model", NANO, "--dtype", "float32", "--json", "--quiet"]
    given += ["--threads", args.threads, "--runs", 1000, "--seconds", args.bench_seconds]
    found = json.loads(subprocess.run([str(one) for one in given], check=True, capture_output=True, text=True).stdout)
    return found["rows"][0]["series_per_second"]


class Run:
    """The process that forecasts, watched: its reports with the time at which they came, and its memory."""

    def __init__(self, args, source, out):
        options = {"h": args.horizon, "part_rows": args.part_rows, "threads": args.threads}
        self.program = subprocess.Popen([sys.executable, "-c", CHILD, str(source), str(out), json.dumps(options)], stdout=subprocess.PIPE, text=True)
        self.begun = self.ended = None
        self.series, self.memory, self.stopped, self.said = 0, [], 0.0, {}
        self.going = threading.Event()
        self.going.set()
        self.threads = [threading.Thread(target=self._listen), threading.Thread(target=self._look)]
        for thread in self.threads:
            thread.start()

    def _listen(self):
        for line in self.program.stdout:
            what = json.loads(line)
            if "begin" in what:
                self.begun = time.perf_counter()
            elif "end" in what:
                self.ended = time.perf_counter()
                self.said = what
            self.series = what.get("series", self.series)

    def _look(self):
        while self.program.poll() is None:
            self.going.wait()
            try:
                pages = int(Path(f"/proc/{self.program.pid}/statm").read_text().split()[1])
                self.memory.append((self.series, pages * os.sysconf("SC_PAGE_SIZE") / 2**20))
            except (OSError, IndexError):
                pass
            time.sleep(0.5)

    def wait_for(self, series):
        """Until so many are done; False where the process is at its end."""
        while self.series < series and self.ended is None and self.program.poll() is None:
            time.sleep(0.02)
        return self.ended is None and self.program.poll() is None

    def active(self):
        """Seconds since the call, without those in which it was stopped."""
        return (self.ended or time.perf_counter()) - self.begun - self.stopped

    def paused(self, what):
        self.going.clear()
        begun = time.perf_counter()
        self.program.send_signal(signal.SIGSTOP)
        try:
            return what()
        finally:
            self.program.send_signal(signal.SIGCONT)
            self.stopped += time.perf_counter() - begun
            self.going.set()

    def join(self):
        self.program.wait()
        for thread in self.threads:
            thread.join()
        if self.program.returncode != 0 or self.ended is None:
            sys.exit("the run failed")


def throughput(args, source, out):
    shutil.rmtree(out, ignore_errors=True)
    rates, at = [bench_rate(args)], [(0, 0.0)]
    run = Run(args, source, out)
    for i in range(1, args.pauses + 1):
        if not run.wait_for(args.series * i // (args.pauses + 1)):
            break
        at.append((run.series, run.active()))
        rates.append(run.paused(lambda: bench_rate(args)))
    run.join()
    at.append((run.said["series"], run.active()))
    rates.append(bench_rate(args))
    pieces = [(b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(at, at[1:])]
    between = sorted(piece / ((a + b) / 2) for piece, a, b in zip(pieces, rates, rates[1:]))
    seconds, mean = run.active(), sum(rates) / len(rates)
    return {
        "series": args.series, "seconds": seconds, "seconds_stopped": run.stopped, "series_per_second": args.series / seconds,
        "bench_series_per_second": mean, "bench_rates": rates, "fraction": args.series / seconds / mean, "pieces": pieces,
        "median_fraction_of_pieces": between[len(between) // 2], "cpu_seconds": run.said["cpu_seconds"],
        "cores_used": run.said["cpu_seconds"] / seconds, "rss_mib": memory_of(run, args.series),
        "input_bytes": source.stat().st_size, "output_bytes": sum(path.stat().st_size for path in out.iterdir()),
    }  # fmt: skip


def memory_of(run, series):
    tenths = [max((mib for done, mib in run.memory if i * series <= 10 * done < (i + 1) * series), default=0) for i in range(10)]
    first, second = max(tenths[:5]), max(tenths[5:])
    return {"peak": run.said["peak_mib"], "largest_of_each_tenth": tenths, "second_half_by_first": second / first if first else None}


def checked(args, source, out):
    """Random rows, each forecast by itself: how many have the bits of the file."""
    import numpy as np
    import pyarrow.parquet as pq
    import toto_cpp

    given, same, draw = pq.ParquetFile(source), 0, random.Random(args.series)
    groups = [draw.randrange(given.num_row_groups) for _ in range(4)]
    with toto_cpp.load(NANO, threads=args.threads) as model:
        for group in groups:
            rows = given.read_row_group(group)
            for row in draw.sample(range(rows.num_rows), args.check // len(groups)):
                name = rows.column("unique_id")[row].as_py()
                values = np.asarray(rows.column("y")[row].as_py(), np.float32)
                wanted = model.forecast([values], args.horizon, [0.1, 0.5, 0.9], ids=[name]).quantiles.reshape(3, args.horizon)
                piece, at = divmod(row, args.part_rows)
                part = pq.read_table(out / f"part-00000-{group:05d}-{piece:05d}.parquet").slice(at, 1).to_pylist()[0]
                found = np.asarray([part[column] for column in ("Toto-lo-80", "Toto", "Toto-hi-80")], np.float32)
                same += part["unique_id"] == name and found.tobytes() == wanted.astype(np.float32).tobytes()
    return {"series": args.check // len(groups) * len(groups), "same_bits": int(same)}


def interrupts(args, source, whole, folder):
    count = args.interrupt_series or args.series
    small = argparse.Namespace(**{**vars(args), "series": count, "model": None, "device": None, "precision": None})
    seconds = None
    if count != args.series or not (whole / "_SUCCESS").exists():
        source, whole = source_file(small, folder), folder / f"whole-{count}"
        shutil.rmtree(whole, ignore_errors=True)
        seconds = json.loads(subprocess.run(command(small, source, whole), check=True, capture_output=True, text=True).stdout)["seconds"]
    out = folder / "interrupted"
    shutil.rmtree(out, ignore_errors=True)
    seconds = seconds or count / args.rate  # of the run that was watched
    begun = time.perf_counter()
    found = interrupted(small, source, out, whole, seconds)
    found = {"series": count, "seconds": time.perf_counter() - begun, "seconds_without": seconds, **found}
    shutil.rmtree(out)
    return found


def report(args, result):
    """The section of the page of results."""
    steps = [result[name] for name in ("throughput", "interrupts") if name in result]
    commits = " and ".join(dict.fromkeys(step["commit"] for step in steps))
    lines = [f"{today()}, commit {commits}, {result['machine']}. toto-nano in float32, context {args.context}, {args.horizon} steps, three",
             "quantiles.", "", *(f"    {command}" for command in dict.fromkeys(step["command"] for step in steps)), ""]  # fmt: skip
    rows, done = [], result.get("throughput")
    if done:
        memory, tenths = done["rss_mib"], [f"{mib:.0f}" for mib in done["rss_mib"]["largest_of_each_tenth"]]
        rows += [
            ("from Parquet to Parquet", f"{done['seconds']:.0f} s, {done['series_per_second']:,.0f} series/s"),
            (f"`toto bench`, batches of {BATCH}, in turns ({len(done['bench_rates'])})", f"{done['bench_series_per_second']:,.0f} series/s "
             f"({min(done['bench_rates']):,.0f} to {max(done['bench_rates']):,.0f})"),
            ("fraction; median of the pieces between", f"**{done['fraction']:.3f}**; {done['median_fraction_of_pieces']:.3f}"),
            ("processor time over wall time", f"{done['cores_used']:.2f} cores"),
            ("peak RSS", f"**{memory['peak']:.0f} MiB**"),
            ("largest RSS of each tenth, MiB", ", ".join(tenths)),
            ("read, written", f"{done['input_bytes'] / 1e9:.2f} GB, {done['output_bytes'] / 1e9:.2f} GB"),
            ("series forecast one by one as well", f"{done['checked']['same_bits']} of {done['checked']['series']} have the same bits"),
        ]  # fmt: skip
    broken = result.get("interrupts")
    if broken:
        by = {name: broken["ended"].count(name) for name in sorted(set(broken["ended"]))}
        rows += [
            (f"{broken['series']:,} series, interrupted", ", ".join(f"{count} times {name}" for name, count in by.items())),
            ("parts on disk after each", ", ".join(map(str, broken["parts_then"]))),
            (f"all {broken['files']} files have the bytes of one run", "**yes**" if broken["same_bytes"] else "**no**"),
        ]
    return lines + table(("", ""), rows)


def met(result):
    done, broken, targets = result.get("throughput"), result.get("interrupts"), {}
    if done:
        targets["fraction"] = done["fraction"] >= TARGET
        targets["rss"] = done["rss_mib"]["peak"] <= LARGEST_RSS
        targets["flat"] = (done["rss_mib"]["second_half_by_first"] or 2) <= 1.05
        targets["checked"] = done["checked"]["same_bits"] == done["checked"]["series"]
    if broken:
        targets["same_bytes"] = broken["same_bytes"]
        # A run that ended by itself was not interrupted: of few only is that so.
        targets["interrupted"] = broken["ended"].count("by itself") <= len(broken["ended"]) // 10
    return targets


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toto", help="the program, for `toto bench` (default: that of the installed package)")
    parser.add_argument("--series", type=int, default=1_000_000)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--part-rows", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--pauses", type=int, default=12, help="moments at which `toto bench` takes its turn")
    parser.add_argument("--bench-seconds", type=float, default=4)
    parser.add_argument("--check", type=int, default=200)
    parser.add_argument("--interrupts", type=int, default=20)
    parser.add_argument("--interrupt-series", type=int, help="a smaller file for the interruptions (default: the same)")
    parser.add_argument("--steps", default="throughput,interrupts")
    parser.add_argument("--folder", type=Path, help="where files go; input and forecasts are kept and used again (default: a temporary one)")
    parser.add_argument("--results", type=Path, help="a page that gets the section")
    args = parser.parse_args()
    result = {"machine": machine()}
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        source, whole, kept = source_file(args, folder), folder / f"whole-{args.series}", folder / f"million-{args.series}.json"
        before = json.loads(kept.read_text()) if kept.exists() else {}
        if "throughput" in args.steps:
            result["throughput"] = {"command": words(), "commit": commit(), **throughput(args, source, whole)}
            result["throughput"]["checked"] = checked(args, source, whole)
        elif "throughput" in before:
            result["throughput"] = before["throughput"]
        if "interrupts" in args.steps:
            args.rate = result["throughput"]["series_per_second"] if "throughput" in result else 1000
            result["interrupts"] = {"command": words(), "commit": commit(), **interrupts(args, source, whole, folder)}
        elif "interrupts" in before:
            result["interrupts"] = before["interrupts"]
        kept.write_text(json.dumps(result, indent=2) + "\n")
    result["targets"] = met(result)
    if args.results:
        put_section(args.results, HEADING.format(args.series, args.threads), report(args, result))
    print(json.dumps(result, indent=2))
    sys.exit(not all(result["targets"].values()))


if __name__ == "__main__":
    main()
