// SPDX-License-Identifier: Apache-2.0
// From files and folders to symbols with their bars. What is broken is named, what is not is read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "core/json.h"
#include "data/calendar.h"
#include "data/file_name.h"
#include "data/text.h"
#include "tools/backtest/column_names.h"
#include "tools/backtest/data_check.h"
#include "tools/backtest/trading_hours.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {
namespace {

constexpr std::array<std::string_view, 5> kBarWords = {"open", "high", "low", "close", "volume"};

class FileReader {
 public:
  FileReader(std::string path, const MarketOptions& options, const data::CovariateTable* future)
      : path_(std::move(path)), options_(options), csv_(options.table), future_(future) {}

  void read(Market& market) {
    const data::Text text = data::read_text(path_);
    header_ = data::column_names(text);
    choose_columns();
    data::Dataset table = parse_what_counts(text);
    for (std::string& warning : table.warnings) market.warnings.push_back(std::move(warning));
    for (data::SeriesError& error : table.errors) market.errors.push_back(std::move(error));
    for (data::TimeSeries& series : table.series) add(market, std::move(series));
  }

 private:
  /// Columns by the names they have in this file. What is only looked at by the check is read as
  /// covariates, which may be missing throughout.
  void choose_columns() {
    csv_.joint = true;
    csv_.context = std::numeric_limits<std::size_t>::max() / 2;
    std::vector<std::string> targets = options_.targets;
    const bool rows = csv_.layout == data::Layout::rows;
    if (targets.empty() && !rows && find_column(header_, "close")) targets = {"close"};
    if (rows) csv_.values = targets;  // which its columns are not: read_csv says so
    if (targets.empty() || rows) {    // another table: its own layout says what its values are
      add_future_columns();
      return;
    }
    if (csv_.layout == data::Layout::automatic) csv_.layout = data::Layout::bars;
    if (const auto time = find_column(header_, "timestamp"); time && csv_.timestamp.empty()) {
      if (!find_date_beside_time(*time)) csv_.timestamp = header_[*time];
    }
    if (const auto symbol = find_column(header_, "symbol"); symbol && csv_.id.empty()) {
      csv_.id = {header_[*symbol]};
    }
    for (const std::string& target : targets) {
      const auto column = find_column(header_, target);
      csv_.values.push_back(column ? header_[*column] : target);  // absent: read_csv says so
      names_.push_back(target);
    }
    add_future_columns();
    for (const std::string_view word : kBarWords) {
      const auto column = find_column(header_, word);
      if (!column) continue;
      const std::string& name = header_[*column];
      if (std::ranges::find(csv_.values, name) == csv_.values.end())
        csv_.covariates.push_back(name);
    }
  }

  /// Columns that are known ahead are no targets.
  void add_future_columns() {
    if (future_ == nullptr) return;
    for (const std::string& name : future_->columns) {
      if (std::ranges::find(csv_.values, name) == csv_.values.end())
        csv_.covariates.push_back(name);
    }
  }

  /// Date and time of day in two columns are for the reader to put together.
  bool find_date_beside_time(std::size_t time) const {
    const auto is_other = [&](std::string_view word) {
      const auto column = find_column(header_, word);
      return column && *column != time;
    };
    return is_other("date") || is_other("time");
  }

  /// What is not forecast is only looked at: where such a column cannot be read, the volume first,
  /// the check goes on without it.
  data::Dataset parse_what_counts(const data::Text& text) {
    while (true) {
      try {
        return data::read_csv(text, csv_);
      } catch (const Error& error) {
        const bool number = error.code() == "not_a_number" || error.code() == "not_finite";
        if (!number || csv_.covariates.empty()) throw;
        if (unreadable_.empty() || unreadable_.back() != error.what()) {
          unreadable_.emplace_back(error.what());
        }
      }
      const auto volume = find_column(csv_.covariates, "volume");
      if (!volume) {
        csv_.covariates.clear();
        continue;
      }
      csv_.covariates.erase(csv_.covariates.begin() + static_cast<std::ptrdiff_t>(*volume));
    }
  }

  void add(Market& market, data::TimeSeries&& series) {
    const std::size_t repeated = series.repeated_rows;
    Symbol symbol;
    symbol.name = series.id;
    symbol.file = path_;
    const bool wanted = options_.symbols.empty() ||
                        std::ranges::find(options_.symbols, symbol.name) != options_.symbols.end();
    if (!wanted) return;
    symbol.bars = series.steps;
    symbol.times = series.times;
    symbol.style = series.style;
    symbol.interval = series.interval;
    try {
      symbol.hours = trading_hours(series);
      symbol.findings = check(series);
      for (const std::string& message : unreadable_) {
        symbol.findings.push_back(
            {"unreadable_column", 1, "a column that is not forecast is not looked at: " + message});
      }
      if (repeated > 0) {
        symbol.findings.push_back(
            {"repeated_rows", repeated,
             fmt::format("{} rows of the file repeat an earlier one and were left out", repeated)});
      }
    } catch (const Error& error) {
      market.errors.push_back({symbol.name, error});
      return;
    }
    const std::size_t targets = series.targets();
    const data::TimeSeries whole = future_ == nullptr ? data::TimeSeries() : series;
    for (std::size_t v = 0; v < targets; ++v) {
      symbol.targets.push_back(names_.empty() ? series.variates[v] : names_[v]);
    }
    series.values.resize(targets * series.steps);
    series.mask.resize(targets * series.steps);
    if (future_ != nullptr && !add_known(market, whole, symbol)) return;
    symbol.values = std::move(series.values);
    if (!series.value_offsets.empty()) {
      symbol.value_offsets.assign(
          series.value_offsets.begin(),
          series.value_offsets.begin() + static_cast<std::ptrdiff_t>(targets));
    }
    symbol.mask = std::move(series.mask);
    market.symbols.push_back(std::move(symbol));
  }

  /// The covariates of the symbol at its own times; false where it has none, which is an error.
  bool add_known(Market& market, data::TimeSeries series, Symbol& symbol) const {
    try {
      data::add_past(series, *future_, csv_.missing);
    } catch (const Error& error) {
      market.errors.push_back({symbol.name, error});
      return false;
    }
    symbol.covariates = future_->columns;
    const auto begin = static_cast<std::ptrdiff_t>(series.targets() * series.steps);
    symbol.known.assign(series.values.begin() + begin, series.values.end());
    return true;
  }

  std::vector<Finding> check(const data::TimeSeries& series) const {
    std::vector<std::vector<float>> columns(series.variates.size());
    Bars bars;
    for (std::size_t v = 0; v < series.variates.size(); ++v) {
      columns[v].assign(
          series.values.begin() + static_cast<std::ptrdiff_t>(v * series.steps),
          series.values.begin() + static_cast<std::ptrdiff_t>((v + 1) * series.steps));
      for (std::size_t t = 0; t < series.steps; ++t) {
        if (series.mask[v * series.steps + t] == 0) columns[v][t] = std::nanf("");
        if (const double offset = series.offset_of(v); offset != 0) {
          columns[v][t] = static_cast<float>(offset + static_cast<double>(columns[v][t]));
        }
      }
      for (const auto& [word, column] :
           {std::pair("open", &Bars::open), std::pair("high", &Bars::high),
            std::pair("low", &Bars::low), std::pair("close", &Bars::close),
            std::pair("volume", &Bars::volume)}) {
        const auto at = find_column(header_, word);
        if (at && header_[*at] == series.variates[v]) bars.*column = columns[v];
      }
    }
    bars.times = series.times;
    bars.interval = series.interval;
    bars.when = [&](std::size_t t) { return data::format_time(series.times[t], series.style); };
    if (crossed_share(bars) > 0.5) {
      throw Error(ExitStatus::bad_data, "crossed_bars", "most bars have a high below their low",
                  fmt::format("{}: series {}", path_, quote(series.id)),
                  "the columns high and low have most likely been exchanged");
    }
    return check_bars(bars);
  }

  std::string path_;
  const MarketOptions& options_;
  std::vector<std::string> header_;
  std::vector<std::string> names_;  // of the targets, as asked for
  data::CsvOptions csv_;
  const data::CovariateTable* future_;   // nullptr: none
  std::vector<std::string> unreadable_;  // errors of columns that are not forecast
};

/// The first one of a name stays.
void drop_doubles(Market& market) {
  std::set<std::string, std::less<>> names;
  std::vector<Symbol> kept;
  for (Symbol& symbol : market.symbols) {
    if (names.insert(symbol.name).second) {
      kept.push_back(std::move(symbol));
      continue;
    }
    Error error(ExitStatus::bad_data, "duplicate_symbol", "another file has this symbol already",
                fmt::format("{}: series {}", symbol.file, quote(symbol.name)));
    market.errors.push_back({symbol.name, std::move(error)});
  }
  market.symbols = std::move(kept);
}

/// What is wrong with others than the chosen symbols is no error.
void forgive_others(Market& market, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return;
  std::vector<data::SeriesError> own;
  for (data::SeriesError& one : market.errors) {
    if (std::ranges::find(wanted, one.id) != wanted.end()) {
      own.push_back(std::move(one));
    } else {
      market.warnings.push_back(
          fmt::format("not one of --symbols, left out: {}", one.error.what()));
    }
  }
  market.errors = std::move(own);
}

void require_symbols(const Market& market, const std::vector<std::string>& wanted,
                     std::size_t unreadable) {
  for (const std::string& name : wanted) {
    const auto is_it = [&](const auto& one) { return one == name; };
    if (std::ranges::any_of(market.symbols, is_it, &Symbol::name)) continue;
    if (std::ranges::any_of(market.errors, is_it, &data::SeriesError::id)) continue;
    throw Error(ExitStatus::missing_input, "missing_symbol",
                unreadable == 0 ? fmt::format("no table has the symbol {}", quote(name))
                                : fmt::format("no table that can be read has the symbol {}; {} "
                                              "cannot be read",
                                              quote(name), unreadable),
                "--symbols");
  }
}

}  // namespace

Market read_market(const MarketOptions& options) {
  Market market;
  std::size_t unreadable = 0;  // files
  std::optional<data::CovariateTable> future;
  if (!options.future.empty()) {
    future = data::read_covariates(options.future, options.table);
    market.warnings = future->warnings;
  }
  for (const std::string& path : data::csv_files(options.inputs)) {
    try {
      FileReader(path, options, future ? &*future : nullptr).read(market);
    } catch (const Error& error) {
      market.errors.push_back({data::stem_of(path), error});
      ++unreadable;
    }
  }
  drop_doubles(market);
  require_symbols(market, options.symbols, unreadable);
  forgive_others(market, options.symbols);
  return market;
}

}  // namespace toto::backtest
