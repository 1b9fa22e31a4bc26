#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing (Debian 12), builds the release preset and forecasts real series: a table in
# the terminal and plots in build/demo. Works without a network once everything is installed.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

section "Packages"
install_missing "${build_packages[@]}" "${python_packages[@]}"

section "Build (preset release)"
build release
say "built build/release/toto"

toto=build/release/toto
demo=build/demo
mkdir -p "$demo"

section "Model"
model=models/toto-nano
if [ ! -f "$model/model.safetensors" ]; then
  model=$demo/synthetic-model
  "$toto" model synth --config tests/data/golden/toto1-tiny-a/config.json --seed 1 --out "$model" --quiet
  say "No trained model in this checkout: SYNTHETIC weights stand in, so the forecasts below mean nothing."
fi
"$toto" model info "$model" | sed 's/^/   /'

section "Forecast: monthly sunspots, the next 48 months"
"$toto" forecast examples/data/sunspots.csv --model "$model" --horizon 48 --seed 1 \
  --output "$demo/sunspots.csv" --plot "$demo/sunspots.svg"

section "Market data"
if scripts/market_bars.sh; then
  bars=(build/data/bars/AAPL.csv build/data/bars/GOOG.csv build/data/bars/IBM.csv build/data/bars/MSFT.csv)
  section "Forecast: daily closing prices, the next 20 trading days"
else
  bars=(examples/data/co2.csv)
  section "Forecast: weekly carbon dioxide at Mauna Loa, the next 20 weeks"
fi
"$toto" forecast "${bars[@]}" --model "$model" --horizon 20 --seed 1 \
  --output "$demo/market.csv" --plot "$demo/market.html"

section "Done"
say "Plots, open them in a browser:"
say "  file://$root/$demo/sunspots.svg"
say "  file://$root/$demo/market.html"
say "Numbers: $demo/sunspots.csv, $demo/market.csv"
