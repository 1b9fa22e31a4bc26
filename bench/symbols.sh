#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The table of symbols and modes: time, speed-up, MAE and its sigma, build time, memory.
#   bench/symbols.sh [TOTO [FLAG...]]     TOTO: the program (build/release/toto); FLAGs of toto bench
# The symbols are what packages on PyPI ship: daily closes of AAPL, AMD and MSFT (skfolio), GOOG (daily),
# EURUSD (hourly) and BTCUSD (monthly, so its windows are months) (backtesting). ETHUSD is in neither.
# scripts/market_bars.sh fetches them into build/data; they are no part of this project.
set -euo pipefail
cd "$(dirname "$0")/.."
toto=${1:-build/release/toto}
[ $# -eq 0 ] || shift
scripts/market_bars.sh --all >&2
exec "$toto" bench --data build/data/closes/{AAPL,AMD,MSFT}.csv build/data/others/{GOOG,EURUSD,BTCUSD}.csv \
  --model models/toto-nano --modes all --markdown "$@"
