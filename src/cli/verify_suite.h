// SPDX-License-Identifier: Apache-2.0
// `toto verify` without golden folders alone: a suite of checks and its report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "toto/tools/verify.hpp"

namespace toto::cli {

struct SuiteRequest {
  std::optional<std::string> suite;
  ModelQuery query;
  SettingsFlags settings;
  std::vector<std::string> data;     ///< CSV files and folders of them
  std::vector<std::string> golden;   ///< folders
  std::vector<std::string> reports;  ///< .md, .html or .json by suffix
  std::string record, against, only;
  std::vector<std::string> modes;  ///< "all", or modes that are judged; empty: the one in force
  std::size_t soak_seconds = 600;
  bool json = false;
  bool second_process = false;  ///< hidden: hand over bits instead of running the suite
};

/// Adds the flags that only a suite has.
void add_suite_options(const Command& command, SuiteRequest& request);

/// Whether anything asks for a suite.
bool wants_suite(const SuiteRequest& request);

ExitStatus run_verify_suite(const SuiteRequest& request, const Session& session);

/// `toto drift`: --data, --against, --json and the settings of the request.
ExitStatus run_drift(const SuiteRequest& request, const Session& session);

}  // namespace toto::cli
