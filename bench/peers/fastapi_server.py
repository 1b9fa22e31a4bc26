#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A forecast server as people write one: FastAPI over a package, one request at a time.

    bench/peers/fastapi_server.py --package toto-ts --model models/toto-nano --port 8100     # the official package
    bench/peers/fastapi_server.py --package toto_cpp --model models/toto-nano --port 8100    # ours

Needs fastapi, uvicorn and the package (`pip install fastapi uvicorn -r bench/peers/requirements.txt`). It answers `POST /v1/forecast` in the form that `toto serve` takes, so that
bench/server_load.py --beside can ask both the same.
"""
import argparse
import sys
import threading
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from python_peers import NANO, official, ours  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", choices=("toto-ts", "toto_cpp"), default="toto-ts")
    parser.add_argument("--model", type=Path, default=NANO)
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    import uvicorn
    from fastapi import FastAPI, Request

    if args.package == "toto-ts":
        import torch

        torch.set_num_threads(args.threads)
    forecaster, Inputs, array = {"toto-ts": official, "toto_cpp": ours}[args.package](args.model)
    turn = threading.Lock()  # a model computes one forecast at a time
    app = FastAPI()

    def compute(body):
        parameters = body.get("parameters", {})
        horizon, levels = parameters.get("prediction_length", 24), parameters.get("quantile_levels", [])
        series = np.asarray([one["target"] for one in body["inputs"]], np.float32)[:, None, :]
        whole = np.zeros(series.shape, np.int32)
        inputs = Inputs(array(series), array(np.ones(series.shape, bool)), array(whole), array(whole),
                        array(np.ones(series.shape[:2], np.int32)))
        count = parameters.get("num_samples", 256)
        with turn:
            forecast = forecaster.forecast(inputs, horizon, num_samples=count, samples_per_batch=count)
        mean = np.asarray(forecast.mean)
        rows = [np.asarray(forecast.quantile(level)) for level in levels]
        return {"outputs": [{"mean": mean[i, 0].tolist(), "quantiles": [row[i, 0].tolist() for row in rows]}
                            for i in range(len(series))]}

    @app.post("/v1/forecast")
    async def forecast(request: Request):
        from fastapi.concurrency import run_in_threadpool

        return await run_in_threadpool(compute, await request.json())

    @app.get("/health")
    def health():
        return {"status": "ok"}

    uvicorn.run(app, host="127.0.0.1", port=args.port, log_level="error", timeout_keep_alive=600, access_log=False)


if __name__ == "__main__":
    main()
