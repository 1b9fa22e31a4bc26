#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `toto detect` on the Numenta Anomaly Benchmark, beside a three-sigma rule and a seasonal baseline.

    git clone https://github.com/numenta/NAB
    python3 bench/detect/nab.py --nab NAB --toto build/release/toto --json nab.json -- --context 1024

NAB's data, labels, profiles and sweeper (nab/sweeper.py) are taken from its folder; nothing of it is kept here. What
follows -- goes to `toto detect`. Needs Python's standard library only.

Each detector gives each row a score in bits. NAB then looks for the one threshold over all files that suits its cost
matrix best, and scales: 0 is a detector that says nothing, 100 a perfect one. Beside it stands what each detector does
when it may raise one false alarm a day: the threshold, one for all files, above which the rows outside NAB's windows
are one a day; recall is the share of windows that are hit, precision the share of alarms that lie in a window. NAB's
probationary rows, the first 15 % of a file (at most 750), count nowhere.
"""
import argparse
import bisect
import csv
import datetime
import importlib.util
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

PROBATION = 0.15
MOST_BITS = 1000.0
WINDOW = 288  # rows that the baselines look at


def bits_of_z(z):
    """-log2 of the two-sided tail of the normal distribution."""
    p = math.erfc(abs(z) / math.sqrt(2))
    return min(MOST_BITS, -math.log2(p)) if p > 1e-300 else MOST_BITS


class Rolling:
    """Mean and standard deviation of the last WINDOW values."""

    def __init__(self):
        self.values = []

    def z(self, value):
        recent = self.values[-WINDOW:]
        self.values.append(value)
        if len(recent) < 32:
            return 0.0
        mean = statistics.fmean(recent)
        deviation = statistics.pstdev(recent, mean)
        return (value - mean) / max(deviation, 1e-9 * max(1.0, abs(mean)))


def three_sigma(times, values):
    rolling = Rolling()
    return [bits_of_z(rolling.z(v)) for v in values]


def seasonal(times, values):
    """The difference from the value one day before, in deviations of such differences."""
    rolling = Rolling()
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    step = max(1.0, gaps[len(gaps) // 2].total_seconds())
    rows = max(1, round(86400 / step))
    scores = []
    for i, value in enumerate(values):
        if i < rows or rows < 2:
            scores.append(0.0)
        else:
            scores.append(bits_of_z(rolling.z(value - values[i - rows])))
    return scores


def held(scores, steps):
    """What --hold does: a score counts where none of the last steps was as high."""
    return [s if s > max(scores[max(0, i - steps):i], default=0.0) else 0.0 for i, s in enumerate(scores)]


class Toto:
    def __init__(self, program, flags, per_day=None):
        self.command = [program, "detect", "--json", "--score", "bits", "--duplicates", "mean", "--quiet", *flags]
        if per_day is not None:
            self.command += ["--false-alarms", str(per_day)]
        self.seconds = 0.0
        self.scored = 0

    def __call__(self, path):
        begin = time.monotonic()
        done = subprocess.run([*self.command, str(path)], capture_output=True, text=True)
        self.seconds += time.monotonic() - begin
        if done.returncode not in (0, 1):
            sys.exit(f"{path}: {done.stderr}")
        found = {}
        for line in done.stdout.splitlines():
            point = json.loads(line)
            found[point["ds"]] = (point["score"], point["anomaly"])
            self.scored += 1
        return found


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [r[0] for r in rows], [float(r[1]) for r in rows]


def parse(text):
    return datetime.datetime.fromisoformat(text)


def load_sweeper(folder):
    spec = importlib.util.spec_from_file_location("nab_sweeper", folder / "nab" / "sweeper.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nab_score(module, files, scores, costs, windows):
    """NAB's score with the best threshold for these costs."""
    sweeper = module.Sweeper(probationPercent=PROBATION, costMatrix=costs)
    points = []
    for name, (times, _) in files.items():
        scaled = [min(1.0, s / MOST_BITS) for s in scores[name]]
        points += sweeper.calcSweepScore(times, scaled, windows[name], name)
    best = max(sweeper.calcScoreByThreshold(points), key=lambda row: row.score)
    count = sum(len(w) for w in windows.values())
    null = -costs["fnWeight"] * count
    return 100 * (best.score - null) / (costs["tpWeight"] * count - null), best.threshold * MOST_BITS


def judge(files, windows, alarm):
    """Recall of windows, precision of alarms, and false alarms a day, where alarm(name, row) says what is raised."""
    hit = inside = outside = total = 0
    days = 0.0
    for name, (times, _) in files.items():
        begin = min(math.floor(PROBATION * len(times)), int(PROBATION * 5000))
        days += (times[-1] - times[begin]).total_seconds() / 86400
        raised = [times[i] for i in range(begin, len(times)) if alarm(name, i)]
        total += len(windows[name])
        for low, high in windows[name]:
            count = bisect.bisect_right(raised, high) - bisect.bisect_left(raised, low)
            hit += count > 0
            inside += count
        outside += len(raised) - sum(
            bisect.bisect_right(raised, high) - bisect.bisect_left(raised, low) for low, high in windows[name])
    alarms = inside + outside
    return {"recall": hit / total, "precision": inside / alarms if alarms else None, "false_alarms_a_day": outside / days,
            "windows": total, "days": days}


def at_one_a_day(files, windows, scores):
    """The lowest threshold with at most one false alarm a day, and what it gives."""
    values = sorted({s for name in files for s in scores[name] if s > 0})
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        found = judge(files, windows, lambda name, i: scores[name][i] >= values[middle])
        if found["false_alarms_a_day"] <= 1:
            high = middle
        else:
            low = middle + 1
    found = judge(files, windows, lambda name, i: scores[name][i] >= values[low])
    return {"threshold_bits": values[low], **found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nab", type=pathlib.Path, required=True, help="NAB's folder")
    parser.add_argument("--toto", default="build/release/toto")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here")
    parser.add_argument("--check", nargs="*", default=[], help="detectors whose published results are scored too")
    parser.add_argument("--hold", type=int, default=0, help="toto detect --hold, and the same for the baselines")
    parser.add_argument("flags", nargs="*", help="after --: for toto detect")
    arguments = parser.parse_args()

    module = load_sweeper(arguments.nab)
    profiles = json.loads((arguments.nab / "config" / "profiles.json").read_text())
    labels = json.loads((arguments.nab / "labels" / "combined_windows.json").read_text())
    files, texts = {}, {}
    for path in sorted((arguments.nab / "data").glob("*/*.csv")):
        name = f"{path.parent.name}/{path.name}"
        texts[name], values = read(path)
        files[name] = ([parse(t) for t in texts[name]], values)
    windows = {n: [(parse(a), parse(b)) for a, b in labels[n]] for n in files}
    print(f"{len(files)} files, {sum(len(v) for _, v in files.values())} rows", file=sys.stderr)

    # Of the figures in the pages; --model among the flags comes first.
    os.environ.setdefault("TOTO_MODEL_ID", str(pathlib.Path(__file__).resolve().parents[2] / "models/toto-nano"))
    toto = Toto(arguments.toto, [*arguments.flags, "--hold", str(arguments.hold)], 1)
    found = {name: toto(arguments.nab / "data" / name) for name in files}
    detectors = {
        "toto": {n: [max(0.0, found[n].get(t, (0.0, False))[0]) for t in texts[n]] for n in files},
        "three sigma": {n: three_sigma(*files[n]) for n in files},
        "seasonal": {n: seasonal(*files[n]) for n in files},
    }
    for name in ("three sigma", "seasonal"):
        if arguments.hold > 0:
            detectors[name] = {n: held(s, arguments.hold) for n, s in detectors[name].items()}
    for name in arguments.check:
        detectors[name + " (NAB's results)"] = {
            n: [MOST_BITS * float(row["anomaly_score"]) for row in csv.DictReader(
                open(arguments.nab / "results" / name / pathlib.Path(n).parent / f"{name}_{pathlib.Path(n).name}"))]
            for n in files}

    results = {}
    for detector, scores in detectors.items():
        one = {"nab": {}}
        for profile, settings in profiles.items():
            score, threshold = nab_score(module, files, scores, settings["CostMatrix"], windows)
            one["nab"][profile] = {"score": score, "threshold_bits": threshold}
        one["at one false alarm a day"] = at_one_a_day(files, windows, scores)
        results[detector] = one
    results["toto"]["--false-alarms 1"] = judge(
        files, windows, lambda name, i: found[name].get(texts[name][i], (0, False))[1])
    results["toto"]["seconds"] = toto.seconds
    results["toto"]["points"] = toto.scored
    results["toto"]["flags"] = arguments.flags
    results["toto"]["hold"] = arguments.hold

    print(f"{'':28}{'standard':>9}{'low FP':>8}{'low FN':>8}   at 1 false alarm a day: recall, precision")
    for detector, one in results.items():
        nab = [one["nab"][p]["score"] for p in ("standard", "reward_low_FP_rate", "reward_low_FN_rate")]
        day = one["at one false alarm a day"]
        print(f"{detector:28}{nab[0]:9.1f}{nab[1]:8.1f}{nab[2]:8.1f}   {day['recall']:.2f}, {day['precision']:.2f}")
    own = results["toto"]["--false-alarms 1"]
    print(f"toto --false-alarms 1: {own['false_alarms_a_day']:.2f} a day, recall {own['recall']:.2f}, "
          f"precision {own['precision']:.2f}")
    print(f"toto: {1e6 * toto.seconds / toto.scored:.1f} us a point, starting the program for each file included")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
