// SPDX-License-Identifier: Apache-2.0
// What the commands share: each one adds itself to the command line and says what to run.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "cli/flags.h"
#include "toto/error.hpp"
#include "toto/forecast.hpp"
#include "toto/model.hpp"
#include "toto/settings.hpp"

namespace toto::cli {

struct Session {
  bool quiet = false;               ///< no table, no progress bar, no notes; warnings stay
  std::function<ExitStatus()> run;  ///< set while the command line is parsed
};

void add_detect(const Command& app, Session& session);
void add_forecast(const Command& app, Session& session);
void add_backtest(const Command& app, Session& session);
void add_bench(const Command& app, Session& session);
void add_cache(const Command& app, Session& session);
void add_config(const Command& app, Session& session);
void add_inspect(const Command& app, Session& session);
void add_model(const Command& app, Session& session);
void add_tune(const Command& app, Session& session);
void add_verify(const Command& app, Session& session);
void add_drift(const Command& app, Session& session);
void add_serve(const Command& app, Session& session);
/// `help` and `completion`, which know all commands of `program`.
void add_help(const Command& app, Session& session, const CLI::App* program);

/// Makes a command with --help and --quiet; `examples` are whole lines.
Command add_command(const Command& parent, Session& session, const std::string& name,
                    const std::string& description, std::string_view examples);

/// --model, and --seed in a group of the command's help.
void add_model_option(const Command& command, SettingsFlags& flags);
void add_seed_option(const Command& command, SettingsFlags& flags, const std::string& group);
/// --hub-cache and --strict; the command adds its own way of naming the model.
void add_model_options(const Command& command, ModelQuery& query);
/// The flags of SettingsFlags, but for --model and --seed, which not every command has.
void add_settings_options(const Command& command, SettingsFlags& flags);
/// Warnings, and the topics that the settings ask for, on stderr.
LogSink log_sink(const Settings& settings);
/// What settings mean to the library, and notes about PyTorch's variables. Throws what
/// Settings::apply throws.
LoadOptions load_options(const Settings& settings, const Session& session);
ForecasterOptions forecaster_options(const Settings& settings);

/// One line on stderr each.
void report(const Error& error);
void warn(std::string_view message);
void note(const Session& session, std::string_view message);

/// Writes to stdout, all of it. Throws Error: write_failed (74).
void print(std::string_view text);

}  // namespace toto::cli
