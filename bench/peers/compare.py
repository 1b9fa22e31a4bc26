#!/usr/bin/env python3
"""Our program and the official PyTorch implementation on the same checkpoint, workload and machine, taking turns.

    toto model synth --preset toto-open-base-1.0 --seed 8 --out build/base
    bench/peers/compare.py --toto build/release/toto --model build/base --workload a --json peers-a.json

PyTorch runs in this process: eager, and torch.compile in `default`, `reduce-overhead` and `max-autotune`, each warmed up
until it no longer compiles, in inference mode, with all samples in one batch (or as many as --samples-per-batch says). In
each round every mode has --seconds of calls in a row, at least one; of more than six the first three are not counted, for the
process has waited since its last ones. Each of our types has --seconds too (on a CPU five calls), in a process of its own:
every call that counts is followed by one that asks the device for its time.
With `--device cuda` both run on the GPU, and PyTorch's own counters of skipped CUDA graphs and recompilations are reported.
--torch-type says how PyTorch computes: `float32`, `tf32` (float32 with products in tf32; what a GPU does unless told
otherwise) or `bfloat16` (autocast). On a CPU it runs in float32 only: there are no gamma draws in bfloat16. Each of our rows
says whether its type is that of PyTorch: only then is its factor one of like with like.
Where a workload would take hours a stated fraction of it is run and the time scaled linearly; the report says so.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
from safetensors.torch import load_file
from toto.data.util.dataset import MaskedTimeseries
from toto.inference.forecaster import TotoForecaster
from toto.model.toto import Toto

#            series, variates, context, horizon, samples; PyTorch runs: series, samples
WORKLOADS = {
    "a": (1, 1, 512, 8, 256, 1, 256),
    "b": (1, 7, 4096, 336, 256, 1, 4),
    "c": (500, 1, 512, 7, 4096, 1, 64),
}


DTYPES = {"cpu": ("float32", "bfloat16"), "cuda": ("float32", "tf32", "bfloat16")}  # ours

# The parts of them that PyTorch runs on a GPU: series, samples.
ON_DEVICE = {"a": (1, 256), "b": (1, 256), "c": (50, 256)}


def load(folder):
    config = json.load(open(os.path.join(folder, "config.json")))
    config["use_memory_efficient_attention"] = False  # xformers has no CPU kernels
    model = Toto(**config).eval()
    names = set(model.state_dict())
    weights = {}
    for name, tensor in load_file(os.path.join(folder, "model.safetensors")).items():
        if name not in names:  # fused MLP names belong to xformers
            name = name.replace("mlp.0.w12", "mlp.0").replace("mlp.0.w3", "mlp.2")
        weights[name] = tensor
    missing, unexpected = model.load_state_dict(weights, strict=False)
    missing = [m for m in missing if "rotary" not in m]
    assert not missing and not unexpected, (missing, unexpected)
    return model


def inputs(series, variates, context):
    t = torch.arange(context, dtype=torch.float32)
    rows = [100 + 0.01 * t + 5 * torch.sin(t * 0.26 + i) for i in range(series * variates)]
    values = torch.stack(rows).reshape(series, variates, context)
    return MaskedTimeseries(
        series=values,
        padding_mask=torch.ones_like(values, dtype=torch.bool),
        id_mask=torch.zeros_like(values, dtype=torch.int32),
        timestamp_seconds=torch.zeros_like(values, dtype=torch.int64),
        time_interval_seconds=torch.full((series, variates), 60, dtype=torch.int64),
    )


def subject(folder, mode, device):
    torch._dynamo.reset()
    model = load(folder).to(device)
    if mode != "eager":
        model.model.compile(mode=mode)
    return TotoForecaster(model.model)


def ours(options):
    """A report of each type, by itself as every mode of PyTorch is."""
    runs = ["5"] if options.device == "cpu" else ["100000", "--seconds", str(options.seconds)]
    reports = []
    for dtype in DTYPES[options.device]:
        command = [options.toto, "bench", options.workload, "--model", options.model, "--dtype", dtype, "--json",
                   "--quiet", "--device", options.device, "--runs", *runs]
        reports.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return reports


def turn(run, forecaster, seconds):
    """Seconds of calls in a row, each as it took."""
    end = time.perf_counter() + seconds
    taken = [run(forecaster)]
    while time.perf_counter() < end:
        taken.append(run(forecaster))
    return taken[3:] if len(taken) > 6 else taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--workload", choices=WORKLOADS, default="a")
    parser.add_argument("--modes", default="eager,default,reduce-overhead,max-autotune")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="of calls of a mode in each round")
    parser.add_argument("--samples-per-batch", type=int, default=256)
    parser.add_argument("--torch-type", choices=["float32", "tf32", "bfloat16"],
                        help="default: tf32 on a GPU, float32 on a CPU")
    parser.add_argument("--json")
    options = parser.parse_args()
    series, variates, context, horizon, samples, part_series, part_samples = WORKLOADS[options.workload]
    on_device = options.device == "cuda"
    if on_device:
        part_series, part_samples = ON_DEVICE[options.workload]
    torch_type = options.torch_type or ("tf32" if on_device else "float32")
    if torch_type != "float32" and not on_device:  # no tf32 there, and no gamma draws in bfloat16
        parser.error("on a CPU PyTorch runs this model in float32 only")
    torch.set_float32_matmul_precision("high" if torch_type == "tf32" else "highest")
    per_batch = min(options.samples_per_batch, part_samples)
    scale = series / part_series * samples / part_samples
    batch = inputs(part_series, variates, context)
    if on_device:
        batch = MaskedTimeseries(*(part.cuda() if isinstance(part, torch.Tensor) else part for part in batch))

    torch._dynamo.config.recompile_limit = 64  # four models share their code: none may fall back to eager
    # capture_scalar_outputs, which its log asks for at `.item()`, makes compilation fail (torch 2.13).
    subjects = {mode: subject(options.model, mode, options.device) for mode in options.modes.split(",")}
    times = {mode: [] for mode in subjects}
    warm_up = {}
    skipped = {}  # PyTorch's own counters, growing from mode to mode
    autocast = torch.autocast(options.device, dtype=torch.bfloat16, enabled=torch_type == "bfloat16")
    with torch.inference_mode(), autocast:
        def run(forecaster):
            start = time.perf_counter()
            forecaster.forecast(batch, prediction_length=horizon, num_samples=part_samples,
                                samples_per_batch=per_batch)
            if on_device:
                torch.cuda.synchronize()
            return time.perf_counter() - start

        for mode, forecaster in subjects.items():
            try:
                warm_up[mode] = [run(forecaster), run(forecaster)]
                # Two calls that differ much: it still compiles or records graphs.
                while (max(warm_up[mode][-2:]) > 1.25 * min(warm_up[mode][-2:])
                       and len(warm_up[mode]) < 12):
                    warm_up[mode].append(run(forecaster))
            except Exception as error:  # a mode that fails is a result too
                warm_up[mode] = str(error).splitlines()[0]
            counters = {name: dict(values) for name, values in torch._dynamo.utils.counters.items()
                        if name in ("inductor", "stats", "frames", "graph_break", "recompiles")}
            skipped[mode] = {"cudagraph_skips": counters.get("inductor", {}).get("cudagraph_skips", 0),
                             "frames": counters.get("frames", {}), "stats": counters.get("stats", {}),
                             "graph_breaks": sum(counters.get("graph_break", {}).values())}
            print(f"# {mode}: warmed up, {warm_up[mode]}", file=sys.stderr)
        reports = []
        for _ in range(options.rounds):
            for mode, forecaster in subjects.items():
                if isinstance(warm_up[mode], list):
                    times[mode] += turn(run, forecaster, options.seconds)
            reports.append(ours(options))

    rows = []
    for mode, seconds in times.items():
        if not seconds:
            rows.append({"who": f"torch {mode}", "failed": warm_up[mode]})
            continue
        rows.append({"who": f"torch {mode}", "seconds": statistics.median(seconds) * scale,
                     "measured_seconds": seconds, "first_calls_seconds": warm_up[mode]})
    if all("failed" in row for row in rows):
        sys.exit("every mode of PyTorch failed: " + "; ".join(f"{row['who']}: {row['failed']}" for row in rows))
    best = min(r["seconds"] for r in rows if "seconds" in r)
    for i, dtype in enumerate(DTYPES[options.device]):
        medians = [r[i]["rows"][0]["median_ms"] / 1e3 for r in reports]
        median = statistics.median(medians)
        rows.append({"who": f"toto {dtype}", "seconds": median, "median_seconds_of_rounds": medians,
                     "times_faster_than_torch_best": best / median, "same_type_as_torch": dtype == torch_type})
    report = {
        "workload": options.workload, "torch": torch.__version__, "threads": torch.get_num_threads(),
        "fraction": f"torch ran {part_series} of {series} series and {part_samples} of {samples} samples"
                    + (f", scaled by {scale:g}" if scale != 1 else ""),
        "samples_per_batch": per_batch, "torch_type": torch_type, "device": torch.cuda.get_device_name() if on_device else "cpu",
        "torch_counters": skipped,
        "compiled_frames": dict(torch._dynamo.utils.counters.get("stats", {})),
        "graph_breaks": sum(torch._dynamo.utils.counters.get("graph_break", {}).values()),
        "machine": reports[0][0]["machine"], "rows": rows,
    }
    text = json.dumps(report, indent=1)
    if options.json:
        with open(options.json, "w") as file:
            file.write(text + "\n")
    for row in rows:
        shown = f"{row['seconds']:12.4f} s" if "seconds" in row else f"failed: {row['failed']}"
        if "times_faster_than_torch_best" in row:
            other = "" if row["same_type_as_torch"] else f", of PyTorch in {torch_type}"
            shown += f"  {row['times_faster_than_torch_best']:9.1f} x{other}"
        print(f"{row['who']:24} {shown}")


if __name__ == "__main__":
    main()
