# SPDX-License-Identifier: Apache-2.0
"""Skill probes: series whose best forecast is known, and how far a model is from it.

    training/probe --toto build/release/toto --model models/toto-nano --model models/NAME --views season

The figure is the mean absolute error of the median relative to that of the oracle, which knows the
process and not its noise; for rare demand, of the mean of nine quantiles relative to the true mean.
"""

import argparse
import dataclasses
import functools
import pathlib
import statistics

import numpy as np
import pandas as pd

from toto_nano import engine, evaluate, scores

MIDDLE = scores.MEDIAN
SEED = 5


@dataclasses.dataclass
class Probe:
    """Looks like a Series to the drive through `toto`."""

    name: str
    values: np.ndarray  # context and future
    oracle: np.ndarray  # what should be said of the future
    context: int
    season: int = 1
    start: str = "2020-01-01"

    @property
    def horizon(self):
        return len(self.oracle)

    def times(self):
        return pd.date_range(self.start, periods=len(self.values), freq="h")

    def window(self):
        return scores.Window(f"{self.name}", self, self.context)


def probe(name, signal, noise, rng, context, horizon):
    y = signal + noise * rng.standard_normal(len(signal))
    return Probe(name, y[: context + horizon], signal[context : context + horizon], context)


def cycles(rng):
    for i in range(24):
        period = int(rng.choice([48, 60, 96, 144, 168, 288, 336]))
        horizon = int(rng.choice([48, 96]))
        context = int(period * rng.integers(4, 12))
        table = rng.standard_normal(period) if i % 2 else rng.standard_normal(8)[rng.integers(0, 8, period).cumsum() % 8]
        t = np.arange(context + horizon)
        yield probe(f"cycles/{i}", table[t % period], 0.05, rng, context, horizon)


def spikes(rng):
    for i in range(24):
        every = int(rng.choice([24, 60]))
        context = every * int(rng.integers(8, 20)) + int(rng.integers(0, every))
        t = np.arange(context + 48)
        signal = 5.0 * ((t + rng.integers(0, every)) % every == 0)
        yield probe(f"spikes/{i}", signal, 0.1, rng, context, 48)


def growth(rng):
    for i in range(24):
        context, horizon = int(rng.integers(48, 160)), 18
        t = np.arange(context + horizon)
        season = 1 + 0.2 * rng.standard_normal(12)[t % 12]
        level = np.exp(rng.uniform(0.008, 0.02) * t)
        signal = 100 * level * season
        y = signal * np.exp(0.02 * rng.standard_normal(len(t)))
        yield Probe(f"growth/{i}", y, signal[context:], context)


def shifts(rng):
    for i in range(24):
        context, horizon = 200, 24
        signal = np.where(np.arange(context + horizon) >= context - 8, rng.choice([-8, 8]), 0.0)
        yield probe(f"shift 8 steps ago/{i}", signal + 20, 1.0, rng, context, horizon)


def rare(rng):
    for i in range(24):
        context, horizon = 300, 60
        rate = rng.uniform(0.03, 0.2)
        y = (rng.random(context + horizon) < rate) * (1.0 + rng.poisson(3, context + horizon))
        yield Probe(f"rare/{i}", y, np.full(horizon, rate * 4), context)


def walks(rng):
    for i in range(40):
        y = 100 + rng.standard_normal(512 + 96).cumsum()
        yield Probe(f"walk/{i}", y, np.full(96, y[511]), 512)


def noise(rng):
    for i in range(24):
        yield probe(f"noise/{i}", np.zeros(400), 1.0, rng, 300, 64)


GROUPS = {"cycles of 48 to 336": cycles, "spikes every 24 or 60": spikes, "growth": growth,
          "shift 8 steps ago": shifts, "rare demand": rare, "walks": walks, "noise": noise}  # fmt: skip


def true_deciles(rate):
    """The nine deciles of a step of rare demand: nothing, or one and a Poisson number of mean 3."""
    size = np.arange(60)
    share = np.exp(-3.0) * np.concatenate(([1.0], np.cumprod(3.0 / size[1:])))
    below = 1 - rate + rate * np.concatenate(([0.0], share.cumsum()[:-1]))  # P(y <= size)
    return np.searchsorted(below, np.arange(1, 10) / 10 - 1e-12).astype(float)


def mean_of(deciles, tails):
    """The mean that the program gives (docs/statistics.md)."""
    ends = (deciles[0] + deciles[8]) / 2
    if tails == "exponential":
        ends += (deciles[8] - deciles[7] - (deciles[1] - deciles[0])) / np.log(2)
    if tails == "normal":
        z = statistics.NormalDist().inv_cdf(0.9)
        beyond = 10 * statistics.NormalDist().pdf(z) / z - 1
        ends += beyond * (deciles[8] + deciles[0] - 2 * deciles[4])
    return (deciles.sum() + ends) / 10


def rare_at_best(probes, mean=np.mean):
    """What `judge` says of a forecast whose deciles are the truth."""
    rates = [p.oracle.mean() / 4 for p in probes]
    return np.sum([mean(true_deciles(rate)) for rate in rates]) / (4 * np.sum(rates))


def relative_mean(probes, means):
    return np.sum([m.mean() for m in means]) / np.sum([p.oracle.mean() for p in probes])


def judge(probes, quantiles):
    if probes[0].name.startswith("rare"):
        return relative_mean(probes, [q[:, scores.DECILES].mean(axis=1) for q in quantiles])
    ratios = []
    for p, q in zip(probes, quantiles):
        truth = p.values[p.context :]
        ratios.append(np.abs(truth - q[:, MIDDLE]).mean() / np.abs(truth - p.oracle).mean())
    return scores.geometric_mean(ratios)


def covered(probes, quantiles, first=0):
    low, high = scores.INTERVALS[80]
    inside = [((q[:, low] <= p.values[p.context :]) & (p.values[p.context :] <= q[:, high]))[first:]
              for p, q in zip(probes, quantiles)]  # fmt: skip
    return float(np.mean(np.concatenate(inside)))


TAILS = ["clamp", "normal", "exponential"]
MARKS = {"cycles of 48 to 336": 1.3, "spikes every 24 or 60": 1.3, "growth": 1.3, "shift 8 steps ago": 1.3}
def marks_text():
    probes = list(rare(np.random.default_rng(SEED)))
    tails = [f"{rare_at_best(probes, functools.partial(mean_of, tails=t)):.3f} ({t})" for t in TAILS]
    return (
        "Error of the median relative to that of a forecast that knows the process; for rare demand, the "
        "mean of nine quantiles, or the program's with each of its tails, relative to the true mean. Mark: what is asked for. Of rare demand the "
        f"true deciles themselves give {rare_at_best(probes):.3f}, the program's mean of them {', '.join(tails)}: what comes in "
        "less than one step of ten is in none of them.\n"
    )


def table_of(args):
    rows = {}
    for name, make in GROUPS.items():
        probes = list(make(np.random.default_rng(SEED)))
        windows = [p.window() for p in probes]
        rows[name] = {"mark": f"{MARKS[name]:.1f}" if name in MARKS else ""}
        for model, views in [(m, v) for m in args.model for v in dict.fromkeys(["", args.views])]:
            label = f"{model.name}, {views}" if views else model.name
            quantiles = engine.by_toto(args.toto, model, windows, args.samples, views)
            rows[name][label] = judge(probes, quantiles)
            rows[name][f"{label}, in 80 %"] = covered(probes, quantiles)
            if name == "walks":
                rows[name][f"{label}, beyond step 32"] = covered(probes, quantiles, 32)
        for tails in TAILS if name == "rare demand" else []:
            row = rows[f"{name}, mean with {tails} tails"] = {"mark": "0.9 to 1.1"}
            for model in args.model:
                means = engine.means_by_toto(args.toto, model, windows, args.samples, tails)
                row[model.name] = relative_mean(probes, means)
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index.name = "probe"
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--toto", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, action="append", required=True)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--views", default="", help="each model with these views too, as --views of toto forecast")
    parser.add_argument("--report", type=pathlib.Path)
    args = parser.parse_args()
    text = evaluate.markdown(table_of(args)) + "\n" + marks_text()
    print(text)
    if args.report:
        args.report.write_text(text)


if __name__ == "__main__":
    main()
