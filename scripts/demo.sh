#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing (Debian 12), builds the release preset and forecasts real series with the model
# that ships with toto: tables in the terminal, plots in build/demo. Works without a network once
# everything is installed.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

toto=build/release/toto
demo=build/demo

section "Packages"
install_missing "${build_packages[@]}" "${python_packages[@]}"

section "Build (preset release)"
build release toto_cli
say "built $toto"

section "Model"
"$toto" model info | sed 's/^/   /'

section "Forecast: monthly sunspots, the next 48 months"
mkdir -p "$demo"
"$toto" forecast examples/data/sunspots.csv --horizon 48 --output "$demo/sunspots.csv" --plot "$demo/sunspots.svg"

section "Market data"
if scripts/market_bars.sh; then
  tables=(build/data/bars/{AAPL,GOOG,IBM,MSFT}.csv)
  section "Forecast: daily closing prices, the next 20 trading days"
else
  tables=(examples/data/co2.csv)
  section "Forecast: weekly carbon dioxide at Mauna Loa, the next 20 weeks"
fi
"$toto" forecast "${tables[@]}" --horizon 20 --output "$demo/market.csv" --plot "$demo/market.html"

section "Python: a data frame in, a data frame out"
venv=build/venv-demo
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
if "$venv/bin/python" -m pip install --quiet . pandas >build/demo_python.log 2>&1; then
  "$venv/bin/python" - <<'PYTHON' | sed 's/^/   /'
import pandas as pd
import toto_cpp

frame = pd.read_csv("examples/data/sunspots.csv").tail(600).assign(item_id="sunspots")
with toto_cpp.load() as model:
    print(model.predict_df(frame, timestamp_column="month", target="sunspots", prediction_length=4, quantile_levels=[0.1, 0.9]))
PYTHON
else
  say "left out: pip could not install the package (build/demo_python.log)"
fi

section "Done in $(clock)"
say "Plots, to be opened in a browser:"
say "  file://$root/$demo/sunspots.svg"
say "  file://$root/$demo/market.html"
say "Numbers: $demo/sunspots.csv and $demo/market.csv"
