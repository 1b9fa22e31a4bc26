#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many series on the GPUs of one host, from Parquet in memory to Parquet in memory: rates, what limits, two devices.

    bench/scale_gpu.py --json scale-gpu.json --results bench/results/h200.md
    bench/scale_gpu.py --models toto-2.0-22m --precisions bfloat16 --series 400000 --torch

Needs a wheel of toto-cpp with kernels for a GPU, numpy and pyarrow; --torch also PyTorch with the official packages `toto-2`
and `toto-ts` (what is absent is left out, and said). Input and forecasts lie in --folder, /dev/shm by default: 2.1 GB for a
million series of 512 steps, and 0.4 GB of forecasts for each device.

| rate | series per second of |
| bench | `toto bench` with batches of --batch-size: the engine from values in memory to quantiles in memory |
| compute_only | Model.forecast with the same batches, which lie in memory, one after another |
| read_only, write_only | nothing but reading the input, writing the forecasts |
| whole | toto_cpp.forecast_dataset in a process of its own, from Parquet to Parquet |

`bench` and `compute_only` are measured before the whole and after it (--turns). The whole begins cold: graphs are captured and
memory is touched first in it, some 0.4 s on an H200, so that few series give a lower rate. `limits` names the term that the whole is nearest to.
Where there are several devices the whole is repeated with all of them; its bytes must be those of one. Prints one JSON
object; the exit status is 1 where bytes differ, or two devices give less than 1.9 times the rate of one.
"""

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scale_dataset import PRESETS, compute_only, read_only, source_file, whole, whole_options, write_only
from scale_faults import digests, say
from scale_report import commit, put_section, table, today, words

TARGET = 1.9
HEADING = "Many series, from Parquet to Parquet"


def devices(text):
    from toto_cpp import _core

    return list(_core.devices_of(text))


def kind(args):
    return args.devices.split(":")[0]


def program():
    import toto_cpp

    return Path(toto_cpp.__file__).parent / "bin" / "toto"


def folder_of(args, model):
    """Weights on disk, for programs that want a folder."""
    if model not in PRESETS:
        return Path(__file__).parent.parent / "models" / model
    folder = args.folder / model
    if not folder.exists():
        given = [program(), "model", "synth", "--preset", model, "--seed", "1", "--out", folder]
        subprocess.run(given, check=True, stdout=subprocess.DEVNULL)
    return folder


def bench_rate(args, model, precision):
    given = [program(), "bench", f"{args.batch_size}x1x{args.context}x{args.horizon}", "--model", folder_of(args, model)]
    given += ["--device", kind(args)]
    given += ["--dtype", precision, "--runs", 100_000, "--seconds", args.seconds, "--json", "--quiet"]
    row = json.loads(subprocess.run([str(one) for one in given], check=True, capture_output=True, text=True).stdout)["rows"][0]
    on_device = 1e3 * args.batch_size / row["device_median_ms"] if row["device_median_ms"] else None
    return row["series_per_second"], on_device


def copied(args, source):
    """A folder with the file so many times."""
    if args.copies == 1:
        return source
    folder = args.folder / "input"
    folder.mkdir()
    for i in range(args.copies):
        os.link(source, folder / f"{i}.parquet")
    return folder


def one_model(args, source, model, precision, found):
    """The rates of one device, and of all where there are several."""
    own = argparse.Namespace(**vars(args), model=model if model in PRESETS else None, precision=precision, device=found[0], threads=None)
    benches, computes = [], []
    out = args.folder / "out"
    for turn in range(args.turns):
        rate, on_device = bench_rate(args, model, precision)
        benches.append(rate)
        say(f"{model}, {precision}: toto bench {rate:,.0f} series/s")
        computes.append(compute_only(own, args.seconds)[0])
        say(f"Model.forecast {computes[-1]:,.0f}")
        if turn == 0:
            shutil.rmtree(out, ignore_errors=True)
            done = whole(own, source, out)
            say(f"whole {done['series_per_second']:,.0f}")
    rates = {
        "bench": statistics.mean(benches), "device_alone": on_device, "compute_only": statistics.mean(computes),
        "read_only": read_only(next(source.iterdir()) if source.is_dir() else source), "write_only": write_only(out, args.folder),
        "whole": done["series_per_second"], "steady": done["steady_series_per_second"],
    }  # fmt: skip
    terms = {name: rates[name] for name in ("bench", "read_only", "write_only")}
    nearest = min(terms, key=terms.get)
    limits = nearest if rates["whole"] >= 0.85 * terms[nearest] else "what lies between them"
    result = {
        "model": model, "precision": precision, "series_per_second": rates, "of_bench": rates["whole"] / rates["bench"],
        "of_compute_only": rates["whole"] / rates["compute_only"], "limits": limits, "bench_twice": benches,
        "compute_only_twice": computes, "rss_mib": done["rss_mib"],
    }  # fmt: skip
    if len(found) > 1:
        result["devices"] = several(args, own, source, out, found)
    return result


def several(args, own, source, one, found):
    """In turns with one device; shards of one process each beside it, which share neither reader nor GIL."""
    alone, together, out = [], [], args.folder / "out-all"
    for _ in range(args.rounds):
        for device, times in ((found[0], alone), (",".join(found), together)):
            shutil.rmtree(out, ignore_errors=True)
            own.device = device
            times.append(whole(own, source, out))
    same = digests(out) == digests(one)
    steady = [[run["steady_series_per_second"] or 0.0 for run in runs] for runs in (alone, together)]
    alone, together = ([run["series_per_second"] for run in runs] for runs in (alone, together))
    shards, shards_same = sharded(args, own, source, out, found, one)
    own.device, own.threads = found[0], None
    return {
        "count": len(found), "one": alone, "all": together, "times": statistics.median(together) / statistics.median(alone),
        "steady_one": steady[0], "steady_all": steady[1], "same_bytes": same, "a_process_each": shards, "a_process_each_times": shards / statistics.median(alone),
        "a_process_each_same_bytes": shards_same,
    }  # fmt: skip


SHARD = """
import json, sys, toto_cpp
source, out, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
done = toto_cpp.forecast_dataset(source, out, options.pop("h"), level=[80], **options)
"""


def sharded(args, own, source, out, found, one):
    shutil.rmtree(out, ignore_errors=True)
    programs = []
    own.threads = max(1, len(os.sched_getaffinity(0)) // len(found))  # each its share of the host
    for i, device in enumerate(found):
        own.device = device
        options = {**whole_options(own), "shard": f"{i}/{len(found)}"}
        given = [sys.executable, "-c", SHARD, str(source), str(out), json.dumps(options)]
        programs.append(subprocess.Popen(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for each in programs:
        each.stdout.readline()
    begun = time.perf_counter()
    for each in programs:
        each.stdin.write("go\n")
        each.stdin.flush()
    if any([each.wait() for each in programs]):
        sys.exit("a shard failed")
    return args.copies * args.series / (time.perf_counter() - begun), digests(out) == digests(one)


def beside_torch(args, model, precision):
    """Series per second of the official package, whole calls, batches in the GPU's memory; the best of eager and compiled."""
    wanted = "toto2" if model.startswith("toto-2") else "toto"
    if importlib.util.find_spec(wanted) is None or importlib.util.find_spec("torch") is None:
        return {"left_out": f"the package {wanted} is not installed"}
    import torch

    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    sys.path.insert(0, str(Path(__file__).parent / "peers"))
    found, count = {}, args.torch_series
    make = official2 if wanted == "toto2" else official1
    wait = torch.cuda.synchronize if kind(args) == "cuda" else (lambda: None)
    autocast = torch.autocast(kind(args), dtype=torch.bfloat16, enabled=precision == "bfloat16")
    for mode in args.torch_modes.split(","):
        try:
            torch._dynamo.reset()
            call = make(args, folder_of(args, model), count, mode)
            say(f"official package, {mode}: loaded")
            with torch.inference_mode(), autocast:
                for _ in range(3):
                    call()
                wait()
                times, end = [], time.perf_counter() + args.seconds
                while len(times) < 3 or time.perf_counter() < end:
                    begun = time.perf_counter()
                    call()
                    wait()
                    times.append(time.perf_counter() - begun)
            found[mode] = count / statistics.median(times)
        except Exception as error:  # a mode that fails is a result too
            found[mode] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    rates = [rate for rate in found.values() if isinstance(rate, float)]
    return {"torch": torch.__version__, "batch": count, "series_per_second": found, "best": max(rates) if rates else None}


def official1(args, folder, count, mode):
    from compare import inputs, load
    from toto.data.util.dataset import MaskedTimeseries
    from toto.inference.forecaster import TotoForecaster
    import torch

    model = load(folder).to(kind(args))
    if mode != "eager":
        model.model.compile(mode=mode)
    forecaster = TotoForecaster(model.model)
    batch = MaskedTimeseries(*(part.to(kind(args)) if isinstance(part, torch.Tensor) else part for part in inputs(count, 1, args.context)))
    return lambda: forecaster.forecast(batch, prediction_length=args.horizon, num_samples=256, samples_per_batch=256)


def official2(args, folder, count, mode):
    import torch
    from toto2 import Toto2Model

    model = Toto2Model.from_pretrained(str(folder)).eval().to(kind(args))
    if mode != "eager":
        transformer = next(name for name, _ in model.named_modules() if name.endswith("transformer"))
        model.get_submodule(transformer).compile()
    target = torch.cumsum(torch.randn(count, 1, args.context, generator=torch.Generator().manual_seed(1)), dim=-1).to(kind(args))
    given = {"target": target, "target_mask": torch.ones_like(target, dtype=torch.bool),
             "series_ids": torch.zeros(count, 1, dtype=torch.long, device=kind(args))}  # fmt: skip
    return lambda: model.forecast(given, horizon=args.horizon)


def report(args, result):
    rows = []
    for one in result["rows"]:
        rates, several, torch = one["series_per_second"], one.get("devices"), one.get("torch")
        beside = f"{torch['best']:,.0f}" if torch and torch.get("best") else ""
        times = f"{several['times']:.2f}; {several['a_process_each_times']:.2f}" if several else ""
        rows.append((one["model"], one["precision"], f"**{rates['whole']:,.0f}**", f"{rates['bench']:,.0f}", f"{100 * one['of_bench']:.0f} %",
                     f"{rates['compute_only']:,.0f}", f"{100 * one['of_compute_only']:.0f} %", f"{rates['read_only']:,.0f}",
                     f"{rates['write_only']:,.0f}", one["limits"], times, beside))  # fmt: skip
    head = ("", "type", "whole, series/s", "`toto bench`", "of it", "Model.forecast alone", "of it", "read", "write", "limits",
            "all devices by one: in one process; a process each", "official package")  # fmt: skip
    lines = [
        f"{today()}, commit {result['commit']}, {len(result['devices'])} x {result['device']}, {result['cores']} cores. {args.copies * args.series:,} series "
        f"of {args.context} steps, {args.horizon} ahead,", f"three quantiles, Parquet in {args.folder}. toto-nano is ours; the other weights are made up. "
        "The official package of Toto 1.0 draws", "256 samples, ours none: quantiles of the first patch are exact. "
        f"Batches of {args.batch_size:,} series; of {args.torch_series:,} for the official packages.", "",
        f"    {words()}", "",
    ]  # fmt: skip
    return lines + table(head, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="toto-nano,toto-open-base-1.0,toto-2.0-22m")
    parser.add_argument("--precisions", default="bfloat16,tf32")
    parser.add_argument("--devices", default="cuda:all", help="or cuda:0; cpu for a trial")
    parser.add_argument("--series", type=int, default=1_000_000)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--part-rows", type=int, default=8192)
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement of computing alone")
    parser.add_argument("--copies", type=int, default=1, help="read the file of --series so many times: more series in little time and memory")
    parser.add_argument("--rounds", type=int, default=3, help="of one device and all of them, in turns")
    parser.add_argument("--turns", type=int, default=2, help="of computing alone, the first before the whole; 1 where time is short")
    parser.add_argument("--torch", action="store_true", help="also the official packages")
    parser.add_argument("--torch-modes", default="eager,default", help="default: torch.compile")
    parser.add_argument("--torch-series", type=int, default=256, help="series in a batch of the official packages")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--results", type=Path, help="a page that gets the section")
    args = parser.parse_args()
    found = devices(args.devices)
    if not found:
        sys.exit("there is no GPU")
    with tempfile.TemporaryDirectory(dir=args.folder) as made:
        args.folder = Path(made)
        source = copied(args, source_file(args, made))
        result = {"commit": commit(), "devices": found, "device": name_of_device(), "cores": os.cpu_count(), "series": args.copies * args.series, "rows": []}
        for model in args.models.split(","):
            for precision in args.precisions.split(","):
                row = one_model(args, source, model, precision, found)
                if args.torch:
                    row["torch"] = beside_torch(args, model, precision)
                result["rows"].append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
                if args.json:  # a run that is cut off leaves what it had
                    args.json.write_text(json.dumps(result, indent=2) + "\n")
    if args.results:
        put_section(args.results, HEADING, report(args, result))
    print(json.dumps(result, indent=2))
    several = [row["devices"] for row in result["rows"] if "devices" in row]
    same = all(one["same_bytes"] and one["a_process_each_same_bytes"] for one in several)
    sys.exit(not (same and all(max(one["times"], one["a_process_each_times"]) >= TARGET for one in several)))


def name_of_device():
    try:
        given = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        return subprocess.run(given, check=True, capture_output=True, text=True).stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "GPU"


if __name__ == "__main__":
    main()
