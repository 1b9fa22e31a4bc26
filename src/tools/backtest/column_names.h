// SPDX-License-Identifier: Apache-2.0
// The names that columns of bars go by.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace toto::backtest {

/// The column of `header` that means `word` (open, high, low, close, volume, timestamp, symbol) in
/// one of its usual spellings: "Close", "close_price", "4. close", "<CLOSE>", "Close/Last", "c";
/// an adjusted close only where there is no other. Else the column of that name, whatever the case.
std::optional<std::size_t> find_column(std::span<const std::string> header, std::string_view word);

}  // namespace toto::backtest
