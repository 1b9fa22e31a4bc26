# SPDX-License-Identifier: Apache-2.0
"""Draws curve.csv of one or more runs.

    training/plot_curves RUN/curve.csv --out models/toto-nano/curves.svg
"""

import argparse
import pathlib

import matplotlib
import pandas as pd

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

def label(column):
    if column == "train":
        return "training, averaged"
    variates, patches = column.removeprefix("dev_").split("x")
    return f"development: {variates} variate{'s' * (variates != '1')}, {patches} patches"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("curve", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    table = pd.read_csv(args.curve)
    matplotlib.rcParams["svg.hashsalt"] = "toto-nano"
    figure, axes = plt.subplots(figsize=(7, 3.6))
    for column in table.columns.drop(["step", "seconds"]):
        style = {"color": "0.7", "zorder": 0} if column == "train" else {}
        axes.plot(table["step"], table[column], label=label(column), **style)
    axes.set_xlabel("step")
    axes.set_ylabel("negative log likelihood per point")
    low = table.drop(columns=["step", "seconds"]).min().min()
    high = table.filter(like="dev_").max().max()
    axes.set_ylim(low - 0.1, high + 0.1)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(args.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
