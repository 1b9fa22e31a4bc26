// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/column_names.h"

#include <array>

namespace toto::backtest {
namespace {

struct Spellings {
  std::string_view word;
  std::span<const std::string_view> names;  // in order of preference
};

constexpr auto kOpen = std::to_array<std::string_view>(
    {"open", "openprice", "priceopen", "openingprice", "opening", "o", "adjopen"});
constexpr auto kHigh = std::to_array<std::string_view>(
    {"high", "highprice", "pricehigh", "dayhigh", "max", "h", "adjhigh"});
constexpr auto kLow = std::to_array<std::string_view>(
    {"low", "lowprice", "pricelow", "daylow", "min", "l", "adjlow"});
constexpr auto kClose = std::to_array<std::string_view>(
    {"close", "closeprice", "priceclose", "closingprice", "closing", "closelast", "last",
     "lastprice", "c", "adjclose", "adjustedclose", "closeadjusted", "adjcloseprice", "price"});
constexpr auto kVolume = std::to_array<std::string_view>(
    {"volume", "vol", "tradedvolume", "sharevolume", "basevolume", "v", "adjvolume"});
constexpr auto kTimestamp = std::to_array<std::string_view>(
    {"ds", "timestamp", "datetime", "date", "time", "opentime", "tradedate", "tradingday", "ts"});
constexpr auto kSymbol =
    std::to_array<std::string_view>({"uniqueid", "symbol", "ticker", "tic", "instrument", "asset",
                                     "pair", "name", "stock", "coin", "isin", "ric"});

constexpr std::array kAll = {Spellings{"open", kOpen},     Spellings{"high", kHigh},
                             Spellings{"low", kLow},       Spellings{"close", kClose},
                             Spellings{"volume", kVolume}, Spellings{"timestamp", kTimestamp},
                             Spellings{"symbol", kSymbol}};

/// Small letters and digits alone, without the number in front: "1. Open" is "open".
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      out.push_back(static_cast<char>(c - 'A' + 'a'));
    } else if (c >= '0' && c <= '9') {
      if (!out.empty()) out.push_back(c);
    } else if (std::string_view(" _-./<>*()$").find(c) == std::string_view::npos) {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace

std::optional<std::size_t> find_column(std::span<const std::string> header, std::string_view word) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == word) return i;
  }
  const std::string wanted = plain(word);
  for (const Spellings& one : kAll) {
    if (one.word != wanted) continue;
    for (const std::string_view name : one.names) {
      for (std::size_t i = 0; i < header.size(); ++i) {
        if (plain(header[i]) == name) return i;
      }
    }
    return std::nullopt;
  }
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (!wanted.empty() && plain(header[i]) == wanted) return i;
  }
  return std::nullopt;
}

}  // namespace toto::backtest
