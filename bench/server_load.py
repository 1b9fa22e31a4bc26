#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a server adds to a forecast, what it gives at saturation, and how late it is under load.

    taskset -c 1 bench/server_load.py build/release/toto --server-cores 0 --model models/toto-nano --model toto-2.0-22m
    bench/server_load.py build/release/toto --device cuda --model models/toto-nano              # 64 clients beside one

For each model (a folder, or the name of a published architecture, which gets synthetic weights) it starts `toto serve`
and asks, `--rounds` times: one request after the other; with --clients at once (by wrk where it is installed); at 30 % and
at 80 % of the rate found there (open loop: a late answer delays no later request). What the server adds is the whole time
less that of the micro-batch, which Server-Timing says; with --server-cores, or a GPU, the generator waits for answers
without sleep up to 30 %, since its own waking is none of the server's time. Then `toto bench` computes, on the same cores, one
series, as many as the mean micro-batch had, and as many as there are clients: what the engine itself gives.

    --beside "venv/bin/python bench/peers/fastapi_server.py --port {port}"

asks another server with the first model the same, on the same cores. The official package draws --samples trajectories;
ours is asked for quantiles as it forms them by itself, and for as many drawn trajectories too.

Prints JSON; `--results bench/results/xeon` also puts a section into that page (.md) and file (.json). The share of a core
that the generator took is stated; pin it with taskset. Figures are medians of the rounds.
"""
import argparse
import json
import math
import os
import platform
import re
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from load_generator import at_rate, message, one_by_one, saturate, with_wrk
from server_report import write_results

ROOT = Path(__file__).resolve().parents[1]
PATH = "/v1/forecast"
NAME = "model"  # of whatever is measured


def body_of(options, **parameters):
    values = [round(10 + 3 * math.sin(0.3 * t), 4) for t in range(options.context)]
    return {"model": NAME, "inputs": [{"target": values}],
            "parameters": {"prediction_length": options.horizon, "quantile_levels": [0.1, 0.5, 0.9], **parameters}}


def median_of(rounds):
    """The median of each number of equal structures; of anything else the first."""
    first = rounds[0]
    if isinstance(first, dict):
        return {key: median_of([one[key] for one in rounds if key in one]) for key in first}
    if isinstance(first, bool) or not isinstance(first, (int, float)):
        return first
    return statistics.median(rounds)


class Running:
    """A server in a process of its own."""

    def __init__(self, command, cores, log=None):
        self.command = (["taskset", "-c", cores] if cores else []) + command
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE if log else None, text=True, cwd=ROOT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def ours(options, model):
    server = Running([options.program, "serve", "--port", "0", "--model", f"{NAME}={model}", "--device", options.device,
                      "--quiet-requests", *shlex.split(options.serve)], options.server_cores, log=True)
    for line in server.process.stderr:
        if '"listening"' in line:
            server.port = int(json.loads(line)["message"].rsplit(":", 1)[1])
            return server
    sys.exit("the server did not start")


def counted(port):
    """Series computed, and micro-batches, so far."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    total = lambda pattern: sum(float(n) for n in re.findall(pattern + r" (\S+)", text))  # noqa: E731
    return total(r'toto_series_total\{[^}]*result="completed"[^}]*\}'), total(r"toto_device_batches_total\{[^}]*\}")


def with_generator(measure):
    """The result of measure(), and the share of a core that the generator took."""
    begun, before = time.perf_counter(), os.times()
    result = measure()
    after = os.times()
    spent = sum(getattr(after, n) - getattr(before, n) for n in ("user", "system", "children_user", "children_system"))
    return {**result, "generator_cores": spent / (time.perf_counter() - begun)}


def saturation(port, options, **parameters):
    """With all clients at once; how many series a micro-batch had."""
    body = body_of(options, **parameters)
    series, batches = counted(port)
    if shutil.which("wrk"):
        found = with_generator(lambda: {"by": "wrk", **with_wrk(port, PATH, body, options.clients, options.seconds)})
    else:
        found = with_generator(lambda: {"by": "python", **saturate(
            port, [message(PATH, body)], options.clients, options.seconds)})
    more, later = counted(port)
    return {**sound(found), "series_of_a_batch": (more - series) / max(1, later - batches)}


def spin(options):
    """Whether the generator has a core of its own: then it need not be woken for an answer."""
    return bool(options.server_cores) or options.device != "cpu"


def sound(part):
    """`part`, if every request had its answer: a refusal is faster."""
    if part.get("errors", 0) or set(part.get("statuses", {200: 1})) != {200}:
        sys.exit(f"server_load: not all requests were answered: {part}")
    return part


def one_round(port, options):
    request = message(PATH, body_of(options))
    result = {"one_by_one": with_generator(lambda: one_by_one(port, request, options.seconds, spin(options))),
              "saturation": saturation(port, options)}
    for share in (0.3, 0.8):
        result[f"load_{int(100 * share)}"] = sound(with_generator(lambda: at_rate(
            port, [request], share * result["saturation"]["rate"], options.seconds, spin=share < 0.5 and spin(options),
            warm_up=1)))
    return result


def engine(options, model, batch):
    """What the engine itself gives, by `toto bench` on the cores of the server: series per second."""
    cores = ["taskset", "-c", options.server_cores] if options.server_cores else []
    command = [options.program, "bench", f"{batch}x1x{options.context}x{options.horizon}", "--model", str(model),
               "--device", options.device, "--runs", "200", "--seconds", str(options.seconds), "--json", "--quiet"]
    done = subprocess.run(cores + command, capture_output=True, text=True, check=True, cwd=ROOT)
    report = json.loads(done.stdout)
    row = report["rows"][0]
    return {"batch": batch, "rate": batch / row["median_ms"] * 1e3, "median_ms": row["median_ms"],
            "p99_ms": row["p99_ms"], "machine": report["machine"]}


def measure(options, model, first):
    """Everything of one model. `first`: also with drawn trajectories, for what runs beside."""
    with ours(options, model) as server:
        rounds = [one_round(server.port, options) for _ in range(options.rounds)]
        result = median_of(rounds)
        result["rounds"] = rounds
        if first and options.beside:
            result["sampled"] = median_of([saturation(server.port, options, num_samples=options.samples,
                                                      quantiles_from="samples") for _ in range(options.rounds)])
    mean = max(1, round(result["saturation"]["series_of_a_batch"]))
    result["engine"] = {name: engine(options, model, batch) for name, batch in
                        (("one", 1), ("mean_batch", mean), ("all_clients", options.clients))}
    rate = result["saturation"]["rate"]
    result["of_engine"] = rate / result["engine"]["mean_batch"]["rate"]
    result["of_engine_all_clients"] = rate / result["engine"]["all_clients"]["rate"]
    result["of_one"] = rate / result["engine"]["one"]["rate"]
    result["p99_over_p50_at_80"] = result["load_80"]["p99_ms"] / result["load_80"]["p50_ms"]
    return result


def wait_for(port, seconds=300):
    end = time.monotonic() + seconds
    while True:
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def beside(options):
    """The same requests to another server, which runs alone."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    request = message(PATH, body_of(options, num_samples=options.samples))
    with Running(["env", *shlex.split(options.beside.replace("{port}", str(port)))], options.server_cores):
        wait_for(port)
        return {"one_client": sound(saturate(port, [request], 1, 2 * options.seconds)),
                "saturation": sound(saturate(port, [request], options.clients, 2 * options.seconds))}


def folder_of(options, model, temporary):
    """A checkpoint: as it is, or with synthetic weights."""
    if Path(ROOT, model).exists() or "/" in model:
        return model
    folder = Path(temporary) / model
    subprocess.run([options.program, "model", "synth", "--preset", model, "--out", folder, "--quiet"], check=True, cwd=ROOT)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda name: str(Path(name).resolve()))
    parser.add_argument("--model", action="append", help="several times for several (default: models/toto-nano)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10, help="of each part")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", default="", help="more flags of toto serve")
    parser.add_argument("--beside", help="command of another server; {port} is where it must listen")
    parser.add_argument("--samples", type=int, default=256, help="trajectories of the server beside (default 256)")
    parser.add_argument("--server-cores", help="pin the servers and toto bench, as taskset -c has it")
    parser.add_argument("--results", type=Path, help="write a section into RESULTS.md and RESULTS.json")
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    result = {"commit": commit, "machine": platform.platform(), "generator_cores_allowed": sorted(os.sched_getaffinity(0)),
              "setup": {k: v for k, v in vars(options).items() if k not in ("program", "results")}, "models": {}}
    if options.beside:  # as a page shows it
        result["setup"]["beside"] = re.sub(r"\S*/bin/python", "venv/bin/python", re.sub(r"PYTHONPATH=\S+ ", "", options.beside))
    with tempfile.TemporaryDirectory() as temporary:
        for i, model in enumerate(options.model or ["models/toto-nano"]):
            print(f"server_load: {model}", file=sys.stderr)
            result["models"][Path(model).name] = measure(options, folder_of(options, model, temporary), i == 0)
    if options.beside:
        print("server_load: beside", file=sys.stderr)
        result["beside"] = beside(options)
        theirs = max(result["beside"][name]["rate"] for name in ("one_client", "saturation"))
        first = next(iter(result["models"].values()))
        for name in ("saturation", "sampled"):
            result["beside"][f"{name}_over_it"] = first[name]["rate"] / theirs if theirs else math.inf
    if options.results:
        write_results(options.results, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
