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
# As `pip install . pandas`, but what the program was compiled from is not compiled again.
if python_venv venv-python python3 "${wheel_tools[@]}" && build_wheel && python_venv venv-demo python3 pandas "nanobind-backend>=1.0" &&
  install_wheel venv-demo; then
  "$venv/bin/python" - <<'PYTHON' | sed 's/^/   /'
import pandas as pd
import toto_cpp

frame = pd.read_csv("examples/data/sunspots.csv").tail(600).assign(item_id="sunspots")
with toto_cpp.load() as model:
    print(model.predict_df(frame, timestamp_column="month", target="sunspots", prediction_length=4, quantile_levels=[0.1, 0.9]))
PYTHON
else
  say "left out: the package could not be built or installed"
fi

section "A server, for a moment"
"$toto" serve --port 0 --quiet-requests 2>"$demo/serve.log" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
for _ in $(seq 100); do
  grep -q '"listening"' "$demo/serve.log" && break
  sleep 0.1
done
address=$(grep -oE 'http://[0-9.:]+' "$demo/serve.log" | head -n 1)
say "$toto serve: a page at $address/, forecasts at $address/v1/forecast"
python3 - "$address" <<'END'
import json, sys, urllib.request

body = {"model": "toto-nano-2", "inputs": [{"target": [10, 12, 11, 13, 14, 15, 14, 16, 18, 17]}], "parameters": {"prediction_length": 4}}
with urllib.request.urlopen(sys.argv[1] + "/v1/forecast", json.dumps(body).encode()) as answer:
    print("   10, 12, ... 18, 17 goes on as", [round(row[0], 1) for row in json.load(answer)["outputs"][0]["mean"]])
END
kill "$server"
wait "$server"

section "Done in $(clock)"
say "Plots, to be opened in a browser:"
say "  file://$root/$demo/sunspots.svg"
say "  file://$root/$demo/market.html"
say "Numbers: $demo/sunspots.csv and $demo/market.csv"
