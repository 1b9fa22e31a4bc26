#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of large batches beside cuBLASLt, through PyTorch, on the same device in the same run.

    bench/peers/large_products.py --bench build/cuda/bench/bench_large_products

Ours read what a norm leaves and do the end of the product as well (adding to a residual in float32, gating); the
library's are plain products, with outputs in bfloat16 and in float32. Both are graphs of equal products, random data.
"""

import argparse
import subprocess

import torch

GRAPH_OPERATIONS = 1.5e12
TIMED = 7


def rate(product, operations):
    """Operations a second of a function that queues one product."""
    repeats = max(4, int(GRAPH_OPERATIONS / operations))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        product()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(repeats):
                product()
    torch.cuda.synchronize()
    times = []
    for i in range(3 + TIMED):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        graph.replay()
        last.record()
        last.synchronize()
        if i >= 3:
            times.append(first.elapsed_time(last) * 1e-3)
    return operations * repeats / sorted(times)[TIMED // 2]


def library(kind, rows, out, width):
    """TFLOP/s by type of the output."""
    inputs = torch.bfloat16 if kind == "bfloat16" else torch.float32
    x = torch.rand(rows, width, device="cuda").mul_(2).sub_(1).to(inputs)
    w = torch.rand(out, width, device="cuda").mul_(2).sub_(1).to(inputs)
    y = torch.empty(rows, out, device="cuda", dtype=inputs)
    operations = 2.0 * rows * out * width
    rates = {kind: rate(lambda: torch.mm(x, w.t(), out=y), operations) * 1e-12}
    if kind == "bfloat16":
        rates["float32"] = rate(lambda: torch.mm(x, w.t(), out_dtype=torch.float32), operations) * 1e-12
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the program bench_large_products")
    parser.add_argument("--types", default="bfloat16,tf32")
    options = parser.parse_args()
    torch.backends.cuda.preferred_blas_library("cublaslt")
    torch.backends.cuda.matmul.allow_tf32 = True
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; TFLOP/s\n")
    print("| type | model | product | rows | ours | cuBLASLt | ratio | cuBLASLt, float32 outputs | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    ours = subprocess.run([options.bench], check=True, capture_output=True, text=True).stdout
    for line in ours.splitlines():
        kind, model, product, out, width, rows, own = line.split()
        if kind not in options.types.split(","):
            continue
        theirs = library(kind, int(rows), int(out), int(width))
        cells = [kind, model, f"{product} {out}x{width}", rows, f"{float(own):.0f}"]
        for output in (kind, "float32"):
            if output in theirs:
                cells += [f"{theirs[output]:.0f}", f"{float(own) / theirs[output]:.2f}"]
            else:
                cells += ["", ""]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
