// SPDX-License-Identifier: Apache-2.0
// Tables from text, for tests.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "toto/tools/data.hpp"

namespace toto::data {

inline Dataset read(const std::string& text, const CsvOptions& options = {}) {
  std::istringstream in(text);
  return read_csv(in, "dir/table.csv", options);
}

/// "code place: message" of the error that reading gives; empty when it gives none.
inline std::string error_of(const std::string& text, const CsvOptions& options = {}) {
  try {
    (void)read(text, options);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::bad_data);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.code() + " " + error.where() + ": " + error.message();
  }
}

/// The only series of a table.
inline TimeSeries only(const std::string& text, const CsvOptions& options = {}) {
  Dataset data = read(text, options);
  EXPECT_EQ(data.series.size(), 1U);
  EXPECT_TRUE(data.errors.empty());
  return data.series.at(0);
}

/// A table with column `ds` and a value in every row.
inline std::string table_of(const std::vector<std::string>& times) {
  std::string text = "ds,y\n";
  int value = 0;
  for (const std::string& time : times) text += time + "," + std::to_string(++value) + "\n";
  return text;
}

inline std::vector<std::string> texts_of(const std::vector<std::int64_t>& times,
                                         const TimeStyle& style) {
  std::vector<std::string> texts;
  for (const std::int64_t time : times) texts.push_back(format_time(time, style));
  return texts;
}

inline std::vector<std::string> future_texts(const TimeSeries& series, std::size_t horizon) {
  return texts_of(future_times(series, horizon), series.style);
}

}  // namespace toto::data
