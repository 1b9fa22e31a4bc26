// SPDX-License-Identifier: Apache-2.0
#include "cli/reader_options.h"

#include "cli/arguments.h"

namespace toto::cli {

void add_reader_options(const Command& command, data::CsvOptions& options,
                        const std::string& group) {
  using enum data::Layout;
  add_choice<data::Layout>(
      command, "--layout", options.layout,
      {{"auto", automatic}, {"wide", wide}, {"long", long_format}, {"bars", bars}},
      "wide (a column for each series), long (a column says which series), bars (open, high, low, "
      "close, volume) or auto (default)")
      .group(group);
  command.add_option("--timestamp", options.timestamp, "Column of timestamps")
      .type_name("COLUMN")
      .group(group);
  command.add_option("--id", options.id, "Columns that say which series a row belongs to")
      .comma_separated()
      .type_name("COLUMN,...")
      .group(group);
  add_dialect_options(command, options, group);
}

void add_dialect_options(const Command& command, data::CsvOptions& options,
                         const std::string& group) {
  command
      .add_option("--date-format", options.date_format,
                  "How times are written: dmy, mdy, ymd, or as strftime has it, such as "
                  "'%d.%m.%Y %H:%M' (default: as they look)")
      .type_name("FORMAT")
      .group(group);
  command
      .add_option("--timezone", options.timezone,
                  "Zone of times that are written without one, such as Europe/Berlin")
      .type_name("ZONE")
      .group(group);
  add_choice<char>(command, "--decimal", options.decimal, {{".", '.'}, {",", ','}},
                   "Decimal mark: . or , (default: as the numbers look)")
      .group(group);
  using enum data::Duplicates;
  add_choice<data::Duplicates>(
      command, "--duplicates", options.duplicates,
      {{"error", error}, {"last", last}, {"first", first}, {"mean", mean}},
      "Of rows of one time with other values: error (default), or keep last, first or their mean")
      .group(group);
}

}  // namespace toto::cli
