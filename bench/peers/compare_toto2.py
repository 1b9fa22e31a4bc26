#!/usr/bin/env python3
"""Toto 2.0: our program, the official PyTorch implementation and zsfm on the same weights, taking turns.

    toto model synth --preset toto-2.0-4m --seed 1 --out build/4m
    bench/peers/compare_toto2.py --toto build/release/toto --model build/4m --json peers-4m.json
    bench/peers/compare_toto2.py --toto build/cuda/toto --model build/4m --device cuda --json peers-4m.json

Needs Python 3.12 with `toto-2`, torch and, if it is to take part, `zsfm` (bench/peers/requirements-toto2.txt). All compute in
float32 where no type is named, with --threads threads. PyTorch runs in inference mode, as it is (`eager`), with its
transformer compiled, and the same with autocast to bfloat16. zsfm reads a file that its own converter makes of the folder;
it takes one series at a time. On a GPU PyTorch runs compiled, with autocast to bfloat16, in the modes `default` and
`reduce-overhead`; zsfm takes no part. In each of --rounds rounds everybody forecasts for --seconds, after a warm-up. Printed: the
median of the rounds' medians, ms for each call, and how many times ours is faster. With --add the rows of an earlier run
that --json names are kept, so that workloads may be measured one at a time; what is compiled lies in torch's cache after a first run
(`--rounds 0`).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from toto2 import Toto2Model
from zsfm_model import zsfm_model

#            series, context, horizon
WORKLOADS = {"one": (1, 512, 96), "batch": (64, 512, 96), "many": (512, 512, 96), "long": (1, 4096, 96),
             "far": (1, 512, 720)}
USUAL = {"cpu": "one,batch,long,far", "cuda": "one,many"}


def timed(call, seconds):
    """Median seconds of a call."""
    call()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def torch_calls(model, series, context, horizon, device, autocast=False):
    target = torch.cumsum(torch.randn(series, 1, context, generator=torch.Generator().manual_seed(1)), dim=-1)
    inputs = {"target": target, "target_mask": torch.ones_like(target, dtype=torch.bool),
              "series_ids": torch.zeros(series, 1, dtype=torch.long)}
    inputs = {name: value.to(device) for name, value in inputs.items()}

    def call():
        if device == "cuda":
            torch.compiler.cudagraph_mark_step_begin()
        with torch.inference_mode(), torch.autocast(device, torch.bfloat16, enabled=autocast):
            model.forecast(inputs, horizon=horizon)
        if device == "cuda":
            torch.cuda.synchronize()

    return call


def torch_models(args):
    def load():
        return Toto2Model.from_pretrained(args.model).eval().to(args.device)

    def compiled(**how):
        model = load()
        transformer = next(name for name, _ in model.named_modules() if name.endswith("transformer"))
        model.get_submodule(transformer).compile(**how)
        return model

    if args.device == "cuda":
        return {"torch compiled bfloat16": compiled(), "torch reduce-overhead bfloat16": compiled(mode="reduce-overhead")}
    if args.no_compile:
        return {"torch eager": load()}
    return {"torch eager": load(), "torch compiled": compiled(), "torch compiled bfloat16": compiled()}


def ours(toto, folder, series, context, horizon, seconds, threads, dtype, device):
    command = [toto, "bench", f"{series}x1x{context}x{horizon}", "--model", folder, "--dtype", dtype, "--runs", "100000",
               "--seconds", str(seconds), "--device", device, "--json"]
    if device == "cpu":
        command += ["--threads", str(threads)]
    row = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["rows"][0]
    return row["median_ms"] / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", required=True)
    parser.add_argument("--model", required=True, help="a folder that `toto model synth` made")
    parser.add_argument("--device", choices=USUAL, default="cpu")
    parser.add_argument("--workloads", help=f"of {', '.join(WORKLOADS)}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--only", help="names of those that take part beside ours, separated by commas")
    parser.add_argument("--json")
    parser.add_argument("--add", action="store_true", help="keep what --json holds of other workloads")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)

    models = torch_models(args)
    types = ["float32", "bfloat16", *(["int8"] if args.device == "cpu" else [])]
    report = {"torch": torch.__version__, "device": args.device, "threads": args.threads, "model": args.model, "rows": []}
    with tempfile.TemporaryDirectory() as made:
        try:
            other = zsfm_model(args.model, made) if args.device == "cpu" else None
        except ImportError:
            other = None
        for name in (args.workloads or USUAL[args.device]).split(","):
            series, context, horizon = WORKLOADS[name]
            calls = {who: torch_calls(model, series, context, horizon, args.device, who.endswith("bfloat16"))
                     for who, model in models.items()}
            if other is not None and horizon <= 96:  # zsfm 0.3.1 aborts on horizon 720
                values = [float(v) for v in torch.cumsum(torch.randn(context), 0)]
                calls["zsfm"] = lambda v=values, n=series, h=horizon: [other.forecast_quantiles(v, h) for _ in range(n)]
            if args.only:
                calls = {who: call for who, call in calls.items() if who in args.only.split(",")}
            found = {who: [] for who in [*calls, *(f"ours {dtype}" for dtype in types)]}
            if args.rounds == 0:
                for call in calls.values():
                    call()
                continue
            for _ in range(args.rounds):
                for who, call in calls.items():
                    found[who].append(timed(call, args.seconds))
                for dtype in types:
                    found[f"ours {dtype}"].append(
                        ours(args.toto, args.model, series, context, horizon, args.seconds, args.threads, dtype,
                             args.device))
            best = statistics.median(found["ours float32"])
            for who, times in found.items():
                seconds = statistics.median(times)
                report["rows"].append({"workload": name, "series": series, "context": context, "horizon": horizon, "who": who,
                                       "ms": seconds * 1e3, "ms_of_rounds": [t * 1e3 for t in times],
                                       "ours_float32_is_faster": seconds / best})
                print(f"{name:6} {who:24} {seconds * 1e3:9.3f} ms   {seconds / best:6.2f} x", flush=True)
    if args.json and args.rounds > 0:
        if args.add and os.path.exists(args.json):
            with open(args.json, encoding="utf-8") as file:
                earlier = json.load(file)
            measured = {row["workload"] for row in report["rows"]}
            report["rows"] = [row for row in earlier["rows"] if row["workload"] not in measured] + report["rows"]
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
