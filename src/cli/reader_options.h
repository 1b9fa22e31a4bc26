// SPDX-License-Identifier: Apache-2.0
// The flags of every command that reads tables.
#pragma once

#include <string>

#include "cli/flags.h"
#include "toto/tools/data.hpp"

namespace toto::cli {

/// --layout, --timestamp, --id and what follows from how a file is written. The values land in
/// `options`, which must outlive the parsing.
void add_reader_options(const Command& command, data::CsvOptions& options,
                        const std::string& group);

/// --layout alone.
void add_layout_option(const Command& command, data::CsvOptions& options, const std::string& group);

/// Those alone that say how a file is written: --date-format, --timezone, --decimal, --duplicates.
void add_dialect_options(const Command& command, data::CsvOptions& options,
                         const std::string& group);

}  // namespace toto::cli
