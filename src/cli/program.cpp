// SPDX-License-Identifier: Apache-2.0
// Parses the command line, runs a command, maps errors to exit statuses.
#include "cli/program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/process.h"
#include "core/closest.h"
#include "core/descriptor.h"

namespace toto::cli {
namespace {

int fail(const Error& error) {
  report(error);
  return static_cast<int>(error.status());
}

// The subcommand that was being parsed, for its list of flags.
CLI::App* innermost(CLI::App& app) {
  CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return at;
}

// An argument that nothing takes: a flag that does not exist, a command misspelt, one file too
// many.
Error unexpected(CLI::App* command, const std::string& argument) {
  const std::string remedy = "see " + full_name(command) + " --help";
  const bool flag = argument.starts_with('-');
  std::vector<std::string> known;
  if (flag) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  } else {
    for (const CLI::App* sub : command->get_subcommands({})) known.push_back(sub->get_name());
  }
  const std::string_view near = closest(argument.substr(0, argument.find('=')), known);
  return {ExitStatus::usage,
          flag            ? "unknown_flag"
          : known.empty() ? "unexpected_argument"
                          : "unknown_command",
          "nothing here is called '" + argument + "'", full_name(command),
          near.empty() ? remedy : "did you mean " + std::string(near) + "? " + remedy};
}

Error usage_error(CLI::App& app, const CLI::ParseError& error) {
  CLI::App* const command = innermost(app);
  const auto extras = command->remaining(true);
  if (!extras.empty()) return unexpected(command, extras.front());
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  return {ExitStatus::usage, "usage", message, full_name(command),
          "see " + full_name(command) + " --help"};
}

struct Registration {
  std::string_view name;
  void (*add)(const Command& program, Session& session);
};

constexpr Registration kCommands[] = {
    {"forecast", add_forecast}, {"detect", add_detect},   {"backtest", add_backtest},
    {"tune", add_tune},         {"inspect", add_inspect}, {"model", add_model},
    {"bench", add_bench},       {"config", add_config},   {"cache", add_cache},
    {"verify", add_verify},     {"drift", add_drift},
#ifdef TOTO_SERVER
    {"serve", add_serve},
#endif
};

// Adds the command that the first argument names, alone: all of them together have a thousand
// options, which take 2 ms, and would read their environment. Where it names none, adds all, for
// help and for what to say of an unknown command.
void add_commands(std::string_view first, CLI::App& app, Session& session) {
  const Command program(&app);
  const auto named = std::ranges::find(kCommands, first, &Registration::name);
  if (named != std::end(kCommands)) return named->add(program, session);
  for (const Registration& command : kCommands) command.add(program, session);
  add_help(program, session, &app);
}

int run(int argc, char** argv) {
  CLI::App app("Forecasts time series with Toto models, without Python.", "toto");
  Session session;
  app.set_version_flag("--version,-V", "toto " TOTO_VERSION);
  app.formatter(std::make_shared<Help>());
  app.require_subcommand(1);
  app.footer("toto help COMMAND says more about a command, toto help --man as a page for man.\n");
  add_commands(argc > 1 ? argv[1] : "", app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print(innermost(app)->help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    print(std::string(version.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  warn_about_environment();
  return static_cast<int>(session.run());
}

}  // namespace

Command add_command(const Command& parent, Session& session, const std::string& name,
                    const std::string& description, std::string_view examples) {
  const Command command = parent.add_subcommand(name, description);
  command.footer("Examples:\n" + std::string(examples));
  command.add_flag("--quiet,-q", session.quiet, "No table, progress bar or notes");
  return command;
}

void report(const Error& error) { say(error.what()); }

void warn(std::string_view message) { say("warning: " + std::string(message)); }

void note(const Session& session, std::string_view message) {
  if (!session.quiet) say(message);
}

void print(std::string_view text) {
  if (write_all(STDOUT_FILENO, std::as_bytes(std::span(text.data(), text.size())))) return;
  const int error = errno;
  throw Error(ExitStatus::io, "write_failed",
              has_standard_output() ? std::string("cannot write: ") + std::strerror(error)
                                    : std::string("cannot write: it is closed"),
              "standard output");
}

}  // namespace toto::cli

int toto_program(int argc, char** argv) {
  using toto::Error;
  using toto::ExitStatus;
  toto::cli::prepare_process();
  int status = 0;
  try {
    status = toto::cli::run(argc, argv);
  } catch (const Error& error) {
    status = toto::cli::fail(error);
  } catch (const std::bad_alloc&) {
    status = toto::cli::fail_out_of_memory();
  } catch (const std::exception& error) {
    try {
      status = toto::cli::fail(Error(ExitStatus::internal, "internal", error.what(), {},
                                     "this is a defect of toto: please report it"));
    } catch (const std::bad_alloc&) {
      status = toto::cli::fail_out_of_memory();
    }
  }
  if (status == static_cast<int>(ExitStatus::interrupted)) toto::cli::end_by_signal();
  return status;
}
