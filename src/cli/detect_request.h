// SPDX-License-Identifier: Apache-2.0
// What `toto detect` was asked to do, and its parts.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "toto/tools/data.hpp"
#include "toto/tools/detect.hpp"

namespace toto::cli {

struct DetectRequest {
  std::vector<std::string> inputs = {"-"};
  data::CsvOptions csv;
  ModelQuery query;
  SettingsFlags settings;
  detect::Options options;
  detect::WriteOptions write;
  std::size_t last = 0;  ///< steps of each series that are reported; 0: all
  bool follow = false;   ///< rows of standard input are scored as they come
  bool json = false;     ///< lines on standard output
  std::string output;    ///< the same in a file; empty: none
  std::string plot;      ///< .svg or .html; empty: none
};

/// Leaves out the points before the last `last` steps of their series.
void keep_last(std::vector<detect::Scored>& scored, std::span<const data::TimeSeries> series,
               std::size_t last);

/// How many anomalies each series has, and the strongest of them. No step before `min_history` was
/// scored.
std::string detect_table(std::span<const data::TimeSeries> series,
                         std::span<const detect::Scored> scored, std::size_t min_history,
                         const ModelInfo& model);

/// Scores the rows of standard input as they come, after those of the other inputs, which
/// are the past, and prints a line for each. Ends with the input; status 1 where there was an
/// anomaly. Throws Error (65) no_timestamps, and what reading and the detector throw.
ExitStatus follow(const DetectRequest& request, detect::Detector& detector, bool synthetic);

}  // namespace toto::cli
