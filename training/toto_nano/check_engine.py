# SPDX-License-Identifier: Apache-2.0
"""Compares the training program with `toto` on contexts of the evaluation.

    training/check_engine --toto build/release/toto --model models/toto-nano

For one context of every series (or --all of them) the training program's numbers are written as a
golden case and judged by `toto verify`. Exit status 1 if a distribution parameter of the patch
after the context differs by more than the bound, or `toto verify` finds anything else wrong.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from . import engine, evaluation_data, golden, scores

BOUND = 1e-5


def contexts(everything: bool):
    for s in evaluation_data.load("test"):
        found = scores.windows(s)
        yield from found if everything else found[-1:]


def verify(toto, folder, name_of=lambda tensor: tensor):
    """{name of a tensor: largest error} of a golden case by `toto verify`, and whether it holds."""
    done = subprocess.run(
        [toto, "verify", "--golden", folder, "--json"], capture_output=True, text=True
    )
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr)
    errors = {}
    for check in json.loads(done.stdout)["cases"][0]["checks"]:
        name = name_of(check["tensor"])
        errors[name] = max(errors.get(name, 0.0), float(check["error"]))
    return errors, done.returncode == 0


def compare(toto, model, window, folder):
    """{tensor: largest error} of one context, over both ways in which toto executes."""
    golden.write_case(folder, model, engine.model_input(window), window.series.horizon)
    return verify(toto, folder)


def conclude(worst, failed):
    """Prints {group: (largest error, where)}; ends with 1 where a context of `failed` is beyond the bound."""
    for name, (e, place) in worst.items():
        print(f"largest error, {name}: {e:.2e} ({place})")
    if failed:
        sys.exit(f"beyond the bound: {', '.join(failed)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toto", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--all", action="store_true", help="every window, not one per series")
    args = parser.parse_args()

    worst, failed = {}, []
    for window in contexts(args.all):
        with tempfile.TemporaryDirectory() as folder:
            errors, holds = compare(args.toto, args.model, window, pathlib.Path(folder, "case"))
        head = max(e for name, e in errors.items() if name.startswith("prefill.dist"))
        if head > BOUND or not holds:
            failed.append(window.name)
        groups = {
            "distribution after the context": head,
            "distribution at forced steps": max(
                e for name, e in errors.items() if name.startswith("forced.") and "affine" not in name
            ),
            "means": max(e for name, e in errors.items() if name.startswith("mean.")),
            "hidden states": max(e for name, e in errors.items() if "layer" in name),
        }
        for name, e in groups.items():
            worst[name] = max(worst.get(name, (0.0, "")), (e, window.name))
        print(f"{window.name:32s} " + "  ".join(f"{e:.1e}" for e in groups.values()), flush=True)
    conclude(worst, failed)


if __name__ == "__main__":
    main()
