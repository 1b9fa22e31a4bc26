// SPDX-License-Identifier: Apache-2.0
#include "data/column_words.h"

#include <algorithm>
#include <array>

namespace toto::data {
namespace {

constexpr auto kTimes = std::to_array<std::string_view>({"ds",
                                                         "timestamp",
                                                         "datetime",
                                                         "date",
                                                         "time",
                                                         "ts",
                                                         "opentime",
                                                         "period",
                                                         "month",
                                                         "week",
                                                         "quarter",
                                                         "year",
                                                         "day",
                                                         "hour",
                                                         "index",
                                                         "step",
                                                         "unixtime",
                                                         "unix",
                                                         "epoch",
                                                         "timestampms",
                                                         "unnamed:0",
                                                         "gmttime",
                                                         "utctime",
                                                         "localtime",
                                                         "datetimeutc",
                                                         "timestamputc",
                                                         "timestamp(utc)",
                                                         "dateutc",
                                                         "timeutc",
                                                         "timeperiodstart",
                                                         "observationdate",
                                                         "timeperiod",
                                                         "tradedate",
                                                         "tradingday",
                                                         "eventtime",
                                                         "createdat",
                                                         "t",
                                                         "datum",
                                                         "zeit",
                                                         "zeitstempel",
                                                         "fecha",
                                                         "data",
                                                         "datestamp",
                                                         "unixtimestamp",
                                                         "closetime",
                                                         "yyyymmdd",
                                                         "calendardate",
                                                         "windowstart",
                                                         "starttime"});
constexpr auto kIds = std::to_array<std::string_view>(
    {"uniqueid", "itemid", "seriesid", "tsid", "id", "symbol", "ticker", "series"});
constexpr auto kValues =
    std::to_array<std::string_view>({"y", "value", "values", "target", "obsvalue"});
constexpr auto kBars = std::to_array<std::string_view>({"open", "high", "low", "close"});
constexpr auto kClocks =
    std::to_array<std::string_view>({"time", "clock", "timeofday", "hour", "uhrzeit", "zeit",
                                     "hora", "heure", "timeutc", "localtime"});
constexpr auto kGroups = std::to_array<std::string_view>(
    {"store",     "shop",     "item",    "product",    "sku",      "dept",      "department",
     "category",  "family",   "region",  "country",    "city",     "location",  "site",
     "station",   "sensor",   "device",  "host",       "hostname", "instance",  "pod",
     "node",      "service",  "server",  "customer",   "client",   "account",   "channel",
     "brand",     "market",   "asset",   "instrument", "coin",     "name",      "metric",
     "variable",  "currency", "pair",    "isin",       "ric",      "meter",     "building",
     "household", "geo",      "refarea", "county",     "zone",     "line",      "route",
     "scope",     "tag",      "group",   "entity",     "key",      "container", "namespace",
     "cluster",   "env",      "area",    "warehouse",  "plant",    "machine",   "unit",
     "tic",       "stock",    "filiale", "artikel"});
constexpr auto kEndings =
    std::to_array<std::string_view>({"id", "nbr", "number", "no", "nr", "code"});
constexpr auto kCalendar = std::to_array<std::string_view>(
    {"year", "month", "day", "hour", "minute", "weekday", "dayofweek", "dow", "week", "weekofyear",
     "weekno", "quarter", "dayofyear", "doy", "dayofmonth", "yr", "mnth", "mon", "mth"});
constexpr auto kFlags = std::to_array<std::string_view>(
    {"holiday", "isholiday", "holidayflag", "schoolholiday", "stateholiday", "promo", "promotion",
     "onpromotion", "ispromo", "weekend", "isweekend", "workingday", "isworkingday", "event",
     "isevent", "ispromotion"});

bool has(Words words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

std::string plain_name(std::string_view name) {
  constexpr std::string_view kJoining = " _-.<>*\"'";
  const std::size_t digits = name.find_first_not_of("0123456789");
  if (digits != name.npos && digits > 0 && name[digits] == '.') name.remove_prefix(digits);
  std::string out;
  for (const char c : name) {
    if (kJoining.find(c) != kJoining.npos) continue;
    out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return out;
}

Words time_words() { return kTimes; }
Words id_words() { return kIds; }
Words value_words() { return kValues; }
Words bar_words() { return kBars; }

bool is_clock_word(std::string_view plain) { return has(kClocks, plain); }

bool is_group_word(std::string_view plain) {
  if (has(kGroups, plain)) return true;
  return std::ranges::any_of(kEndings, [&](std::string_view ending) {
    return plain.size() > ending.size() && plain.ends_with(ending) &&
           has(kGroups, plain.substr(0, plain.size() - ending.size()));
  });
}

bool is_calendar_word(std::string_view plain) { return has(kCalendar, plain); }

bool sounds_like_time(std::string_view plain) {
  if (has(kTimes, plain)) return true;
  return plain.find("time") != plain.npos || plain.find("date") != plain.npos ||
         plain.find("epoch") != plain.npos || plain.starts_with("unix");
}

bool is_month_word(std::string_view plain) {
  constexpr auto kMonths = std::to_array<std::string_view>(
      {"january", "february", "march", "april", "may", "june", "july", "august", "september",
       "october", "november", "december"});
  return plain.size() >= 3 && std::ranges::any_of(kMonths, [&](std::string_view month) {
           return plain == month || plain == month.substr(0, 3);
         });
}

bool is_value_word(std::string_view plain) {
  return has(kValues, plain) || has(kBars, plain) || plain == "volume";
}

bool is_counter_word(std::string_view plain) {
  return plain.ends_with("total") || plain.ends_with("count") || plain.find("bytes") != plain.npos;
}

bool is_flag_word(std::string_view plain) { return has(kFlags, plain); }

}  // namespace toto::data
