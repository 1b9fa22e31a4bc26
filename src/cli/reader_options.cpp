// SPDX-License-Identifier: Apache-2.0
#include "cli/reader_options.h"

#include "cli/arguments.h"

namespace toto::cli {

void add_layout_option(const Command& command, data::CsvOptions& options,
                       const std::string& group) {
  using enum data::Layout;
  add_choice<data::Layout>(
      command, "--layout", options.layout,
      {{"auto", automatic}, {"wide", wide}, {"long", long_format}, {"bars", bars}, {"rows", rows}},
      "wide (a column for each series), long (a column says which series), bars (open, high, low, "
      "close, volume), rows (a row for each series) or auto (default)")
      .group(group);
}

void add_reader_options(const Command& command, data::CsvOptions& options,
                        const std::string& group) {
  add_layout_option(command, options, group);
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
  command
      .add_option("--missing-values", options.missing_values,
                  "Words and numbers that stand for missing, such as -9999,NA2; none: no number "
                  "does that is not named (default: -9999 and its like where nothing comes near)")
      .comma_separated()
      .type_name("WORD,...")
      .group(group);
  const auto text = [&](const char* flag, std::string& value, const char* type, const char* help) {
    command.add_option(flag, value, help).type_name(type).group(group);
  };
  text("--freq", options.freq, "STEP",
       "The step of the rows: 15s, 5min, h, D, B, W, MS, ME, QS, YS; they are moved to its grid "
       "(default: as the rows look)");
  text("--resample", options.resample, "STEP[:HOW]",
       "Gather the rows into steps: 5min, 1h:sum; mean (default), sum, last, first, max or min");
  command
      .add_flag(
          "--rate", options.rate,
          "Values are counters: forecast their rise per second; where one falls it began anew")
      .group(group);
  text("--calendar", options.calendar, "NAME|FILE",
       "When the market is open: NYSE, 24x7, or a file (docs/data.md); no forecast falls on a "
       "closed one");
  add_choice<bool>(command, "--value-offset", options.value_offset,
                   {{"auto", true}, {"none", false}},
                   "Values that float32 has too few digits for, such as 10000000.3, are kept as "
                   "differences from an exact offset (auto, default) or rounded (none)")
      .group(group);
  using enum data::Duplicates;
  add_choice<data::Duplicates>(
      command, "--duplicates", options.duplicates,
      {{"error", error}, {"last", last}, {"first", first}, {"mean", mean}},
      "Of rows of one time with other values: error (default), or keep last, first or their mean")
      .group(group);
}

}  // namespace toto::cli
