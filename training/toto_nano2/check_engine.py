# SPDX-License-Identifier: Apache-2.0
"""Compares the training program with `toto` on contexts of the evaluation.

    training/check_engine2 --toto build/release/toto --model models/NAME

For one context of every series (or --all of them) the training program's numbers are written as a
golden case and judged by `toto verify`. Exit status 1 if a number of the network differs by more
than the bound, or `toto verify` finds anything else wrong.
"""

import argparse
import pathlib
import tempfile

from toto_nano import check_engine, engine

from . import golden

BOUND = 1e-5


def compare(toto, model, window, folder):
    """{tensor: largest error} of one context over all ways in which toto executes."""
    golden.write_case(folder, model, engine.model_input(window), window.series.horizon)
    return check_engine.verify(toto, folder, lambda tensor: tensor.split(".")[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--toto", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--all", action="store_true", help="every window, not one per series")
    args = parser.parse_args()
    worst, failed = {}, []
    for window in check_engine.contexts(args.all):
        with tempfile.TemporaryDirectory() as folder:
            errors, holds = compare(args.toto, args.model, window, pathlib.Path(folder, "case"))
        if max(errors.values()) > BOUND or not holds:
            failed.append(window.name)
        for name, e in errors.items():
            worst[name] = max(worst.get(name, (0.0, "")), (e, window.name))
        print(f"{window.name:32s} " + "  ".join(f"{n} {e:.1e}" for n, e in errors.items()), flush=True)
    check_engine.conclude(worst, failed)


if __name__ == "__main__":
    main()
