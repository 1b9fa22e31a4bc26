#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same program with toto_cpp.compat and with the official toto-ts, taking turns: time of a call and peak memory.

    bench/python_peers.py                     # with toto-ts, torch and the package installed; prints one JSON object
    bench/python_peers.py --model DIR --rounds 5 --threads 2

The program builds a TotoForecaster, then forecasts what --series, --context, --horizon and --samples say. Both run in
float32 on the CPU with the same weights (default: toto-nano), each in a process of its own for every round. `call_ms` is the
median of its calls (of the best round), `load_ms` from the import to the model in memory, `peak_mib` the peak of resident
memory of the whole process, `over_load_mib` how far that lies above the model in memory.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

NANO = Path(__file__).resolve().parents[1] / "models" / "toto-nano"


def resident(name):
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def official(folder):
    import torch
    from safetensors.torch import load_file
    from toto.data.util.dataset import MaskedTimeseries
    from toto.inference.forecaster import TotoForecaster
    from toto.model.toto import Toto

    config = json.loads((folder / "config.json").read_text())
    config["use_memory_efficient_attention"] = False  # xformers has no CPU kernels
    model = Toto(**config).eval()
    names = set(model.state_dict())
    renamed = lambda name: name if name in names else name.replace("mlp.0.w12", "mlp.0").replace("mlp.0.w3", "mlp.2")  # noqa: E731
    found = model.load_state_dict({renamed(k): v for k, v in load_file(folder / "model.safetensors").items()}, strict=False)
    assert not found.unexpected_keys and not [m for m in found.missing_keys if "rotary" not in m], found
    return TotoForecaster(model.model), MaskedTimeseries, torch.from_numpy


def ours(folder):
    from toto_cpp.compat import MaskedTimeseries, Toto, TotoForecaster

    return TotoForecaster(Toto.from_pretrained(folder).model), MaskedTimeseries, lambda array: array


def program(who, args):
    """One process: loads, forecasts, prints."""
    import numpy as np

    begun = time.perf_counter()
    if who == "toto-ts":
        import torch

        torch.set_num_threads(args.threads)
        torch.manual_seed(0)
    forecaster, Inputs, array = {"toto-ts": official, "toto_cpp": ours}[who](args.model)
    loaded, idle = time.perf_counter() - begun, resident("VmRSS")
    shape = (args.series, 1, args.context)
    series = np.random.default_rng(0).normal(size=shape).cumsum(-1).astype(np.float32)
    whole = np.zeros(shape, np.int32)
    inputs = Inputs(array(series), array(np.ones(shape, bool)), array(whole), array(whole), array(np.ones(shape[:2], np.int32)))
    options = {} if args.samples == 0 else {"num_samples": args.samples, "samples_per_batch": args.samples}
    times = []
    while not times or (len(times) < 50 and sum(times) < args.seconds):
        begun = time.perf_counter()
        mean = forecaster.forecast(inputs, args.horizon, **options).mean
        times.append(time.perf_counter() - begun)
    kept = sorted(times[1:] or times)
    print(json.dumps({
        "call_ms": 1e3 * kept[len(kept) // 2], "calls": len(times), "load_ms": 1e3 * loaded, "peak_mib": resident("VmHWM"),
        "over_load_mib": resident("VmHWM") - idle, "mean": np.asarray(mean)[0, 0, :3].tolist(),
    }))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=NANO, help="a folder of Toto 1.0 (default: toto-nano)")
    parser.add_argument("--series", type=int, default=32)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--samples", type=int, default=0, help="0: one trajectory of means")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of either")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="of calls in a round, at least one")
    parser.add_argument("--who", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.who:
        return program(args.who, args)
    best = {}
    for _ in range(args.rounds):
        for who in ("toto_cpp", "toto-ts"):  # in turn, so that other programs slow both
            environment = {**os.environ, "TOTO_NUM_THREADS": str(args.threads), "OMP_NUM_THREADS": str(args.threads)}
            done = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--who", who], capture_output=True, text=True, env=environment)
            if done.returncode != 0:
                sys.exit(done.stderr)
            one = json.loads(done.stdout.splitlines()[-1])
            if who not in best or one["call_ms"] < best[who]["call_ms"]:
                best[who] = one
    a, b = best["toto_cpp"], best["toto-ts"]
    named = {name: getattr(args, name) for name in ("series", "context", "horizon", "samples", "threads")}
    ratios = {"time": b["call_ms"] / a["call_ms"], "peak": b["peak_mib"] / a["peak_mib"]}
    print(json.dumps({"model": str(args.model), **named, **best, "toto-ts over toto_cpp": ratios}, indent=2))


if __name__ == "__main__":
    main()
