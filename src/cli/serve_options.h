// SPDX-License-Identifier: Apache-2.0
// The flags of `toto serve`, each with a twin in the environment: --max-body is
// TOTO_SERVE_MAX_BODY.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "server/serve.h"

namespace toto::cli {

struct ServeRequest {
  std::vector<std::string> models;  ///< MODEL or NAME=MODEL; none: the default model
  std::string devices;              ///< names of several; empty: what --device says
  std::string key_file;
  std::string max_body, max_held, max_live;  ///< sizes as people write them; empty: built in
  bool quiet_requests = false;               ///< no line for each request
  ModelQuery query;
  SettingsFlags settings;
  server::ServeOptions serve;
};

/// The values land in `request`, which must outlive the parsing.
void add_serve_options(const Command& command, ServeRequest& request);

/// What needs the whole command line: sizes, keys. Warns of TOTO_SERVE_ variables that no flag has.
/// Throws Error (2, 66).
void check(ServeRequest& request);

}  // namespace toto::cli
